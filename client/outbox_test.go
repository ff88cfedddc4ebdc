package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// bench is an outbox whose calls note what became of them.
type bench struct {
	t    *testing.T
	o    outbox
	ends map[string]error // by name
}

func newBench(t *testing.T, bound Bound) *bench {
	return &bench{t: t, o: outbox{bound: bound, inflight: map[uint64]*call{}}, ends: map[string]error{}}
}

var errNone = errors.New("done")

func (b *bench) call(name string, lost whenLost) *call {
	c := &call{request: &codec.Publish{Event: name}, size: 100, lost: lost, publish: true}
	c.done = func(_ codec.Result, err error) {
		if b.ends[name] != nil {
			b.t.Errorf("%s ended twice", name)
		}
		if b.ends[name] = err; err == nil {
			b.ends[name] = errNone
		}
	}
	return c
}

func (b *bench) add(name string, lost whenLost) error { return b.o.add(b.call(name, lost)) }

// sends takes what can be sent, and returns its names.
func (b *bench) sends(now time.Time) (names []string) {
	for c := b.o.take(now); c != nil; c = b.o.take(now) {
		r := c.request.(*codec.Publish)
		if r.ID != c.id || r.ID == 0 {
			b.t.Errorf("%s has the id %d", r.Event, r.ID)
		}
		names = append(names, r.Event)
	}
	return names
}

func (b *bench) want(got []string, want ...string) {
	b.t.Helper()
	if !slices.Equal(got, want) {
		b.t.Errorf("sent %v, want %v", got, want)
	}
}

func TestOutboxRepeatsInOrderWhatMayBeRepeated(t *testing.T) {
	b := newBench(t, Bound{10, 10_000})
	b.add("a", isRepeated)
	b.add("b", isUnknown)
	b.add("c", isRepeated)
	b.add("join", isForgotten)
	b.want(b.sends(at(0)), "a", "b", "c", "join")
	b.add("d", isUnknown)
	b.add("leave", isForgotten)
	b.o.lose()
	if !errors.Is(b.ends["b"], ErrUnknown) || b.ends["join"] != errNone || b.ends["leave"] != errNone || len(b.ends) != 3 {
		t.Errorf("%v", b.ends)
	}
	b.want(b.sends(at(2)), "a", "c", "d")
	b.o.lose()
	b.want(b.sends(at(61)))
	if !errors.Is(b.ends["a"], ErrUnknown) || !errors.Is(b.ends["c"], ErrUnknown) || !errors.Is(b.ends["d"], ErrUnknown) {
		t.Errorf("a minute after they were first sent: %v", b.ends)
	}
}

func TestOutboxWindow(t *testing.T) {
	b := newBench(t, Bound{1000, 1e9})
	for i := range window + 2 {
		b.add(fmt.Sprint(i), isUnknown)
	}
	if got := b.sends(at(0)); len(got) != window {
		t.Fatalf("%d in flight", len(got))
	}
	c := b.o.answered(7)
	c.done(nil, nil)
	b.want(b.sends(at(0)), fmt.Sprint(window))
	if b.o.answered(7) != nil || b.o.answered(9999) != nil {
		t.Error("a reply to nothing is taken for one")
	}
	if b.ends["6"] != errNone || len(b.ends) != 1 {
		t.Errorf("%v", b.ends)
	}
}

func TestOutboxIsBounded(t *testing.T) {
	for _, bound := range []Bound{{3, 1e9}, {1000, 399}} {
		b := newBench(t, bound)
		for _, name := range []string{"a", "b", "c"} {
			if err := b.add(name, isUnknown); err != nil {
				t.Error(err)
			}
		}
		if err := b.add("d", isUnknown); err != ErrFull {
			t.Errorf("reject: %v", err)
		}
		own := b.call("own", isForgotten)
		own.own, own.publish = true, false
		if err := b.o.add(own); err != nil {
			t.Errorf("the client's own: %v", err)
		}
		b.o.dropOldest = true
		if err := b.add("e", isUnknown); err != nil {
			t.Errorf("drop oldest: %v", err)
		}
		if !errors.Is(b.ends["a"], ErrDropped) || errors.Is(b.ends["a"], ErrUnknown) || len(b.ends) != 1 {
			t.Errorf("%v", b.ends)
		}
		command := b.call("command", isUnknown)
		command.publish = false
		if err := b.o.add(command); err != ErrFull {
			t.Errorf("a command drops nothing: %v", err)
		}
		b.want(b.sends(at(0)), "b", "c", "own", "e")
		if b.o.count != 0 || b.o.bytes != 0 {
			t.Errorf("counts %d, %d", b.o.count, b.o.bytes)
		}
	}
	b := newBench(t, Bound{3, 50})
	if err := b.add("large", isUnknown); err != nil {
		t.Errorf("a single one is always taken: %v", err)
	}
}

