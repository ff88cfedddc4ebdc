package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// otherErr is a line of the log with an error under another name than err.
var otherErr = regexp.MustCompile(`\.(Debug|Info|Warn|Error|Log)(Context)?\(.*"(error|reason|problem)", `)

// Keys of the log mean the same everywhere, as docs/metrics.md says of them: who looks
// for err finds every error.
func TestLogsNameErrorsAlike(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if otherErr.MatchString(line) {
				t.Errorf("%s: %s", path, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
