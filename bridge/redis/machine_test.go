package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
)

// What happens, step by step, and what is said of it. A script is a line of words:
// what happens, or a state that must hold now.
func TestMachine(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"comes up", "connecting linked connecting settled connecting fit up"},
		{"commands alone do not make it live", "called fit connecting lost connecting linked connecting settled called connecting fit up"},
		{"a lost link is an outage until everything is settled anew", "linked fit settled up lost down linked down settled fit up outages1"},
		{"many faults are one outage", "linked fit settled up lost down fault down lost down called down linked settled fit up outages1"},
		{"what never was up has no outage", "lost fault lost connecting linked fit settled up outages0"},
		{"commands that fail are an outage", "linked fit settled up fault down fit up outages1"},
		{"until the server is found fit, whatever gets through", "linked fit settled up denied down called down moved down unfit down called down fit up outages1"},
		{"a fault that is told late is none", "linked fit settled up called late up outages0"},
		{"a slot elsewhere is none", "linked fit settled up moved up outages0"},
		{"advice is no outage", "linked fit settled advice degraded fault down advice degraded fit up outages1"},
		{"what an earlier link says means nothing", "linked fit old connecting settled up oldunfit up"},
		{"two servers: both count", "added linked fit settled connecting linked2 settled2 connecting fit2 up fault down fit down fit2 up lost2 down removed2 up outages2"},
		{"it is up when it has heard itself", "deaf fit settled connecting heard up"},
		{"a probe that is refused is not heard", "deaf fit settled refused connecting heard up refused up"},
		{"closed for good", "linked fit settled up close down fault lost down outages0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			m := newMachine(now)
			m.added("", now)
			calls := uint64(0)
			for i, word := range strings.Fields(c.script) {
				now = now.Add(time.Second)
				before := m.health
				switch word {
				case "linked":
					m.linked("", 2, now)
					m.heard("", 2, now)
				case "deaf":
					m.linked("", 2, now)
				case "heard":
					m.heard("", 2, now)
				case "refused":
					m.unsent("", 2)
				case "settled":
					m.settled("", 2, now)
				case "old":
					m.settled("", 1, now)
				case "lost":
					m.lost("", "gone", now)
				case "added":
					m.added("b", now)
				case "linked2":
					m.linked("b", 1, now)
					m.heard("b", 1, now)
				case "settled2":
					m.settled("b", 1, now)
				case "lost2":
					m.lost("b", "gone", now)
				case "removed2":
					m.removed("b", now)
				case "called":
					calls++
					m.called(noFault, calls, now)
				case "fault":
					calls++
					m.called(lost, calls, now)
				case "denied":
					calls++
					m.called(notAllowed, calls, now)
				case "late":
					m.called(lost, calls-1, now)
				case "moved":
					calls++
					m.called(elsewhere, calls, now)
				case "fit":
					m.inspected("", 2, "", "", now)
				case "unfit":
					m.inspected("", 2, "it denies", "", now)
				case "oldunfit":
					m.inspected("", 1, "it denies", "", now)
				case "fit2":
					m.inspected("b", 1, "", "", now)
				case "advice":
					m.inspected("", 2, "", "evicts", now)
				case "close":
					m.close(now)
				case "outages0", "outages1", "outages2":
					if got, want := m.outages, uint64(word[7]-'0'); got != want {
						t.Fatalf("word %d: %d outages", i, got)
					}
				default:
					if m.health.State.String() != word {
						t.Fatalf("word %d: %+v, want %s", i, m.health, word)
					}
				}
				if (m.health.Why == "") != (m.health.State == bridge.Up) {
					t.Fatalf("word %d, %s: %+v", i, word, m.health)
				}
				if since := m.health.Since.Equal(now); since != (before.State != m.health.State) {
					t.Fatalf("word %d, %s: since %v at %v, from %v", i, word, m.health.Since, now, before)
				}
			}
		})
	}
}

// A link that does not bring what is published is replaced at the second beat; one
// that cannot have brought it, since nothing could be published, is not.
func TestMachineProbes(t *testing.T) {
	now := time.Unix(0, 0)
	m := newMachine(now)
	m.added("", now)
	step := func(want string) {
		t.Helper()
		now = now.Add(probeEvery)
		probe, replace, _ := m.due("", now)
		got := map[[2]bool]string{{false, false}: "nothing", {true, false}: "probe", {false, true}: "replace"}[[2]bool{probe, replace}]
		if got != want {
			t.Fatalf("at %v: %s, want %s", now, got, want)
		}
	}
	step("nothing") // there is no link
	m.linked("", 1, now)
	m.inspected("", 1, "", "", now)
	if probe, _, _ := m.due("", now); !probe {
		t.Fatal("a new link is not probed at once")
	}
	m.heard("", 1, now)
	if probe, _, _ := m.due("", now.Add(probeEvery/2)); probe {
		t.Fatal("a probe before its time")
	}
	step("probe")
	m.heard("", 1, now)
	step("probe")
	m.called(lost, 1, now)
	step("probe")
	m.inspected("", 1, "", "", now)
	step("replace")
	m.linked("", 2, now)
	m.inspected("", 2, "", "", now)
	step("probe")
	m.heard("", 1, now) // of the link before
	step("replace")
}

// A server is inspected when there is a link to it, then seldom, and often while it is not
// known to be fit.
func TestMachineInspects(t *testing.T) {
	now := time.Unix(0, 0)
	m := newMachine(now)
	m.added("", now)
	step := func(after time.Duration, want bool) {
		t.Helper()
		now = now.Add(after)
		if _, _, got := m.due("", now); got != want {
			t.Fatalf("at %v: %v", now, got)
		}
	}
	step(0, false) // there is no link
	m.linked("", 1, now)
	step(0, true)
	step(inspectAgain-1, false) // it is under way
	step(1, true)               // and was not answered
	m.inspected("", 1, "it denies", "", now)
	step(inspectAgain, true)
	m.inspected("", 1, "", "", now)
	step(inspectEvery-1, false)
	step(1, true)
	m.inspected("", 1, "", "", now)
	m.called(outOfMemory, 1, now)
	step(0, true)
	step(inspectAgain, true)
}
