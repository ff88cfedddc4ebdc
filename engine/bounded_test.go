package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
	link "github.com/yaza-dev/pulse/transport/memory"
)

// crowd is members that take at once all they are sent, without buffers of their
// own that a heap would show, and check its order.
type crowd struct {
	members int
	total   atomic.Int64 // events that all have got
	goal    atomic.Int64
	reached chan struct{}
	ends    []func()
}

func newCrowd(t *testing.T, e *Engine, n int, room string) *crowd {
	c := &crowd{members: n, reached: make(chan struct{}, 1)}
	for i := range n {
		conn := &eager{t: t, crowd: c, welcome: make(chan struct{})}
		r := conn.accepted(e)
		r.Message([]byte(fmt.Sprintf(`{"t":"hello","token":"acme/m%d","rooms":[{"room":%q}]}`, i, room)), false)
		<-conn.welcome
		c.ends = append(c.ends, func() { r.Closed(codec.CauseNormal) })
	}
	return c
}

// have waits until everybody has the offset.
func (c *crowd) have(t *testing.T, offset uint64) {
	t.Helper()
	goal := int64(c.members) * int64(offset)
	c.goal.Store(goal)
	late := time.After(60 * time.Second)
	for c.total.Load() < goal {
		select {
		case <-c.reached:
		case <-late:
			t.Fatalf("%d events of %d have arrived", c.total.Load(), goal)
		}
	}
}

func (c *crowd) leave() {
	for _, end := range c.ends {
		end()
	}
}

// eager is the connection of one member of a crowd. Its fields are the drain's.
type eager struct {
	t       *testing.T
	crowd   *crowd
	welcome chan struct{} // closed by the first frame
	open    bool
	offset  uint64
}

func (c *eager) accepted(e *Engine) transport.Receiver {
	r, _ := http.NewRequest(http.MethodGet, "http://memory/v1/ws", nil)
	r.RemoteAddr = "127.0.0.1:1"
	if err := e.Admit(r); err != nil {
		c.t.Fatal(err)
	}
	return e.Accept(c, transport.NewRequest(r))
}

func (c *eager) Framing() *codec.Framing   { return link.FramingOf(protocol(codec.JSON)) }
func (c *eager) Name() string              { return "eager" }
func (c *eager) OnReady(func(error))       {}
func (c *eager) Close(codec.Cause, string) {}
func (c *eager) Write(b []byte) (bool, error) {
	for len(b) > 0 {
		n := 4 + binary.BigEndian.Uint32(b)
		c.frame(b[4:n])
		b = b[n:]
	}
	return true, nil
}

func (c *eager) frame(doc []byte) {
	if !c.open {
		c.open = true
		close(c.welcome)
		return
	}
	if c.offset++; !bytes.HasPrefix(doc, []byte(`{"t":"event"`)) || offsetOf(doc) != c.offset {
		c.t.Errorf("as event %d: %.200s", c.offset, doc)
	}
	if c.crowd.total.Add(1) == c.crowd.goal.Load() {
		select {
		case c.crowd.reached <- struct{}{}:
		default:
		}
	}
}

func offsetOf(doc []byte) uint64 {
	_, after, _ := bytes.Cut(doc, []byte(`"offset":`))
	end := bytes.IndexAny(after, ",}")
	n, _ := strconv.ParseUint(string(after[:max(end, 0)]), 10, 64)
	return n
}

