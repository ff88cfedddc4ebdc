package bridgetest

import (
	"fmt"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func leaseBegins(l *leases) {
	l.holds("s", "", 0)
	l.refused(l.B, lease("s", 1, 2), bridge.Ended)
	l.holds("s", "", 0)
	l.renew(l.A, lease("s", 1, 1))
	l.holds("s", "a", 1)
	l.renew(l.A, lease("s", 1, 1))
	l.holds("s", "a", 1)
	l.silent()
}

func leaseClaims(l *leases) {
	l.renew(l.A, lease("s", 1, 1))
	second := l.take(l.B, lease("s", 1, 2))
	if second.Generation != 2 {
		l.Errorf("generation %d", second.Generation)
	}
	l.holds("s", "b", 2)
	// The token that brought it serves no second time, on no node.
	l.refused(l.A, lease("s", 1, 3), bridge.Outdated)
	l.refused(l.B, lease("s", 1, 4), bridge.Outdated)
	l.holds("s", "b", 2)
	// A store that went back in time knows less than a token proves.
	if fifth := l.take(l.B, lease("s", 4, 5)); fifth.Generation != 5 {
		l.Errorf("generation %d of a claim of 4", fifth.Generation)
	}
	l.refused(l.B, lease("s", 2, 6), bridge.Outdated)
}

func leaseRace(l *leases) {
	l.renew(l.A, lease("s", 1, 1))
	const claims = 16
	verdicts := make(chan bridge.Verdict, claims)
	for i := range claims {
		by := l.A
		if i%2 > 0 {
			by = l.B
		}
		go by.Acquire(bridge.Claim{Lease: lease("s", 1, uint64(10+i)), TTL: l.clock.seconds(leaseTTL)},
			func(a bridge.Acquired, err *codec.Error) { verdicts <- a.Verdict })
	}
	count := map[bridge.Verdict]int{}
	for range claims {
		count[receive(l.T, verdicts, "an answer to a claim")]++
	}
	if got := fmt.Sprint(count); count[bridge.Taken] != 1 || count[bridge.Outdated] != claims-1 {
		l.Errorf("verdicts: %s", got)
	}
}

func leaseFenced(l *leases) {
	first := lease("s", 1, 1)
	l.renew(l.A, first, lease("other", 1, 1))
	second := l.take(l.B, lease("s", 1, 2))
	l.renew(l.A, first, lease("other", 1, 1)) // at the latest now it is told
	if told := l.told(0); len(told) == 0 || len(told) > 2 || told[0] != first || told[len(told)-1] != first {
		l.Errorf("told %v, want %v", told, first)
	}
	l.holds("s", "b", 2)
	l.holds("other", "a", 1)
	l.release(l.A, first) // not its own any more
	l.holds("s", "b", 2)
	// Back where it was: the node is not told of what it has claimed itself.
	l.take(l.A, lease("s", 2, 3))
	l.take(l.A, lease("s", 3, 4))
	l.holds("s", "a", 4)
	if told := l.told(0); len(told) > 0 {
		l.Errorf("told of its own claims: %v", told)
	}
	l.renew(l.B, second)
	if told := l.told(1); len(told) == 0 || told[0] != second {
		l.Errorf("told %v, want %v", told, second)
	}
}

func leaseNonce(l *leases) {
	l.renew(l.A, lease("s", 2, 1))
	other := lease("s", 2, 9) // as a store hands it out that lost the first
	l.renew(l.B, other)
	l.heard(1, other)
	l.holds("s", "a", 2)
	l.release(l.B, other)
	l.holds("s", "a", 2)
	l.silent()
}

func leaseWrittenBack(l *leases) {
	held := []bridge.Lease{lease("s", 3, 1), lease("r", 1, 1)}
	l.renew(l.A, held...)
	l.Lose()
	l.holds("s", "", 0)
	l.renew(l.A, held...)
	l.holds("s", "a", 3)
	l.holds("r", "a", 1)
	l.silent()
	// Of two who write back the higher stays, whoever comes first.
	l.Lose()
	newer := lease("s", 4, 2)
	l.renew(l.A, held[0])
	l.renew(l.B, newer)
	l.holds("s", "b", 4)
	l.silent()
	l.Lose()
	l.renew(l.B, newer)
	l.renew(l.A, held[0])
	l.holds("s", "b", 4)
	l.heard(0, held[0])
}

func leaseExpires(l *leases) {
	l.renew(l.A, lease("s", 1, 1), lease("renewed", 1, 1), lease("taken", 1, 1))
	l.clock.pass(leaseTTL - 10)
	l.renew(l.A, lease("renewed", 1, 1))
	l.take(l.B, lease("taken", 1, 2))
	l.clock.pass(15)
	l.holds("s", "", 0)
	l.holds("renewed", "a", 1)
	l.holds("taken", "b", 2)
	l.refused(l.B, lease("s", 1, 2), bridge.Ended)
	l.clock.pass(leaseTTL)
	l.holds("renewed", "", 0)
	l.holds("taken", "", 0)
}

func leaseReleased(l *leases) {
	l.renew(l.A, lease("s", 2, 1))
	for _, not := range []bridge.Lease{lease("s", 1, 1), lease("s", 3, 1), lease("s", 2, 2), lease("r", 2, 1)} {
		l.release(l.A, not)
		l.holds("s", "a", 2)
	}
	l.release(l.A, lease("s", 2, 1))
	l.holds("s", "", 0)
	l.refused(l.B, lease("s", 2, 3), bridge.Ended)
	l.release(l.A, lease("s", 2, 1))
	l.silent()
}

// Names that would be one if they were put together in one way or another.
func leaseIsolation(l *leases) {
	names := []bridge.Lease{}
	for _, tenant := range []string{"a", "A", "a.b", "a-b", "a_b", "b"} {
		for _, session := range []string{"b", "b.c", "B", "a", "c", "b-c"} {
			names = append(names, bridge.Lease{Tenant: tenant, Session: session, Generation: uint64(len(names) + 1), Nonce: 1})
		}
	}
	l.renew(l.A, names...)
	for i, name := range names {
		l.holdsIn(name.Tenant, name.Session, "a", uint64(i+1))
	}
	l.release(l.A, names[0])
	l.take(l.B, names[1])
	for i, name := range names[2:] {
		l.holdsIn(name.Tenant, name.Session, "a", uint64(i+3))
	}
}

func leaseTold(l *leases) {
	text := "any bytes: \x00 \n 1 fenced a b 1 1 \xff"
	said := false
	for tries := 0; !said && tries < 200; tries++ { // it may be lost, while nobody listens yet
		l.A.Tell("nobody", []byte("to nobody"))
		l.A.Tell("b", []byte(text))
		select {
		case got := <-l.said[1]:
			if said = true; got != text {
				l.Errorf("b was told %q, not %q", got, text)
			}
		case <-time.After(50 * time.Millisecond):
		}
	}
	if !said {
		l.Fatal("nothing comes")
	}
	l.B.Tell("a", []byte("back"))
	if got := receive(l.T, l.said[0], "what a is told"); got != "back" {
		l.Errorf("a was told %q", got)
	}
	l.silent()
	l.A.Close()
	l.A.Tell("b", []byte("from who is closed"))
	l.B.Tell("a", []byte("to who is closed"))
	l.renew(l.B, lease("s", 1, 1)) // by when it would have come
	for n := len(l.said[1]); n > 0; n-- {
		if got := <-l.said[1]; got != text {
			l.Errorf("b was told %q", got)
		}
	}
	if n := len(l.said[0]); n > 0 {
		l.Errorf("a was told %d times more", n)
	}
}

func leaseClosed(l *leases) {
	l.renew(l.A, lease("s", 1, 1))
	l.A.Close()
	l.A.Close()
	errs := make(chan *codec.Error, 4)
	l.A.Renew([]bridge.Lease{lease("s", 1, 1)}, l.clock.seconds(leaseTTL), func(err *codec.Error) { errs <- err })
	l.A.Acquire(bridge.Claim{Lease: lease("s", 1, 2), TTL: l.clock.seconds(leaseTTL)}, func(_ bridge.Acquired, err *codec.Error) { errs <- err })
	l.A.Release(lease("s", 1, 1), func(err *codec.Error) { errs <- err })
	l.A.Lookup("acme", "s", func(_ bridge.Owner, _ bool, err *codec.Error) { errs <- err })
	for range 4 {
		if err := receive(l.T, errs, "an answer"); err == nil || err.Code != codec.CodeUnavailable {
			l.Errorf("after Close: %v", err)
		}
	}
	// Nothing was released, and another node goes on.
	if second := l.take(l.B, lease("s", 1, 3)); second.Generation != 2 {
		l.Errorf("generation %d", second.Generation)
	}
}
