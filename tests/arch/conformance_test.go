package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var namedTest = regexp.MustCompile(`([a-z0-9/_-]+)\.((?:Test|Fuzz)\w+)`)

// A rule that docs/conformance.md calls shown is shown by a test that exists.
func TestConformanceNamesTestsThatExist(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := namedTest.FindAllStringSubmatch(string(page), -1)
	if len(named) < 30 {
		t.Fatalf("only %d tests are named", len(named))
	}
	sources := map[string]string{}
	for _, n := range named {
		folder, test := n[1], n[2]
		if _, read := sources[folder]; !read {
			sources[folder] = testFiles(t, filepath.Join(root, folder))
		}
		if !strings.Contains(sources[folder], "func "+test+"(") {
			t.Errorf("%s has no %s", folder, test)
		}
	}
}

// testFiles returns the text of all test files of a folder.
func testFiles(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
