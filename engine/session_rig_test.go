package engine

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// deployment is what the nodes of one deployment share.
type deployment struct {
	store  *membridge.LeaseStore
	broker bridge.Broker
	keys   [][]byte
}

func deploy(t *testing.T) *deployment {
	broker := membridge.New(membridge.Config{})
	t.Cleanup(broker.Close)
	return &deployment{membridge.NewLeaseStore(nil), broker, [][]byte{[]byte(strings.Repeat("k", 32))}}
}

// node starts a node of the deployment, whose leases fail as f says.
func (d *deployment) node(t *testing.T, name string, f *faults, change func(*Config)) *Engine {
	return start(t, func(c *Config) {
		c.Node, c.Broker, c.DeploymentKeys = name, d.broker, d.keys
		f.Leases = membridge.NewLeases(name, d.store)
		c.Leases = f
		c.Limits.Ping = 48 * time.Hour // tests of long lives do not answer
		if change != nil {
			change(c)
		}
	})
}

// holder is who holds a session, by the store.
func (d *deployment) holder(tenant, session string) (o bridge.Owner, found bool) {
	l := membridge.NewLeases("looks", d.store)
	l.Lookup(tenant, session, func(is bridge.Owner, known bool, _ *codec.Error) { o, found = is, known })
	return o, found
}

// faults are leases whose store may be away or mute.
type faults struct {
	bridge.Leases

	mu sync.Mutex
	// guarded by mu
	away bool
	hung bool // claims are never answered
	mute bool // what is fenced is told by the next renewal only
}

func (f *faults) set(away, mute bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away, f.mute = away, mute
}

func (f *faults) is() (away, mute bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.away, f.mute
}

var errAway = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "away")

func (f *faults) Fenced(told func(bridge.Lease)) {
	f.Leases.Fenced(func(lost bridge.Lease) {
		if _, mute := f.is(); !mute {
			told(lost)
		}
	})
}

func (f *faults) Acquire(c bridge.Claim, done func(bridge.Acquired, *codec.Error)) {
	f.mu.Lock()
	away, hung := f.away, f.hung
	f.mu.Unlock()
	switch {
	case hung:
		return
	case away:
		done(bridge.Acquired{}, errAway)
		return
	}
	f.Leases.Acquire(c, done)
}

func (f *faults) Renew(held []bridge.Lease, ttl time.Duration, done func(*codec.Error)) {
	away, _ := f.is()
	if away {
		done(errAway)
		return
	}
	f.set(away, false)
	f.Leases.Renew(held, ttl, done)
}

func (f *faults) Release(l bridge.Lease, done func(*codec.Error)) {
	if away, _ := f.is(); away {
		done(errAway)
		return
	}
	f.Leases.Release(l, done)
}

// resume dials and says hello with a resume token; the welcome is returned.
func resume(t *testing.T, e *Engine, in codec.Codec, token string, from any, rooms ...string) (*client, frame) {
	t.Helper()
	c := dial(t, e, in, memory.Options{})
	return c, c.resume(token, from, rooms...)
}

func (c *client) resume(token string, from any, rooms ...string) frame {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"t":"hello","token":%q,"resume":%q,"rooms":[%s]}`, token, from, strings.Join(rooms, ",")))
	w := c.next()
	if w.t() != "welcome" {
		c.t.Fatalf("no welcome: %v", w)
	}
	return w
}

// cut breaks the connection off and waits until the server knows.
func (c *client) cut() {
	c.conn.Cut()
	<-c.conn.Done()
}
