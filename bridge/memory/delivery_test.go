package memory_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

// stuck is a sink that breaks the rule and blocks, so that its outbox fills.
type stuck struct {
	entered, release chan struct{}
	once             sync.Once

	mu      sync.Mutex
	gaps    []codec.Position
	arrived []uint64
}

func (s *stuck) Subscribed(codec.Position, *codec.Error) {}
func (s *stuck) Arrived(b bridge.Batch) {
	s.once.Do(func() {
		close(s.entered)
		<-s.release
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range b.Events {
		s.arrived = append(s.arrived, e.Position.Offset)
	}
}
func (s *stuck) Gap(head codec.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gaps = append(s.gaps, head)
}

// An outbox that overflows drops arrivals, and says so; publishers never wait.
func TestOutboxOverflowBecomesAGap(t *testing.T) {
	b, _ := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	s := &stuck{entered: make(chan struct{}), release: make(chan struct{})}
	b.Subscribe(topic, s)
	first := make(chan struct{})
	go func() {
		defer close(first)
		publish(b, topic, keepAll, buffered(topic, 1))
	}()
	<-s.entered
	batch := batchOf(topic, 64)
	const batches = 100 // 6,400 events
	for range batches {
		for _, got := range publish(b, topic, keepAll, batch...) {
			if got.Err != nil {
				t.Fatal(got.Err)
			}
		}
	}
	close(s.release)
	<-first
	publish(b, topic, keepAll, buffered(topic, 1))
	s.mu.Lock()
	defer s.mu.Unlock()
	const head = 1 + 64*batches
	if len(s.gaps) != 1 || s.gaps[0].Offset != head {
		t.Errorf("gaps %v, want one at %d", s.gaps, head)
	}
	n := len(s.arrived)
	if n != 1+memory.MaxDeliveryEvents+1 || s.arrived[n-2] != memory.MaxDeliveryEvents+1 || s.arrived[n-1] != head+1 {
		t.Errorf("%d arrived, the last %v", n, s.arrived[max(0, n-3):])
	}
}

func TestSubscriptionsBeyondTheOutboxAreRefused(t *testing.T) {
	b, _ := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	s := &stuck{entered: make(chan struct{}), release: make(chan struct{})}
	b.Subscribe(topic, s)
	first := make(chan struct{})
	go func() {
		defer close(first)
		publish(b, topic, keepAll, buffered(topic, 1))
	}()
	<-s.entered
	answers := make([]answer, memory.MaxDeliveries+10)
	for i := range answers {
		b.Subscribe(topic, &answers[i])
	}
	close(s.release)
	<-first
	for i := range answers {
		a := &answers[i]
		refused := a.err != nil && a.err.Code == codec.CodeBackpressured
		if a.calls != 1 || refused != (i >= memory.MaxDeliveries) {
			t.Fatalf("subscription %d: %d answers, %v", i, a.calls, a.err)
		}
	}
}

type answer struct {
	calls int
	err   *codec.Error
}

func (a *answer) Subscribed(_ codec.Position, err *codec.Error) { a.calls, a.err = a.calls+1, err }
func (a *answer) Arrived(bridge.Batch)                          {}
func (a *answer) Gap(codec.Position)                            {}

// bomb is a sink that panics once.
type bomb struct {
	counter
	armed bool
}

func (s *bomb) Arrived(b bridge.Batch) {
	if s.armed {
		s.armed = false
		panic("sink")
	}
	s.counter.Arrived(b)
}

func TestPanickingCallbackDoesNotHoldItsTopic(t *testing.T) {
	b, _ := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	s := &bomb{}
	b.Subscribe(topic, s)
	panics := func(done func([]bridge.Published)) {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		b.Publish(topic, keepAll, []bridge.Publication{buffered(topic, 1)}, done)
	}
	s.armed = true
	panics(func([]bridge.Published) {})
	publish(b, topic, keepAll, buffered(topic, 1))
	if s.events != 1 {
		t.Errorf("%d events arrived after the sink's panic, want 1", s.events)
	}
	panics(func([]bridge.Published) { panic("done") })
	publish(b, topic, keepAll, buffered(topic, 1))
	if s.events != 3 {
		t.Errorf("%d events arrived after done's panic, want 3", s.events)
	}
}

// https://github.com/redis/redis/issues/15824: offsets stay exact up to the
// largest, and stop there.
func TestB148_OffsetsStopWhereTheyWouldCollapse(t *testing.T) {
	b, _ := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	b.SetHead(topic, codec.MaxOffset-2)
	before := history(t, b, topic).Head
	got := publish(b, topic, keepAll, buffered(topic, 1), buffered(topic, 1), buffered(topic, 1))
	if got[0].Position.Offset != codec.MaxOffset-1 || got[1].Position.Offset != codec.MaxOffset || code(got[2]) != codec.CodeInternal {
		t.Fatalf("%+v", got)
	}
	page := since(t, b, topic, before)
	if len(page.Events) != 2 || page.Head.Offset != codec.MaxOffset || page.Reset != codec.ResetNone {
		t.Errorf("since %v: %+v", before, page)
	}
	if page := since(t, b, topic, page.Events[0].Position); len(page.Events) != 1 {
		t.Errorf("since the last but one: %d events", len(page.Events))
	}
	beyond := codec.Position{Epoch: before.Epoch, Offset: codec.MaxOffset + 1}
	if page := since(t, b, topic, beyond); page.Reset != codec.ResetEpoch {
		t.Errorf("beyond the largest: %v", page.Reset)
	}
}

// Everything at once, for the race detector and the ledger: tenants over their
// budget on a full node, subscriptions coming and going, sweeps, then Close.
func TestStress(t *testing.T) {
	b, clock := start(t, memory.Config{HistoryBytes: 256 << 10, TenantHistoryBytes: budget(100 << 10)})
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			r := bridge.Retention{Events: 50, Age: keepAll.Age, DedupWindow: keepAll.Age / 100}
			for i := range 400 {
				topic := topicOf(fmt.Sprintf("tenant-%d", (worker+i)%4), fmt.Sprintf("chat:%d", i%9))
				s := &answer{}
				b.Subscribe(topic, s)
				p := buffered(topic, 500)
				p.DedupKey = fmt.Sprint(i % 50)
				publish(b, topic, r, p, buffered(topic, 500))
				b.Read(topic, bridge.ReadRequest{Limit: 5, Reverse: true}, func(bridge.Page, *codec.Error) {})
				b.Unsubscribe(topic, s)
				if i%50 == 0 {
					clock.pass(keepAll.Age / 200)
					b.Sweep()
				}
				if n := b.Used(); n > 256<<10+8*4096 { // charges that are being refused show for a moment
					t.Errorf("%d bytes charged", n)
				}
			}
		})
	}
	all.Wait()
	clock.pass(3 * keepAll.Age)
	b.Sweep()
	if n := b.Used(); n != 0 {
		t.Errorf("%d bytes charged once everything has gone of age", n)
	}
}

func TestAllocationsOfAPublish(t *testing.T) {
	b, _ := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	b.Subscribe(topic, &counter{})
	batch := batchOf(topic, 64)
	const budget = 64 + 3 // an event each, the results, the arrivals, the call
	if n := testing.AllocsPerRun(100, func() { b.Publish(topic, usual, batch, func([]bridge.Published) {}) }); n > budget {
		t.Errorf("%.1f allocations for 64 events, budget %d", n, budget)
	}
}

func TestSubscribingTwiceDoublesNothing(t *testing.T) {
	b, _ := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	s := &counter{}
	b.Subscribe(topic, s)
	b.Subscribe(topic, s)
	publish(b, topic, keepAll, buffered(topic, 1))
	b.Unsubscribe(topic, s)
	publish(b, topic, keepAll, buffered(topic, 1))
	if s.events != 1 {
		t.Errorf("%d arrivals of one event", s.events)
	}
}
