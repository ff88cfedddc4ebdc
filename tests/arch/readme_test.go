package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What documents show as code is code that is compiled and tested, word for word.
func TestDocumentsShowCompiledCode(t *testing.T) {
	for document, examples := range map[string]string{
		"README.md":         "examples/room/*.go",
		"docs/embedding.md": "examples/game/*.go",
	} {
		text, err := os.ReadFile(filepath.Join("../..", document))
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join("../..", examples))
		if err != nil {
			t.Fatal(err)
		}
		var sources []string
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, string(source))
		}
		blocks := strings.Split(string(text), "```go\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", document)
		}
		for _, block := range blocks {
			shown, _, closed := strings.Cut(block, "```")
			found := false
			for _, source := range sources {
				found = found || strings.Contains(source, shown)
			}
			if !closed || !found {
				t.Errorf("%s shows what is not in %s:\n%s", document, examples, shown)
			}
		}
	}
}
