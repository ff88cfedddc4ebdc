package room

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// noted is a Trace that notes what it is told.
type noted struct {
	name string
	to   *[]string
}

func (n noted) Begin(s message.Stage) { *n.to = append(*n.to, fmt.Sprint("+", n.name)) }
func (n noted) End(s message.Stage)   { *n.to = append(*n.to, fmt.Sprint("-", n.name)) }

func (noted) Published(*codec.PublishResult, *codec.Error) {}
func (noted) Context() *codec.Trace                        { return nil }

// Events are followed from the fan-out that has them to its end, and of too many the
// oldest is let go.
func TestTracedEvents(t *testing.T) {
	var told []string
	var events traced
	events.add("none", nil)
	for i := range mostTraced + 2 {
		events.add(fmt.Sprint("e", i), noted{fmt.Sprint(i), &told})
	}
	given := func(ids ...string) (list []mailbox.Delivery) {
		for _, id := range ids {
			list = append(list, mailbox.Delivery{Event: codec.NewEvent(codec.Topic{}, "e", codec.Data{}, codec.Origin{EID: id})})
		}
		return list
	}
	for _, ids := range [][]string{{"e0", "other", "none"}, {"e3", "e2"}, {"e3"}, {"e9"}} {
		events.begin(given(ids...), nil)
		events.end()
	}
	if got, want := strings.Join(told, " "), "+2 +3 -2 -3 +9 -9"; got != want || len(events) != mostTraced-3 {
		t.Errorf("%s, and %d are left; want %s", got, len(events), want)
	}
}

// What other nodes follow is followed here, from the fan-out on: what is this node's own
// is not followed twice, and what comes with no trace is not.
func TestTracedEventsOfOtherNodes(t *testing.T) {
	var told []string
	var events traced
	events.add("own", noted{"own", &told})
	given := func(id string, of *codec.Trace) mailbox.Delivery {
		return mailbox.Delivery{Event: codec.NewEvent(codec.Topic{}, "e", codec.Data{}, codec.Origin{EID: id, Trace: of})}
	}
	other := &codec.Trace{ID: [16]byte{1}}
	linked := func(of *codec.Trace) message.Trace {
		if of != other {
			t.Errorf("linked to %v", of)
		}
		return noted{"linked", &told}
	}
	events.begin([]mailbox.Delivery{given("own", &codec.Trace{}), given("theirs", other), given("plain", nil)}, linked)
	events.end()
	if got, want := strings.Join(told, " "), "+own +linked -own -linked"; got != want || len(events) != 0 {
		t.Errorf("%s, and %d are left; want %s", got, len(events), want)
	}
	many := make([]mailbox.Delivery, mostTraced+5)
	for i := range many {
		many[i] = given(fmt.Sprint(i), other)
	}
	told = nil
	events.begin(many, linked)
	if len(events) != mostTraced {
		t.Errorf("%d are followed at a time", len(events))
	}
	if events.end(); len(told) != 2*mostTraced || len(events) != 0 {
		t.Errorf("%v, and %d are left", told, len(events))
	}
	events.begin(many, nil)
	if len(events) != 0 {
		t.Error("followed where nothing is")
	}
}