func TestOutboxDroppingWhatWasSentLeavesItsOutcomeOpen(t *testing.T) {
	b := newBench(t, Bound{1, 1e9})
	b.o.dropOldest = true
	b.add("a", isRepeated)
	b.sends(at(0))
	b.o.lose()
	b.add("b", isRepeated)
	if err := b.ends["a"]; !errors.Is(err, ErrDropped) || !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

func TestOutboxOfACallerThatHasGone(t *testing.T) {
	b := newBench(t, Bound{10, 1e9})
	waits, flies := b.call("waits", isRepeated), b.call("flies", isRepeated)
	b.o.add(flies)
	b.sends(at(0))
	b.o.add(waits)
	b.o.cancel(waits)
	b.o.cancel(flies)
	b.want(b.sends(at(0)))
	if len(b.o.inflight) != 1 {
		t.Error("its place in the window is free before its reply")
	}
	b.o.lose()
	b.want(b.sends(at(1)))
	if len(b.ends) != 0 || b.o.count != 0 {
		t.Errorf("%v, count %d", b.ends, b.o.count)
	}
}

func TestOutboxEndsAllThatIsThere(t *testing.T) {
	b := newBench(t, Bound{10, 1e9})
	b.add("flies", isRepeated)
	b.sends(at(0))
	b.add("waits", isRepeated)
	b.o.fail(ErrClosed)
	if err := b.ends["flies"]; !errors.Is(err, ErrClosed) || !errors.Is(err, ErrUnknown) {
		t.Errorf("in flight: %v", err)
	}
	if err := b.ends["waits"]; !errors.Is(err, ErrClosed) || errors.Is(err, ErrUnknown) {
		t.Errorf("waiting: %v", err)
	}
	b.want(b.sends(at(0)))
}

// What waited and is said by the next hello takes no place in the queue any more.
func TestOutboxForgetsWhatItCounted(t *testing.T) {
	b := newBench(t, Bound{3, 1e9})
	for range 5 {
		b.add("join", isForgotten)
		b.add("leave", isForgotten)
		b.o.lose()
		delete(b.ends, "join")
		delete(b.ends, "leave")
	}
	if b.o.count != 0 || b.o.bytes != 0 {
		t.Errorf("nothing waits, and %d of %d bytes are counted", b.o.count, b.o.bytes)
	}
}

func TestOutboxKeepsTimes(t *testing.T) {
	b := newBench(t, Bound{10, 1e9})
	ttl := &codec.Publish{Event: "e", TTL: 5 * time.Second, HasTTL: true}
	var refused error
	c := &call{request: ttl, until: at(5), lost: isRepeated, done: func(_ codec.Result, err error) { refused = err }}
	b.o.add(c)
	if b.o.take(at(2)); ttl.TTL != 3*time.Second {
		t.Errorf("after two of five seconds: %v", ttl.TTL)
	}
	b.o.lose()
	b.o.take(at(5))
	var e *Error
	if !errors.As(refused, &e) || e.Code != codec.CodeExpired || !errors.Is(refused, ErrUnknown) {
		t.Errorf("after five, sent before: %v", refused)
	}
	command := &codec.Command{Name: "n"}
	b.o.add(&call{request: command, until: at(7)})
	if b.o.take(at(6)); !command.HasDeadline || command.Deadline != time.Second {
		t.Errorf("%+v", command)
	}
	b.o.add(&call{request: command})
	if b.o.take(at(6)); command.HasDeadline {
		t.Errorf("%+v", command)
	}
}