// One member that does not read, in a room with 200 that do: what it costs is
// what the ledger says, the others lose nothing, and it is fed when it reads
// again, reset when its position is gone, or cut when it never does.
func TestMemberThatDoesNotRead(t *testing.T) {
	const others, warm = 200, 40
	events := uint64(2000 / scale)
	data := strings.Repeat("x", 8<<10)
	for _, c := range []struct {
		name    string
		history room.History
		timeout time.Duration // of the write that is stuck
	}{
		{"fed", room.History{Events: 4000, Bytes: 64 << 20}, time.Hour},
		{"reset", room.History{Events: 20, Bytes: 1 << 20}, time.Hour},
		{"cut", room.History{Events: 100, Bytes: 1 << 20}, 50 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker := memory.New(memory.Config{})
			t.Cleanup(broker.Close)
			e := start(t, func(cfg *Config) {
				k := openKind
				k.History = c.history
				cfg.Kinds, cfg.Broker = []room.Kind{k}, broker
			})
			members := newCrowd(t, e, others, "chat:1")
			defer members.leave()
			publish := func(from, to uint64) {
				for i := from; i < to; i++ {
					e.publish(t, "acme", "chat:1", "message", data)
					if i%32 == 31 {
						members.have(t, i-31) // the events come no faster than they are read
					}
				}
				members.have(t, to)
			}
			publish(0, warm)
			slow := dial(t, e, codec.JSON, link.Options{Window: 4 << 10, WriteTimeout: c.timeout})
			slow.hello("acme/slow", "chat:1")
			ledger := func() int64 { return e.queue.Used() + e.replay.Used() + broker.Used() }
			booked, before := ledger(), heap()
			publish(warm, warm+events)
			grown, says := int64(heap())-int64(before), ledger()-booked
			t.Logf("the heap has grown by %d KiB, the ledger by %d KiB: queues %d, replay %d, history %d",
				grown>>10, says>>10, e.queue.Used()>>10, e.replay.Used()>>10, broker.Used()>>10)
			if grown > says+says/4 {
				t.Errorf("the heap has grown by %d KiB, the ledger says %d KiB", grown>>10, says>>10)
			}
			if limit := e.cfg.TenantDefaults.QueueBytes; e.queue.Used() > limit {
				t.Errorf("queues hold %d bytes of %d", e.queue.Used(), limit)
			}
			last := warm + events
			switch c.name {
			case "fed":
				for want := uint64(warm + 1); want <= last; want++ {
					if f := slow.next(); f.t() != "event" || f.offset() != want {
						t.Fatalf("as event %d: %v %d", want, f.t(), f.offset())
					}
				}
			case "reset":
				want := uint64(warm + 1)
				f := slow.next()
				for ; f.t() == "event"; f = slow.next() {
					if f.offset() != want {
						t.Fatalf("as event %d: %d", want, f.offset())
					}
					want++
				}
				if f.t() != "reset" || f["reason"] != "overflow" || f.offset() < want || f.offset() > last {
					t.Fatalf("after event %d: %v", want-1, f)
				}
				e.publish(t, "acme", "chat:1", "message", "now")
				if next := slow.next(); next.t() != "event" || next.offset() != f.offset()+1 {
					t.Errorf("after the reset to %d: %v", f.offset(), next)
				}
			case "cut":
				if code := slow.closed(); code != 1006 {
					t.Errorf("closed with %d", code)
				}
			}
		})
	}
}

// Whatever a tenant's sessions leave unread, its queues stay within its budget,
// and its members who read are served.
func TestBudgetOfATenantHolds(t *testing.T) {
	const limit = 1 << 20
	e := start(t, func(c *Config) { c.Tenants = map[string]TenantLimits{"acme": {QueueBytes: limit}} })
	members := newCrowd(t, e, 10, "chat:1")
	defer members.leave()
	other := join(t, e, "other/a", "chat:1")
	for i := range 50 {
		c := dial(t, e, codec.JSON, link.Options{Window: 1 << 10, WriteTimeout: time.Hour})
		c.hello(fmt.Sprint("acme/stuck", i), "chat:1")
	}
	data := strings.Repeat("x", 4<<10)
	var refused, most int64
	for i := range uint64(200) {
		_, err := e.Publish(t.Context(), Event{Tenant: "acme", Room: "chat:1", Name: "message", Data: data})
		var coded *codec.Error
		if err != nil && !(errors.As(err, &coded) && coded.RetryAfterMS() > 0) {
			t.Fatalf("event %d: %v", i, err)
		}
		if err != nil {
			refused++
		} else {
			members.have(t, i+1-uint64(refused))
		}
		most = max(most, e.queue.Used())
	}
	t.Logf("at most %d KiB, %d publishes refused", most>>10, refused)
	if refused > 0 {
		t.Errorf("%d publishes were refused for the sake of clients who do not read", refused)
	}
	// Beyond the limit goes what has its place by promise: for each session its
	// replies, and one frame of a queue that is empty.
	if slack := int64(61 * (64 * 200)); most > limit+slack {
		t.Errorf("queues held %d bytes of %d", most, limit)
	}
	e.publish(t, "other", "chat:1", "message", 1)
	other.until("event")
}

// A crowd that has used up what a tenant has for who is present keeps nobody from being
// served: who is not let in hears why, and everybody's requests are answered.
func TestCrowdLeavesRoomForRequests(t *testing.T) {
	e := withPresence(t, func(c *Config) { c.Tenants = map[string]TenantLimits{"acme": {QueueBytes: 32 << 10}} })
	data := strings.Repeat("x", 900)
	for i := range 100 {
		c := dial(t, e, codec.JSON, link.Options{})
		c.hello(fmt.Sprint("acme/", i))
		reply, _ := c.ask(fmt.Sprintf(`{"t":"join","room":"seen:1","data":%q}`, data))
		if code := reply.at("err.code"); code == "quota_exceeded" {
			if i < 5 {
				t.Errorf("there is room for %d members", i)
			}
			if reply, _ := c.ask(`{"t":"history","room":"seen:1"}`); reply.at("ok") == nil {
				t.Errorf("beside the crowd a request is answered %v", reply)
			}
			return
		} else if code != nil {
			t.Fatalf("member %d: %v", i, reply)
		}
	}
	t.Error("the crowd has no bound")
}
