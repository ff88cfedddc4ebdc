package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
)

// A kind in the file and a kind in Go are the same thing: every key arrives in one
// field, and only what is code, or times code, is out of the file's reach.
func TestEveryKeyOfAKindArrives(t *testing.T) {
	event := func(k room.Kind) room.EventPolicy { return k.Events["e"] }
	const transient = "delivery: transient, "
	tests := []struct {
		key   string
		yaml  string
		field string // of room.Kind
		got   func(room.Kind) any
		want  any
	}{
		{"history.events", "history: { events: 7 }", "History", func(k room.Kind) any { return k.History.Events }, 7},
		{"history.age", "history: { age: 7s }", "History", func(k room.Kind) any { return k.History.Age }, 7 * time.Second},
		{"history.bytes", "history: { bytes: 7MiB }", "History", func(k room.Kind) any { return k.History.Bytes }, int64(7 << 20)},
		{"history.events", "history: { events: 0 }, events: { e: { " + transient + "} }", "NoHistory", func(k room.Kind) any { return k.NoHistory }, true},
		{"dedup_window", "dedup_window: 7s", "DedupWindow", func(k room.Kind) any { return k.DedupWindow }, 7 * time.Second},
		{"dedup_window", "dedup_window: 0s", "DedupWindow", func(k room.Kind) any { return k.DedupWindow < 0 }, true},
		{"presence", "presence: true", "Presence", func(k room.Kind) any { return k.Presence }, true},
		{"presence_limit", "presence_limit: 7", "PresenceLimit", func(k room.Kind) any { return k.PresenceLimit }, 7},
		{"publish", "publish: members", "", func(k room.Kind) any { return k.Publish }, room.Members},
		{"publish", "publish: grant", "Publish", func(k room.Kind) any { return k.Publish }, room.Grant},
		{"publish", "publish: server", "Publish", func(k room.Kind) any { return k.Publish }, room.Server},
		{"mailbox.items", "mailbox: { items: 7 }", "MailboxItems", func(k room.Kind) any { return k.MailboxItems }, 7},
		{"mailbox.bytes", "mailbox: { bytes: 7MiB }", "MailboxBytes", func(k room.Kind) any { return k.MailboxBytes }, 7 << 20},
		{"presence", "presence: true", "Presence", func(k room.Kind) any { return k.Presence }, true},
		{"presence_limit", "presence_limit: 7", "PresenceLimit", func(k room.Kind) any { return k.PresenceLimit }, 7},
		{"linger", "linger: 7s", "Linger", func(k room.Kind) any { return k.Linger }, 7 * time.Second},

		{"events.delivery", "events: { e: { delivery: at_least_once } }", "Events", func(k room.Kind) any { return event(k).Delivery }, room.AtLeastOnce},
		{"events.delivery", "events: { e: { delivery: at_most_once } }", "Events", func(k room.Kind) any { return event(k).Delivery }, room.AtMostOnce},
		{"events.delivery", "events: { e: { delivery: transient } }", "Events", func(k room.Kind) any { return event(k).Delivery }, room.Transient},
		{"events.lane", "events: { e: { lane: interactive } }", "Events", func(k room.Kind) any { return event(k).Lane }, backpressure.Interactive},
		{"events.lane", "events: { e: { lane: bulk } }", "Events", func(k room.Kind) any { return event(k).Lane }, backpressure.Bulk},
		{"events.lane", "events: { e: { lane: lossy } }", "Events", func(k room.Kind) any { return event(k).Lane }, backpressure.Lossy},
		{"events.secret", "events: { e: { secret: true } }", "Events", func(k room.Kind) any { return event(k).Secret }, true},
		{"events.overflow", "events: { e: { overflow: reject } }", "Events", func(k room.Kind) any { return event(k).Overflow }, backpressure.Reject},
		{"events.overflow", "events: { e: { overflow: require_ack } }", "Events", func(k room.Kind) any { return event(k).Overflow }, backpressure.RequireAck},
		{"events.overflow", "events: { e: { " + transient + "overflow: drop_oldest } }", "Events", func(k room.Kind) any { return event(k).Overflow }, backpressure.DropOldest},
		{"events.overflow", "events: { e: { " + transient + "overflow: coalesce_latest, coalesce_by: from } }", "Events",
			func(k room.Kind) any { return event(k).Overflow }, backpressure.CoalesceLatest},
	}
	for _, by := range []string{"session", "from", "event", "data.x"} {
		tests = append(tests, struct {
			key, yaml, field string
			got              func(room.Kind) any
			want             any
		}{"events.coalesce_by", "events: { e: { " + transient + "overflow: coalesce_latest, coalesce_by: " + by + " } }", "Events",
			func(k room.Kind) any { return event(k).CoalesceBy }, by})
	}

	plain := mustLoad(t, kind(""), nil).Rooms["chat"].Kind("chat")
	keys, moved := map[string]bool{}, map[string]bool{}
	for _, tt := range tests {
		k := mustLoad(t, kind(tt.yaml), nil).Rooms["chat"].Kind("chat")
		if got := tt.got(k); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.yaml, got, tt.want)
		}
		changed := changes(plain, k)
		if tt.field != "" && !slices.Contains(changed, tt.field) {
			t.Errorf("%s moves %v", tt.yaml, changed)
		}
		keys[tt.key], moved[tt.field] = true, true
	}
	for _, f := range append(leaves(reflect.ValueOf(&Room{}).Elem(), ""), leaves(reflect.ValueOf(&Event{}).Elem(), "events")...) {
		if !f.named() && !keys[f.path] {
			t.Errorf("no case for %s", f.path)
		}
	}
	code := []string{"Name", "New", "SnapshotEvery", "Tick"}
	for i := range reflect.TypeFor[room.Kind]().NumField() {
		if name := reflect.TypeFor[room.Kind]().Field(i).Name; !moved[name] && !slices.Contains(code, name) {
			t.Errorf("nothing in the file moves %s", name)
		}
	}
	for i := range reflect.TypeFor[room.EventPolicy]().NumField() {
		name := reflect.TypeFor[room.EventPolicy]().Field(i).Name
		if _, ok := reflect.TypeFor[Event]().FieldByName(name); !ok {
			t.Errorf("nothing in the file says %s of an event", name)
		}
	}
}

