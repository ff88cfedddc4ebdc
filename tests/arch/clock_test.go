package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What takes the monotonic part off an instant, so that a step of the machine's
// clock would move what is reckoned with it.
var wallClock = regexp.MustCompile(`\.(Unix(Milli|Micro|Nano)?|UTC|Local)\(\)|\.Round\(0\)|\.In\(time\.`)

// told are the files that read the wall clock, for what is told to somebody and never
// reckoned with here.
var told = map[string]string{
	"actors/room/context.go":  "ts of an event",
	"actors/room/publish.go":  "ts of an event",
	"actors/session/token.go": "exp_ms",
	"actors/session/hello.go": "now_ms",
	"engine/health.go":        "since_ms",
	"engine/renewals.go":      "when credentials end, told to another node",
	"engine/engine.go":        "where a node's generations begin",
}

// B150, derived from the monotonic timers that the protocol asks for: a step of the
// clock closed everybody, or nobody ever. Pings, leases, budgets, ages and deadlines are
// instants of Go that keep their monotonic part, which a step of the wall clock does not
// move; this holds as long as nobody takes it off.
func TestB150_NothingIsReckonedByTheWallClock(t *testing.T) {
	read := map[string]bool{}
	for _, folder := range []string{"actors", "engine", "scheduler", "backpressure", "bridge/memory", "transport"} {
		root := filepath.Join("..", "..", folder)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))
			if at := wallClock.Find(text); at != nil {
				if read[name] = true; told[name] == "" {
					t.Errorf("%s: %s takes the monotonic part off an instant", name, at)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range told {
		if !read[name] {
			t.Errorf("%s reads the wall clock no more", name)
		}
	}
}
