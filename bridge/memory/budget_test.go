package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

var keepAll = bridge.Retention{Events: 1 << 20, Age: 24 * time.Hour}

func budget(n int64) func(string) int64 { return func(string) int64 { return n } }

// Where history must go for want of budget the tenant's oldest goes first,
// whatever its topic, and readers are told.
func TestBudgetTakesTheTenantsOldest(t *testing.T) {
	b, clock := start(t, memory.Config{TenantHistoryBytes: budget(64 << 10)})
	rooms := []codec.Topic{topicOf("acme", "chat:0"), topicOf("acme", "chat:1"), topicOf("acme", "chat:2")}
	beside := topicOf("other", "chat:0")
	publish(b, beside, keepAll, buffered(beside, 1000))
	var order []codec.Topic // of every publish
	for i := range 200 {
		clock.pass(time.Millisecond)
		room := rooms[i*i%7%3]
		if got := publish(b, room, keepAll, buffered(room, 1000))[0]; got.Err != nil {
			t.Fatalf("publish %d: %v", i, got.Err)
		}
		order = append(order, room)
	}
	kept := map[codec.Topic]int{}
	total := 0
	for _, room := range rooms {
		n := len(history(t, b, room).Events)
		kept[room], total = n, total+n
	}
	want := map[codec.Topic]int{}
	for _, room := range order[len(order)-total:] {
		want[room]++
	}
	for _, room := range rooms {
		if kept[room] != want[room] {
			t.Errorf("%v keeps %d, but %d of the tenant's newest %d are its", room, kept[room], want[room], total)
		}
		page := history(t, b, room)
		if r := since(t, b, room, codec.Position{Epoch: page.Head.Epoch}).Reset; r != codec.ResetExpired {
			t.Errorf("%v, from before its first event: reset %v", room, r)
		}
	}
	if total < 15 || b.Used() > 2*64<<10 {
		t.Errorf("%d events kept, %d bytes charged", total, b.Used())
	}
	if n := len(history(t, b, beside).Events); n != 1 {
		t.Errorf("another tenant keeps %d of 1", n)
	}
}

// A full node takes from whoever holds most: who holds little is neither
// refused nor robbed.
func TestFullNodeTakesFromTheLargest(t *testing.T) {
	b, _ := start(t, memory.Config{HistoryBytes: 1 << 20})
	small, large, late := topicOf("small", "chat"), topicOf("large", "chat"), topicOf("late", "chat")
	for range 5 {
		publish(b, small, keepAll, buffered(small, 1000))
	}
	for range 2000 {
		if got := publish(b, large, keepAll, buffered(large, 1000))[0]; got.Err != nil {
			t.Fatal(got.Err)
		}
	}
	full := len(history(t, b, large).Events)
	for range 50 {
		if got := publish(b, late, keepAll, buffered(late, 1000))[0]; got.Err != nil {
			t.Fatal(got.Err)
		}
	}
	for _, c := range []struct {
		topic codec.Topic
		want  int
	}{{small, 5}, {late, 50}} {
		if n := len(history(t, b, c.topic).Events); n != c.want {
			t.Errorf("%v keeps %d, want %d", c.topic, n, c.want)
		}
	}
	if n := len(history(t, b, large).Events); n >= full || n < full/2 {
		t.Errorf("the largest keeps %d, had %d", n, full)
	}
	if b.Used() > 1<<20 {
		t.Errorf("%d bytes charged", b.Used())
	}
	huge := make([]bridge.Publication, 64) // more than the node has
	for i := range huge {
		huge[i] = buffered(large, 20_000)
	}
	publish(b, large, keepAll, huge...)
	if n := len(history(t, b, small).Events); n != 5 {
		t.Errorf("a batch that no node could hold cost %v %d events", small, 5-n)
	}
	for i := range 100 { // records, too, find room
		b.Subscribe(topicOf("new", fmt.Sprintf("chat:%d", i)), subscribed(func(err *codec.Error) {
			if err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
		}))
	}
}

