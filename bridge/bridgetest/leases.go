package bridgetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// LeaseTrial is what a factory of leases makes: two nodes on one store that knows
// no lease yet. The suite closes both.
type LeaseTrial struct {
	A, B bridge.Leases
	// Lose makes the store forget everything.
	Lose func()
}

// LeaseFactory makes a fresh pair, of the nodes "a" and "b".
type LeaseFactory = func(t *testing.T, o Options) LeaseTrial

// leaseTTL is the life of a lease in seconds, in most tests.
const leaseTTL = 60

// TestLeases is what every Leases must pass.
func TestLeases(t *testing.T, factory LeaseFactory) {
	for _, part := range []struct {
		name string
		run  func(l *leases)
	}{
		{"a renewal begins a session", leaseBegins},
		{"a claim is taken if the session is known and not held higher", leaseClaims},
		{"of claims of one generation one is taken", leaseRace},
		{"who is taken over hears of it and stays so", leaseFenced},
		{"of two of one generation the store's stays", leaseNonce},
		{"what the store lost comes back", leaseWrittenBack},
		{"a lease ends by its time", leaseExpires},
		{"a release ends a session that is held", leaseReleased},
		{"sessions and tenants do not touch each other", leaseIsolation},
		{"what a node is told comes to it, and to no other", leaseTold},
		{"later calls are unavailable", leaseClosed},
	} {
		t.Run(part.name, func(t *testing.T) {
			clock := newClock()
			trial := factory(t, Options{Clock: clock})
			l := &leases{T: t, clock: clock, LeaseTrial: trial}
			l.said = [2]chan string{make(chan string, 16), make(chan string, 16)}
			trial.A.Told(func(m []byte) { l.said[0] <- string(m) })
			trial.B.Told(func(m []byte) { l.said[1] <- string(m) })
			trial.A.Fenced(func(lost bridge.Lease) { l.fenced(0, lost) })
			trial.B.Fenced(func(lost bridge.Lease) { l.fenced(1, lost) })
			t.Cleanup(trial.A.Close)
			t.Cleanup(trial.B.Close)
			part.run(l)
		})
	}
}

// leases is one test's pair, with its calls made synchronous.
type leases struct {
	*testing.T
	LeaseTrial
	clock *Clock
	said  [2]chan string // what the nodes were told by others

	mu sync.Mutex
	// guarded by mu
	lost [2][]bridge.Lease // told to the nodes since they were asked last
}

func (l *leases) fenced(node int, lost bridge.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[node] = append(l.lost[node], lost)
}

// told is what a node was told since it was asked last.
func (l *leases) told(node int) []bridge.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.lost[node]
	l.lost[node] = nil
	return lost
}

// heard: a node was told of exactly this.
func (l *leases) heard(node int, want bridge.Lease) {
	l.Helper()
	if got := l.told(node); len(got) != 1 || got[0] != want {
		l.Errorf("told %v, want %v", got, want)
	}
}

func (l *leases) silent() {
	l.Helper()
	if a, b := l.told(0), l.told(1); len(a)+len(b) > 0 {
		l.Errorf("told %v and %v", a, b)
	}
}

func lease(session string, generation, nonce uint64) bridge.Lease {
	return bridge.Lease{Tenant: "acme", Session: session, Generation: generation, Nonce: nonce}
}

func (l *leases) renew(by bridge.Leases, held ...bridge.Lease) {
	l.Helper()
	answer := make(chan *codec.Error, 2)
	by.Renew(held, l.clock.seconds(leaseTTL), func(err *codec.Error) { answer <- err })
	if err := receive(l.T, answer, "the answer to a renewal"); err != nil {
		l.Fatalf("renew: %v", err)
	}
}

func (l *leases) claim(by bridge.Leases, c bridge.Lease) bridge.Acquired {
	l.Helper()
	type answer struct {
		a   bridge.Acquired
		err *codec.Error
	}
	answers := make(chan answer, 2)
	by.Acquire(bridge.Claim{Lease: c, TTL: l.clock.seconds(leaseTTL)}, func(a bridge.Acquired, err *codec.Error) { answers <- answer{a, err} })
	got := receive(l.T, answers, "the answer to a claim")
	if got.err != nil {
		l.Fatalf("acquire: %v", got.err)
	}
	return got.a
}

// take claims what must be taken.
func (l *leases) take(by bridge.Leases, c bridge.Lease) bridge.Lease {
	l.Helper()
	a := l.claim(by, c)
	if a.Verdict != bridge.Taken || a.Lease.Tenant != c.Tenant || a.Lease.Session != c.Session || a.Lease.Nonce != c.Nonce {
		l.Fatalf("claim %v: %+v", c, a)
	}
	return a.Lease
}

func (l *leases) refused(by bridge.Leases, c bridge.Lease, want bridge.Verdict) {
	l.Helper()
	if a := l.claim(by, c); a.Verdict != want || a.Lease != (bridge.Lease{}) {
		l.Errorf("claim %v: %+v, want %v", c, a, want)
	}
}

func (l *leases) release(by bridge.Leases, held bridge.Lease) {
	l.Helper()
	answer := make(chan *codec.Error, 2)
	by.Release(held, func(err *codec.Error) { answer <- err })
	if err := receive(l.T, answer, "the answer to a release"); err != nil {
		l.Fatalf("release: %v", err)
	}
}

// holds checks who holds a session, as every node sees it; "": nobody.
func (l *leases) holds(session, node string, generation uint64) {
	l.Helper()
	l.holdsIn("acme", session, node, generation)
}

func (l *leases) holdsIn(tenant, session, node string, generation uint64) {
	l.Helper()
	want := fmt.Sprint(bridge.Owner{Node: node, Generation: generation}, node != "", nil)
	for _, from := range []bridge.Leases{l.A, l.B} {
		answer := make(chan string, 2)
		from.Lookup(tenant, session, func(o bridge.Owner, found bool, err *codec.Error) {
			said := any(err)
			if err == nil {
				said = nil
			}
			answer <- fmt.Sprint(o, found, said)
		})
		if got := receive(l.T, answer, "the answer to a lookup"); got != want {
			l.Errorf("%s is held by %s, want %s", session, got, want)
		}
	}
}