// changes are the fields in which two kinds differ.
func changes(a, b room.Kind) (names []string) {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		if !reflect.DeepEqual(va.Field(i).Interface(), vb.Field(i).Interface()) {
			names = append(names, va.Type().Field(i).Name)
		}
	}
	return names
}

// The example of docs/CONFIG.md, word for word, and the same in Go.
func TestDocumentedKindIsTheSameInGo(t *testing.T) {
	_, block, found := strings.Cut(documented(t), "# (example)\n#  chat:\n")
	block, _, closed := strings.Cut(block, "\n\n")
	if !found || !closed {
		t.Fatal("docs/CONFIG.md has no example of a kind")
	}
	got := mustLoad(t, "rooms:\n  chat:\n"+strings.ReplaceAll("\n"+block, "\n#", "\n"), nil).Rooms["chat"].Kind("chat")
	want := room.Kind{
		Name:    "chat",
		History: room.History{Events: 256, Age: 5 * time.Minute, Bytes: 1 << 20}, DedupWindow: 2 * time.Minute,
		PresenceLimit: 1000, MailboxItems: 1024, MailboxBytes: 4 << 20, Linger: 30 * time.Second,
		Events: map[string]room.EventPolicy{
			"message":  {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive},
			"cursor":   {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.CoalesceLatest, CoalesceBy: "session"},
			"typing":   {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest},
			"progress": {Delivery: room.AtMostOnce, Lane: backpressure.Bulk, Overflow: backpressure.DropOldest},
			"order":    {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive, Overflow: backpressure.RequireAck},
			"*":        {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the file's\n%+v\nGo's\n%+v", got, want)
	}
	if _, err := want.Policy(); err != nil {
		t.Error(err)
	}
}

// Every fault of a kind is reported where it is: by the key of the event, and the
// line that declares it.
func TestFaultsOfAKindAreReportedWhereTheyAre(t *testing.T) {
	const yaml = `rooms:
  chat:
    history: { events: 0 }
    events:
      a: { delivery: transient, overflow: drop_oldest }
      b: { delivery: at_least_once }
      c: { delivery: transient, coalesce_by: from }
  game:
    events:
      a: {}
      b: { lane: bulk }
      c: { overflow: drop_oldest }
      d: { delivery: at_most_once, overflow: require_ack }
      e: { delivery: at_most_once, overflow: coalesce_latest, coalesce_by: data. }
      'f f': {}
`
	_, err := load(t, yaml, nil)
	got := map[string]string{}
	for _, f := range faultsOf(t, err) {
		got[f.Key+" :"+f.Source[strings.LastIndexByte(f.Source, ':')+1:]] += f.Problem
	}
	want := map[string]string{
		"rooms.chat.events.b :6":    "needs a history",
		"rooms.chat.events.c :7":    "goes with coalesce_latest",
		"rooms.game.events.b :11":   "another lane",
		"rooms.game.events.c :12":   "dropped or coalesced",
		"rooms.game.events.d :13":   "buffered events only",
		"rooms.game.events.e :14":   "data.FIELD",
		"rooms.game.events.f f :15": "no valid name",
	}
	for key, says := range want {
		if !strings.Contains(got[key], says) {
			t.Errorf("%s: %q, want one that says %q", key, got[key], says)
		}
	}
	if len(got) != len(want) {
		t.Errorf("faults at %v", slices.Sorted(maps.Keys(got)))
	}
}
