package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

// flood is a room kind whose rooms keep themselves busy: each event that is
// handled offers the next, so that their mailboxes are never empty and nobody
// outside competes for the processors. It notes how long its own events wait.
type flood struct {
	e *Engine

	// guarded by mu
	mu      sync.Mutex
	delays  []time.Duration
	stopped bool
}

// epoch is what the offers of events are timed from.
var epoch = time.Now()

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
	var at int64
	_ = e.Data.Unmarshal(&at)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delays = append(f.delays, time.Since(epoch)-time.Duration(at))
	return !f.stopped
}

func (f *flood) offer(tenant, room string) {
	_, _ = f.e.TryPublish(Event{Tenant: tenant, Room: room, Name: "typing", Data: int64(time.Since(epoch))})
}

// seen are the waits since it was asked last.
func (f *flood) seen() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.delays
	f.delays = nil
	return d
}

func (f *flood) stop() {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// probe measures how long an event waits for its room, one at a time.
func (e *Engine) probe(t *testing.T, tenant, room string, waits <-chan time.Duration) time.Duration {
	var delays []time.Duration
	for range 100 {
		if o, err := e.TryPublish(Event{Tenant: tenant, Room: room, Name: "typing", Data: int64(time.Since(epoch))}); err != nil || o != backpressure.Accepted {
			t.Fatalf("probe: %v, %v", o, err)
		}
		delays = append(delays, <-waits)
	}
	return median(delays)
}

// An event of a quiet tenant, or of a quiet room beside a giant one of the same
// tenant, waits about as long as it would alone, and nothing like the events of
// those who flood. Only ratios are asserted: the machine's load moves both.
func TestQuietRoomsBesideFloodingOnes(t *testing.T) {
	for _, c := range []struct {
		name, tenant string
		rooms        int
	}{
		{"of another tenant", "busy", 16},
		{"of the same tenant", "quiet", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &flood{}
			waits := make(chan time.Duration, 1)
			f.e = start(t, func(cfg *Config) {
				cfg.TenantDefaults.QueueBytes = 256 << 20
				cfg.Kinds = []room.Kind{f.kind(), kind("probe", one(&puppet{
					publish: func(_ *room.Context, e *room.Event) error {
						var at int64
						_ = e.Data.Unmarshal(&at)
						waits <- time.Since(epoch) - time.Duration(at)
						return nil
					},
				}))}
			})
			f.e.probe(t, "quiet", "probe:1", waits) // warm
			quiet := f.e.probe(t, "quiet", "probe:1", waits)
			for range 2000 / c.rooms {
				for i := range c.rooms {
					f.offer(c.tenant, fmt.Sprint("flood:", i))
				}
			}
			f.e.probe(t, "quiet", "probe:1", waits) // until it is in full flood
			f.seen()
			var beside time.Duration
			var floods []time.Duration
			for len(floods) < 2000 {
				beside = max(beside, f.e.probe(t, "quiet", "probe:1", waits))
				floods = append(floods, f.seen()...)
			}
			f.stop()
			own := median(floods)
			t.Logf("waits %v alone, %v beside a flood whose events wait %v", quiet, beside, own)
			if beside > own/4 {
				t.Errorf("a quiet room's event waits %v, those of the flood %v", beside, own)
			}
		})
	}
}
