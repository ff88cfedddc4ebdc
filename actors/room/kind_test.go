package room

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

func TestKindDefaults(t *testing.T) {
	p, err := Kind{Name: "chat"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	e := p.Event("whatever")
	if e == nil || !e.Buffered() || e.Lane != backpressure.Interactive || e.Overflow != backpressure.Reject {
		t.Errorf("event of a kind that declares none: %+v", e)
	}
	if p.History != (History{Events: 256, Age: 5 * time.Minute, Bytes: 1 << 20}) || p.DedupWindow != 2*time.Minute ||
		p.MailboxItems != 1024 || p.MailboxBytes != 4<<20 || p.Linger != 30*time.Second || p.Publish != Members || p.Lane != backpressure.Interactive {
		t.Errorf("defaults: %+v", p)
	}

	p, err = Kind{Name: Any, NoHistory: true, Events: map[string]EventPolicy{"typing": {Delivery: Transient, Lane: backpressure.Lossy}}}.Policy()
	if err != nil || p.History.Events != 0 || p.Event("other") != nil || p.Event("typing") == nil {
		t.Errorf("without a history: %+v, %v", p, err)
	}

	p, err = Kind{Name: "feed", Events: map[string]EventPolicy{"a": {Lane: backpressure.Bulk}, Any: {Delivery: Transient, Lane: backpressure.Interactive}}}.Policy()
	if err != nil || p.Lane != backpressure.Bulk {
		t.Errorf("the lane of a kind is that of its buffered events: %v, %v", p.Lane, err)
	}
}

// Every fault is told, with the kind and the event that it is in.
func TestKindFaults(t *testing.T) {
	event := func(p EventPolicy) Kind { return Kind{Name: "chat", Events: map[string]EventPolicy{"e": p}} }
	transient := func(o backpressure.Policy, by string) Kind {
		return event(EventPolicy{Delivery: Transient, Lane: backpressure.Lossy, Overflow: o, CoalesceBy: by})
	}
	for _, c := range []struct {
		name string
		kind Kind
		want string // "": none
	}{
		{"no name", Kind{}, "no valid name of a kind"},
		{"a colon in the name", Kind{Name: "chat:1"}, "no valid name of a kind"},
		{"a name of dots", Kind{Name: ".."}, "no valid name of a kind"},
		{"negative history", Kind{Name: "chat", History: History{Events: -1}}, "history cannot be negative"},
		{"negative age", Kind{Name: "chat", History: History{Age: -1}}, "history cannot be negative"},
		{"negative bytes", Kind{Name: "chat", History: History{Bytes: -1}}, "history cannot be negative"},
		{"negative mailbox", Kind{Name: "chat", MailboxItems: -1}, "cannot be negative"},
		{"negative limit of presence", Kind{Name: "chat", PresenceLimit: -1}, "cannot be negative"},
		{"negative linger", Kind{Name: "chat", Linger: -1}, "cannot be negative"},
		{"no dedup window is a choice", Kind{Name: "chat", DedupWindow: -1}, ""},
		{"name of an event", Kind{Name: "chat", Events: map[string]EventPolicy{"a b": {Lane: backpressure.Bulk}}}, `"a b": no valid name of an event`},
		{"the control lane", event(EventPolicy{Lane: backpressure.Control}), `"e": the control lane is the engine's own`},
		{"snapshots every less than none", Kind{Name: "chat", SnapshotEvery: -1}, "SnapshotEvery cannot be negative"},
		{"a tick below the least", Kind{Name: "chat", Tick: LeastTick - 1}, "a tick is at least 10ms"},
		{"a negative tick", Kind{Name: "chat", Tick: -time.Hour}, "a tick is at least 10ms"},
		{"the least tick", Kind{Name: "chat", Tick: LeastTick}, ""},
		{"buffered, without a history", Kind{Name: "chat", NoHistory: true}, "at_least_once needs a history"},
		{"buffered and dropped", event(EventPolicy{Lane: backpressure.Bulk, Overflow: backpressure.DropOldest}), "cannot be dropped or coalesced"},
		{"buffered and coalesced", event(EventPolicy{Lane: backpressure.Bulk, Overflow: backpressure.CoalesceLatest, CoalesceBy: "from"}), "cannot be dropped or coalesced"},
		{"require_ack", event(EventPolicy{Lane: backpressure.Bulk, Overflow: backpressure.RequireAck}), ""},
		{"require_ack of what is not kept", transient(backpressure.RequireAck, ""), "require_ack is for buffered events only"},
		{"require_ack without a history", Kind{Name: "chat", NoHistory: true, Events: map[string]EventPolicy{"e": {Overflow: backpressure.RequireAck, Lane: backpressure.Bulk}}}, "at_least_once needs a history"},
		{"coalesced by nothing", transient(backpressure.CoalesceLatest, ""), "coalesce_by is one of"},
		{"coalesced by what is not known", transient(backpressure.CoalesceLatest, "subject"), "coalesce_by is one of"},
		{"coalesced by no field", transient(backpressure.CoalesceLatest, "data."), "coalesce_by is one of"},
		{"coalesced by a field", transient(backpressure.CoalesceLatest, "data.x"), ""},
		{"coalesce_by without coalesce_latest", transient(backpressure.DropOldest, "from"), "coalesce_by goes with coalesce_latest"},
		{"two lanes of buffered events", Kind{Name: "chat", Events: map[string]EventPolicy{"a": {Lane: backpressure.Bulk}, "b": {Lane: backpressure.Interactive}}},
			`event "b": buffered in another lane than "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.kind.Policy()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `kind "`+c.kind.Name+`"`)):
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	_, err := Kind{Name: "a b", MailboxItems: -1, Events: map[string]EventPolicy{"c d": {Lane: backpressure.Control}}}.Policy()
	if err == nil || len(strings.Split(err.Error(), "\n")) != 4 {
		t.Errorf("four faults: %v", err)
	}
}

// A refusal reaches the client as it is if it was made for clients, and can be told.
func TestRefusal(t *testing.T) {
	own := codec.NewError(codec.CodeQuotaExceeded, "enough")
	long, err := codec.NewData(strings.Repeat("x", 80))
	if err != nil {
		t.Fatal(err)
	}
	r := &Room{cfg: Config{Env: &Env{MaxSnapshot: 6 * 81, Logger: slog.New(slog.DiscardHandler)}, Policy: &message.Policy{}}}
	for _, c := range []struct {
		err  error
		want codec.Code
	}{
		{own, codec.CodeQuotaExceeded}, {Refuse(codec.CodeConflict, "no"), codec.CodeConflict}, {ErrFull, codec.CodeForbidden},
		{Refuse(0, "no code"), codec.CodeInternal}, {Refuse(200, "none of the protocol's"), codec.CodeInternal},
		{&codec.Error{Code: codec.CodeConflict, Scope: 200}, codec.CodeInternal},
		{Refuse(codec.CodeConflict, "no text \xff"), codec.CodeInternal},
		{Refuse(codec.CodeConflict, strings.Repeat("x", 81)), codec.CodeConflict},
		{Refuse(codec.CodeConflict, strings.Repeat("x", 82)), codec.CodeInternal},
		{&codec.Error{Code: codec.CodeConflict, Data: long}, codec.CodeInternal},
	} {
		if got := r.refusal("publish", c.err); got.Code != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
	if got := r.refusal("publish", ErrFull); strings.Contains(got.Message, ErrFull.Error()) {
		t.Errorf("the text of an error that was not made for clients: %q", got.Message)
	}
}
