package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// flood is a room kind whose rooms keep themselves busy: each event that is
// handled offers the next, so that their mailboxes are never empty and nobody
// outside competes for the processors. A wait is counted in its events that are
// handled meanwhile, so that no load of the machine makes it longer.
type flood struct {
	e *Engine

	// guarded by mu
	mu      sync.Mutex
	handled int64
	waits   []int64 // of its own events
	stopped bool
}

func (f *flood) kind() room.Kind {
	k := kind("flood", func() room.Handler {
		return &puppet{publish: func(c *room.Context, e *room.Event) error {
			if f.note(e) {
				f.offer(c.Tenant(), c.Room())
			}
			return room.Refuse(codec.CodeForbidden, "it has served")
		}}
	})
	k.MailboxItems = 1 << 13
	return k
}

// note tells whether to go on.
func (f *flood) note(e *room.Event) bool {
	wait := f.since(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled++
	f.waits = append(f.waits, wait)
	return !f.stopped
}

func (f *flood) now() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handled
}

// since is how long an event has waited that was offered with now as its data.
func (f *flood) since(e *room.Event) int64 {
	var at int64
	_ = e.Data.Unmarshal(&at)
	return f.now() - at
}

func (f *flood) offer(tenant, room string) {
	_, _ = f.e.TryPublish(Event{Tenant: tenant, Room: room, Name: "typing", Data: f.now()})
}

// seen are the waits since it was asked last.
func (f *flood) seen() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.waits
	f.waits = nil
	return d
}

func (f *flood) stop() {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
}

func median(d []int64) int64 {
	slices.Sort(d)
	return d[len(d)/2]
}

// probe measures how long an event waits for its room, one at a time.
func (f *flood) probe(t *testing.T, tenant, room string, waits <-chan int64) int64 {
	var all []int64
	for range 100 {
		if o, err := f.e.TryPublish(Event{Tenant: tenant, Room: room, Name: "typing", Data: f.now()}); err != nil || o != backpressure.Accepted {
			t.Fatalf("probe: %v, %v", o, err)
		}
		all = append(all, <-waits)
	}
	return median(all)
}

// An event of a quiet tenant, or of a quiet room beside a giant one of the same
// tenant, waits for a few events of those who flood, and not for all that they have.
func TestQuietRoomsBesideFloodingOnes(t *testing.T) {
	const offered = 2000
	for _, c := range []struct {
		name, tenant string
		rooms        int
	}{
		{"of another tenant", "busy", 16},
		{"of the same tenant", "quiet", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &flood{}
			waits := make(chan int64, 1)
			f.e = start(t, func(cfg *Config) {
				cfg.TenantDefaults.QueueBytes = 256 << 20
				cfg.Kinds = []room.Kind{f.kind(), kind("probe", one(&puppet{
					publish: func(_ *room.Context, e *room.Event) error { waits <- f.since(e); return nil },
				}))}
			})
			for range offered / c.rooms {
				for i := range c.rooms {
					f.offer(c.tenant, fmt.Sprint("flood:", i))
				}
			}
			f.probe(t, "quiet", "probe:1", waits) // until it is in full flood
			f.seen()
			var beside int64
			var floods []int64
			for len(floods) < offered {
				beside = max(beside, f.probe(t, "quiet", "probe:1", waits))
				floods = append(floods, f.seen()...)
			}
			f.stop()
			own := median(floods)
			t.Logf("waits for %d events of a flood whose own wait for %d", beside, own)
			if own < offered/4 || beside > own/8 {
				t.Errorf("a quiet room's event waits for %d of a flood's, its own for %d", beside, own)
			}
		})
	}
}