// What can never fit is refused and costs nobody anything; what does not fit
// now may be tried again.
func TestRefusedForWantOfBudget(t *testing.T) {
	b, _ := start(t, memory.Config{TenantHistoryBytes: budget(16 << 10)})
	topic := topicOf("acme", "chat")
	publish(b, topic, keepAll, buffered(topic, 1000))
	if got := publish(b, topic, keepAll, buffered(topic, 16<<10))[0]; code(got) != codec.CodeTooLarge {
		t.Errorf("larger than the tenant's budget: %+v", got)
	}
	// What could not fit without any history either costs none of it.
	held := bridge.Publication{Event: event(topic, "e", 1)}
	keyed := keepAll
	keyed.DedupWindow = time.Hour
	for i := range 40 { // about 8 KiB of keys
		held.DedupKey = fmt.Sprint("held", i)
		publish(b, topic, keyed, held)
	}
	if got := publish(b, topic, keepAll, buffered(topic, 5<<10))[0]; code(got) != codec.CodeQuotaExceeded {
		t.Errorf("larger than what keys leave: %+v", got)
	}
	if n := len(history(t, b, topic).Events); n != 1 {
		t.Errorf("what was refused cost history: %d of 1 kept", n)
	}
	// Keys are never forgotten early, so they can use the budget up.
	refused := bridge.Published{}
	for i := 0; refused.Err == nil; i++ {
		p := bridge.Publication{Event: event(topic, "e", 1), DedupKey: fmt.Sprint("k", i)}
		refused = publish(b, topic, keyed, p)[0]
	}
	if code(refused) != codec.CodeQuotaExceeded || refused.Err.Scope != codec.ScopeTenant || refused.Err.RetryAfterMS() == 0 {
		t.Errorf("no budget left: %+v", refused.Err)
	}
	for i := range 3 {
		p := bridge.Publication{Event: event(topic, "e", 1), DedupKey: fmt.Sprint("k", i)}
		if got := publish(b, topic, keyed, p)[0]; !got.Duplicate {
			t.Errorf("key %d was forgotten early", i)
		}
	}
	b.Read(topicOf("acme", "another"), bridge.ReadRequest{}, func(_ bridge.Page, err *codec.Error) {
		if err == nil || err.Code != codec.CodeQuotaExceeded {
			t.Errorf("a record without budget: %v", err)
		}
	})
	if got := publish(b, topicOf("other", "chat"), keepAll, buffered(topicOf("other", "chat"), 1000))[0]; got.Err != nil {
		t.Errorf("another tenant: %v", got.Err)
	}
}

// The keys of a topic are bounded by number; at the bound a new one is refused
// until the window has ended for the first.
func TestKeysAreBounded(t *testing.T) {
	b, clock := start(t, memory.Config{})
	topic := topicOf("acme", "chat")
	r := bridge.Retention{DedupWindow: time.Minute}
	e := event(topic, "e", 1)
	publish(b, topic, r, bridge.Publication{Event: e, DedupKey: "k0"})
	b.FillKeys(topic, memory.MaxRepeats-1, time.Minute)
	one := bridge.Publication{Event: e, DedupKey: "one more"}
	if got := publish(b, topic, r, one)[0]; code(got) != codec.CodeQuotaExceeded || got.Err.Scope != codec.ScopeRoom {
		t.Fatalf("at the bound: %+v", got)
	}
	if got := publish(b, topic, r, bridge.Publication{Event: e, DedupKey: "k0"})[0]; !got.Duplicate {
		t.Fatalf("a repeat at the bound: %+v", got)
	}
	clock.pass(time.Minute)
	if got := publish(b, topic, r, one)[0]; got.Err != nil || got.Duplicate {
		t.Fatalf("after the window: %+v", got)
	}
}

// CONFIG new_rooms: a rate with a burst of ten seconds' worth.
func TestNewRoomsAreRationed(t *testing.T) {
	b, clock := start(t, memory.Config{NewRooms: func(tenant string) int {
		if tenant == "free" {
			return 0
		}
		return 5
	}})
	made := 0
	touch := func(tenant string) *codec.Error {
		made++
		topic := topicOf(tenant, fmt.Sprintf("chat:%d", made))
		return publish(b, topic, keepAll, buffered(topic, 1))[0].Err
	}
	for i := range 50 {
		if err := touch("acme"); err != nil {
			t.Fatalf("room %d of the burst: %v", i, err)
		}
	}
	if err := touch("acme"); err == nil || err.Code != codec.CodeQuotaExceeded || err.Scope != codec.ScopeTenant {
		t.Fatalf("beyond the burst: %v", err)
	}
	old := topicOf("acme", "chat:1")
	if got := publish(b, old, keepAll, buffered(old, 1))[0]; got.Err != nil {
		t.Errorf("a room that is there: %v", got.Err)
	}
	for range 100 {
		if err := touch("free"); err != nil {
			t.Fatalf("without a limit: %v", err)
		}
	}
	clock.pass(time.Hour)
	for i := range 51 {
		if err := touch("acme"); (err == nil) != (i < 50) {
			t.Errorf("room %d of a burst after long rest: %v", i, err)
		}
	}
	clock.pass(time.Second)
	for i := range 6 {
		if err := touch("acme"); (err == nil) != (i < 5) {
			t.Errorf("room %d of the next second: %v", i, err)
		}
	}
}
