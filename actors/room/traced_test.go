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
		events.begin(given(ids...))
		events.end()
	}
	if got, want := strings.Join(told, " "), "+2 +3 -2 -3 +9 -9"; got != want || len(events) != mostTraced-3 {
		t.Errorf("%s, and %d are left; want %s", got, len(events), want)
	}
}
