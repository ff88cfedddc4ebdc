package arch

import (
	"os"
	"strings"
	"testing"
)

// What the README shows as code is code that is compiled and tested.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../examples/room/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(readme), "```go\n")
	shown, _, closed := strings.Cut(shown, "```")
	if !found || !closed || !strings.Contains(string(example), shown) {
		t.Error("README.md shows something else than examples/room/main.go")
	}
}
