package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var mapRow = regexp.MustCompile("(?m)^\\| `([a-z0-9/-]+)/` \\|[^|]*\\|([^|]*)\\|$")

// Every folder and file that the file map of docs/ARCHITECTURE.md names exists.
func TestFileMapNamesWhatExists(t *testing.T) {
	page, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := mapRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 15 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, row := range rows {
		for file := range strings.SplitSeq(row[2], ",") {
			path := filepath.Join("../..", row[1], strings.Trim(file, " `"))
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
	}
}
