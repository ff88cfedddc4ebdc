package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/soak/history"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()%1_000_000), "which faults come when")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Three nodes, 200 clients in 20 rooms, every fault once: no history shows a fault of the
// deployment. `make soak-redis` goes on for longer.
func TestHistoriesOfADeploymentThroughFaults(t *testing.T) {
	o := options{
		Seed: *seed, Settle: 300 * time.Millisecond, Ending: time.Minute,
		Clients: 200, Rooms: 20, Rate: 60, Out: t.Output(),
	}
	l := newLab(t)
	r, err := run(o, l, func(now func() time.Duration) []history.Fault { return l.deal(l.deck(), o, now) })
	if err != nil {
		t.Fatal(err)
	}
	r.write(t.Output())
	if !r.well() {
		t.Error("the histories do not hold")
	}
	if r.Accepted < 500 || r.Delivered < 10*r.Accepted || r.Recovered < 100 || len(r.Resets) == 0 || len(r.Faults) != 8 {
		t.Error("so little happened that it shows nothing")
	}
}

// hall is engines in this process on one broker.
type hall struct {
	addresses []string
	next      atomic.Int64
}

func newHall(t *testing.T, broker bridge.Broker) *hall {
	h := &hall{}
	for range 2 {
		e, err := engine.Start(t.Context(), engine.Config{
			Authenticator: anybody{}, Broker: broker,
			TenantDefaults: engine.TenantLimits{SessionRate: backpressure.Rate{Messages: -1, Bytes: -1}},
			Kinds:          []room.Kind{{Name: "chat", History: room.History{Events: longKept, Bytes: 64 << 20}}, {Name: "short", History: room.History{Events: shortKept}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(e.Handler())
		h.addresses = append(h.addresses, web.Listener.Addr().String())
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := e.Close(ctx); err != nil {
				t.Error(err)
			}
			web.Close()
		})
	}
	return h
}

type anybody struct{}

func (anybody) Authenticate(context.Context, auth.Credentials) (*auth.Identity, error) {
	return &auth.Identity{Tenant: "acme", Subject: "soak", Grants: auth.AllowAll()}, nil
}

func (h *hall) token() string        { return "" }
func (h *hall) kept(room string) int { return kept(room) }

func (h *hall) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, h.addresses[int(h.next.Add(1))%len(h.addresses)])
}

// unfilled is a broker of which no gap is filled: what is to be read is never there.
type unfilled struct{ bridge.Broker }

func (unfilled) Read(_ codec.Topic, _ bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	done(bridge.Page{}, codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Millisecond, "nothing is read"))
}

// counted is a broker that counts what is published.
type counted struct {
	bridge.Broker
	n atomic.Int64
}

func (c *counted) Publish(topic codec.Topic, r bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	c.n.Add(int64(len(batch)))
	c.Broker.Publish(topic, r, batch, done)
}

// The checker finds what a broken bridge loses. Arrivals are dropped in both runs: where
// gaps are filled nothing is found, and where they are not the loss is.
func TestABrokenGapFillIsFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		wrap   func(bridge.Broker) bridge.Broker
		ending time.Duration
		broken bool
	}{
		{"gaps are filled", func(b bridge.Broker) bridge.Broker { return b }, time.Minute, false},
		{"gaps are not filled", func(b bridge.Broker) bridge.Broker { return unfilled{b} }, 2 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			broker := &counted{Broker: c.wrap(bridgetest.Hostile(memory.New(memory.Config{}), 1, bridgetest.HostileOptions{Drop: 20}))}
			t.Cleanup(broker.Close)
			o := options{Seed: 1, Ending: c.ending, Clients: 16, Rooms: 8, Rate: 400, Out: t.Output()}
			r, err := run(o, newHall(t, broker), func(func() time.Duration) []history.Fault {
				for late := time.Now().Add(time.Minute); broker.n.Load() < 200 && time.Now().Before(late); {
					<-time.After(10 * time.Millisecond)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(r.Findings, func(f history.Finding) bool { return f.Rule == history.Loss })
			if found != c.broken || r.well() == c.broken || r.Accepted < 100 {
				r.write(t.Output())
				t.Errorf("loss found: %v, though the gap fill is broken: %v", found, c.broken)
			}
		})
	}
}

// What a run began ends with it, last things first, and logs stay where something failed.
func TestStage(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*stage)
		want string
	}{
		{"all is well", func(s *stage) { s.clean = true }, ""},
		{"something failed", func(s *stage) { s.Fatalf("%d nodes", 2) }, "2 nodes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ended []int
			var dir string
			err := perform(func(s *stage) {
				dir = s.dir
				s.Cleanup(func() { ended = append(ended, 1) })
				s.Cleanup(func() { ended = append(ended, 2) })
				c.play(s)
			})
			if !slices.Equal(ended, []int{2, 1}) {
				t.Errorf("ended in the order %v", ended)
			}
			_, gone := os.Stat(dir)
			if c.want == "" && (err != nil || !errors.Is(gone, os.ErrNotExist)) {
				t.Errorf("%v, %v", err, gone)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || gone != nil) {
				t.Errorf("%v, %v", err, gone)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-rooms", "1"}, {"-clients", "3", "-rooms", "4"}, {"-rate", "0"}, {"more"}, {"-duration", "x"}} {
		var out bytes.Buffer
		if code := command(args, &out, &out); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
