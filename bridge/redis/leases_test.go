package redis_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// node names a bridge, and puts it on the keys of all who have that prefix.
func node(name, prefix string) func(*redis.Config) {
	return func(c *redis.Config) { c.Node, c.KeyPrefix, c.ChannelPrefix = name, prefix, prefix }
}

func TestLeases(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	bridgetest.TestLeases(t, func(t *testing.T, o bridgetest.Options) bridgetest.LeaseTrial {
		o.Clock.Real(40 * time.Millisecond)
		s.Flush()
		return bridgetest.LeaseTrial{
			A: redis.NewLeases(open(t, s.Address(), node("a", "l:"))), B: redis.NewLeases(open(t, s.Address(), node("b", "l:"))),
			Lose: s.Flush,
		}
	})
}

// leaseCalls makes calls of leases synchronous.
type leaseCalls struct {
	*redis.Leases
	lost chan bridge.Lease
}

func leasesOf(b *redis.Bridge) leaseCalls {
	l := leaseCalls{redis.NewLeases(b), make(chan bridge.Lease, 1024)}
	l.Fenced(func(lost bridge.Lease) { l.lost <- lost })
	return l
}

func (l leaseCalls) renew(held ...bridge.Lease) *codec.Error {
	answer := make(chan *codec.Error, 1)
	l.Renew(held, time.Minute, func(err *codec.Error) { answer <- err })
	return <-answer
}

func (l leaseCalls) acquire(held bridge.Lease) (bridge.Acquired, *codec.Error) {
	answer := make(chan *codec.Error, 1)
	var a bridge.Acquired
	l.Acquire(bridge.Claim{Lease: held, TTL: time.Minute}, func(got bridge.Acquired, err *codec.Error) {
		a = got
		answer <- err
	})
	err := <-answer
	return a, err
}

func (l leaseCalls) release(held bridge.Lease) *codec.Error {
	answer := make(chan *codec.Error, 1)
	l.Release(held, func(err *codec.Error) { answer <- err })
	return <-answer
}

func (l leaseCalls) owner(held bridge.Lease) (text string, err *codec.Error) {
	done := make(chan struct{})
	l.Lookup(held.Tenant, held.Session, func(o bridge.Owner, found bool, bad *codec.Error) {
		text, err = fmt.Sprint(o, found), bad
		close(done)
	})
	<-done
	return text, err
}

func numbered(n int) bridge.Lease {
	return bridge.Lease{Tenant: "acme", Session: "s" + strconv.Itoa(n), Generation: 1, Nonce: 1}
}

// Who is taken over by another node hears of it at once, before any renewal.
func TestTakeoverIsToldAtOnce(t *testing.T) {
	s := server.Start(t)
	a, b := leasesOf(open(t, s.Address(), node("a", "l:"))), leasesOf(open(t, s.Address(), node("b", "l:")))
	held := bridge.Lease{Tenant: "acme", Session: "s", Generation: 1, Nonce: 1<<64 - 1}
	if err := a.renew(held); err != nil {
		t.Fatal(err)
	}
	if got, err := b.acquire(bridge.Lease{Tenant: "acme", Session: "s", Generation: 1, Nonce: 2}); err != nil || got.Verdict != bridge.Taken {
		t.Fatal(got, err)
	}
	select {
	case lost := <-a.lost:
		if lost != held {
			t.Errorf("told of %v, held %v", lost, held)
		}
	case <-time.After(10 * time.Second):
		t.Error("not told")
	}
}

// What anybody may send to a node's channel fences nobody unless it is whole.
func TestMessagesToANodeThatSayNothing(t *testing.T) {
	s := server.Start(t)
	a := leasesOf(open(t, s.Address(), node("a", "l:")))
	if err := a.renew(numbered(1)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "1", "1 fenced", "1 fenced acme s1 1", "1 fenced acme s1 x 1", "1 fenced acme s1 1 -1", "2 fenced acme s1 1 1", "1 other acme s1 1 1"} {
		until(t, func() string { return "nobody listens" }, func() bool { return s.Do("PUBLISH", "l:ctl:a", text) == "1" })
	}
	s.Do("PUBLISH", "l:ctl:a", "1 fenced acme last 7 8 and what may come later")
	if lost := <-a.lost; lost != (bridge.Lease{Tenant: "acme", Session: "last", Generation: 7, Nonce: 8}) {
		t.Errorf("told of %v", lost)
	}
}

// A session that was ended is not brought back by a renewal that comes late, nor by
// one that was never written.
func TestReleaseIsNotUndoneByALateRenewal(t *testing.T) {
	s := server.Start(t)
	a := leasesOf(open(t, s.Address(), node("a", "l:")))
	for n, written := range []bool{true, false} {
		held := numbered(n)
		if written {
			if err := a.renew(held); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.release(held); err != nil {
			t.Fatal(err)
		}
		if err := a.renew(held); err != nil {
			t.Fatal(err)
		}
		if owner, err := a.owner(held); err != nil || owner != fmt.Sprint(bridge.Owner{}, false) {
			t.Errorf("written %v: held by %v, %v", written, owner, err)
		}
		if left := s.Do("PTTL", "l:session:acme:"+held.Session); left == "-1" {
			t.Error("what is left of it stays for ever")
		}
	}
	select {
	case lost := <-a.lost:
		t.Errorf("fenced: %v", lost)
	default:
	}
}

// As many as there are, and over more than one call.
func TestRenewalsOfMany(t *testing.T) {
	s := server.Start(t)
	a, b := leasesOf(open(t, s.Address(), node("a", "l:"))), leasesOf(open(t, s.Address(), node("b", "l:")))
	var all []bridge.Lease
	for n := range 1300 {
		all = append(all, numbered(n))
	}
	if err := a.renew(all...); err != nil {
		t.Fatal(err)
	}
	other := numbered(777)
	other.Nonce = 2
	if got, err := b.acquire(other); err != nil || got.Verdict != bridge.Taken {
		t.Fatal(got, err)
	}
	<-a.lost
	if err := a.renew(all...); err != nil {
		t.Fatal(err)
	}
	if lost := <-a.lost; lost != all[777] || len(a.lost) > 0 {
		t.Errorf("%v is lost, and %d more", lost, len(a.lost))
	}
	if n, err := strconv.Atoi(s.Do("DBSIZE")); err != nil || n != len(all) {
		t.Errorf("%d keys, %v", n, err)
	}
	if err := a.renew(); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// A server that is away answers nobody, and nobody is fenced; what it lost meanwhile
// comes back with the renewals.
func TestB144_LeasesOutliveTheServer(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	bridge1 := open(t, s.Address(), node("a", "l:"))
	a := leasesOf(bridge1)
	if err := a.renew(numbered(1)); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	for name, err := range map[string]*codec.Error{
		"renewal": a.renew(numbered(1)),
		"claim":   func() *codec.Error { _, err := a.acquire(numbered(1)); return err }(),
		"release": a.release(numbered(1)),
		"lookup":  func() *codec.Error { _, err := a.owner(numbered(1)); return err }(),
	} {
		if err == nil || err.Code != codec.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Restart()
	up(t, bridge1, bridge.Up)
	if err := a.renew(numbered(1)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(bridge.Owner{Node: "a", Generation: 1}, true)
	if owner, err := a.owner(numbered(1)); err != nil || owner != want {
		t.Errorf("held by %v, %v", owner, err)
	}
	if len(a.lost) > 0 {
		t.Errorf("fenced: %v", <-a.lost)
	}
}
