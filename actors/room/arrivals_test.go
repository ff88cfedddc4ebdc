package room

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

func newArrivals() *arrivals {
	a := &arrivals{room: mailbox.New(&mailbox.Config{
		Pool: scheduler.NewPool(scheduler.PoolConfig{Workers: 1}), Tenant: scheduler.NewTenant(1), Items: 1, Bytes: 1,
	}, nil)}
	a.signal.InitWork(a)
	return a
}

func arrived1(s string) bridge.Batch { return bridge.Batch{Events: run(s)} }

// What there is no place for is forgotten, all but that it exists.
func TestArrivals(t *testing.T) {
	large := codec.NewEvent(testTopic, "message", mustData(strings.Repeat("x", arrivalsBytes)), codec.Origin{}).At(at("a:1"))
	transient := codec.NewEvent(testTopic, "typing", codec.Data{}, codec.Origin{})
	for _, c := range []struct {
		name string
		do   func(a *arrivals)
		want string // batches, head of the gap
	}{
		{"kept in order", func(a *arrivals) { a.Arrived(arrived1("a:1-2")); a.Arrived(arrived1("a:3")) }, "[1 2] [3]"},
		{"full by number", func(a *arrivals) {
			a.Arrived(arrived1(fmt.Sprint("a:1-", arrivalsItems)))
			a.Arrived(arrived1("a:257-258"))
			a.Arrived(arrived1("a:259"))
		}, "[" + offsets(run("a:1-256")) + "] gap a:259"},
		{"after a gap nothing is kept: it would have to wait for what is missing", func(a *arrivals) {
			a.Gap(at("a:4"))
			a.Arrived(arrived1("a:5"))
		}, "gap a:5"},
		{"what exists is not forgotten for an older batch that comes again", func(a *arrivals) {
			a.Gap(at("a:9"))
			a.Arrived(arrived1("a:5"))
			a.Gap(at("a:7"))
		}, "gap a:9"},
		{"of two epochs it is not known which holds", func(a *arrivals) {
			a.Gap(at("b:9"))
			a.Arrived(arrived1("a:12"))
		}, "gap :0"},
		{"full by size", func(a *arrivals) {
			a.Arrived(arrived1("a:1"))
			a.Arrived(bridge.Batch{Events: []*codec.Event{large}})
		}, "[1] gap a:1"},
		{"one that is larger than the bound is kept alone", func(a *arrivals) {
			a.Arrived(bridge.Batch{Events: []*codec.Event{large}})
		}, "[1]"},
		{"what nobody keeps leaves no gap", func(a *arrivals) {
			a.Arrived(arrived1(fmt.Sprint("a:1-", arrivalsItems)))
			a.Arrived(bridge.Batch{Events: []*codec.Event{transient}})
		}, "[" + offsets(run("a:1-256")) + "]"},
		{"a subscription begins anew", func(a *arrivals) {
			a.Arrived(arrived1("a:1"))
			a.Gap(at("a:4"))
			a.Subscribed(at("b:7"), nil)
			a.Arrived(arrived1("b:8"))
		}, "start b:7 [8]"},
		{"what was taken makes place", func(a *arrivals) {
			a.Arrived(arrived1(fmt.Sprint("a:1-", arrivalsItems)))
			a.Arrived(arrived1("a:257"))
			a.take()
			a.Arrived(arrived1("a:258"))
		}, "[258]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArrivals()
			c.do(a)
			q := a.take()
			var got []string
			if q.subscribed {
				got = append(got, fmt.Sprintf("start %s:%d", q.start.Epoch, q.start.Offset))
			}
			for _, b := range q.batches {
				got = append(got, "["+offsets(b.Events)+"]")
			}
			if q.gap {
				got = append(got, fmt.Sprintf("gap %s:%d", q.head.Epoch, q.head.Offset))
			}
			want(t, "taken", strings.Join(got, " "), c.want)
		})
	}
}

func mustData(v any) codec.Data {
	d, err := codec.NewData(v)
	if err != nil {
		panic(err)
	}
	return d
}

// More arrives than the room takes in a while: it reads the rest, and nobody
// sees the difference.
func TestRoomReadsWhatItCouldNotTake(t *testing.T) {
	s := newStage(t, plain)
	alice := s.peer("alice", 4*arrivalsItems) // who is never behind, and asks for nothing
	alice.join()
	alice.frames()
	for range 3 * arrivalsItems {
		s.broker.sink.Arrived(bridge.Batch{Events: s.broker.publish(1)})
	}
	s.run()
	all := alice.frames()
	want(t, "events", len(all), 3*arrivalsItems)
	for i, f := range all {
		want(t, "in order", f, fmt.Sprint("event ", i+1))
	}
	if s.broker.count == 0 {
		t.Error("no read: the test shows nothing")
	}
}

// Members are served a slice at a time. One who catches up meanwhile, wherever
// it stands, is not given again what it has.
func TestMemberCatchesUpDuringAFanOut(t *testing.T) {
	const members, last = 3 * scheduler.Slice, 50
	for slot := 0; slot < members; slot += scheduler.Slice / 4 {
		s := newStage(t, plain)
		var slow *peer
		for i := range members {
			if i != slot {
				s.member(fmt.Sprint("m", i))
				continue
			}
			slow = s.peer("slow", 32)
			slow.join()
			slow.frames()
		}
		publisher := s.peer("publisher", 64)
		publisher.member = slow.member
		slow.wire.full = true
		for i := range last - 1 {
			publisher.publish("message", fmt.Sprint(i))
		}
		publisher.publishing("message", "1")
		for !s.room.fanout.busy() && s.pool.Step() {
		}
		if !s.room.fanout.busy() {
			t.Fatal("the fan-out was over at once")
		}
		slow.wire.open()
		s.run()
		all := slow.frames()
		want(t, fmt.Sprint("events for member ", slot), len(all), last)
		for i, f := range all {
			want(t, "in order", f, fmt.Sprint("event ", i+1))
		}
	}
}
