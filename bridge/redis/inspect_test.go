package redis

import (
	"regexp"
	"strings"
	"testing"
)

// Whether a user may do it is asked of everything that a script does, and of what nodes do
// beside scripts.
func TestEverythingThatIsDoneIsInspected(t *testing.T) {
	list, err := sources.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	inspect, err := sources.ReadFile("scripts/inspect.lua")
	if err != nil {
		t.Fatal(err)
	}
	done := map[string]bool{"PING": true, "EVAL": true, "EVALSHA": true}
	calls := regexp.MustCompile(`call\('([A-Z]+)'`)
	for _, f := range list {
		text, err := sources.ReadFile("scripts/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range calls.FindAllSubmatch(text, -1) {
			done[string(m[1])] = true
		}
	}
	delete(done, "INFO") // without which it is degraded
	if len(done) < 20 {
		t.Fatalf("only %v", done)
	}
	for name := range done {
		if !strings.Contains(string(inspect), "{'"+name+"'") {
			t.Errorf("%s is not asked for", name)
		}
	}
}
