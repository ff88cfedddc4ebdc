package bridge

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Leases says which node holds a session. A session is held through one Lease
// at a time, and whoever acquires it fences the one before. A Leases belongs to
// one node, which is the owner of everything that is claimed and renewed through
// it.
//
// A session begins with the first renewal of a lease that its node has made up,
// of generation 1: its id is random, so nobody else has it, and a new session
// waits for no store. For the same reason a store that lost its records gets
// them back from renewals, and no holder is ended by such a loss.
//
// What is promised: of two holders of one session the one with the higher
// generation stays, of equal ones the one that the store has, and the other's
// node hears of it by Fenced, at the latest when it renews. While the store is
// away, calls are answered with CodeUnavailable and nobody is fenced.
type Leases interface {
	// Fenced sets who is told, once, before any other call. It is told at most
	// once a lease and call that found it lost, from any goroutine, and only
	// posts. What the node itself has claimed anew it is not told.
	Fenced(told func(lost Lease))

	// Acquire takes over a session that has been held before: only if the store
	// knows it, with no generation above the claim's. Else nothing is changed.
	// Of several claims with one generation one is taken.
	Acquire(c Claim, done func(Acquired, *codec.Error))

	// Renew prolongs a batch: each lease ends ttl from now. One that the store does
	// not know, or knows with a lower generation, is written. Those that are held
	// by others stay theirs; Fenced is told before done. held belongs to the callee
	// until done is called.
	Renew(held []Lease, ttl time.Duration, done func(*codec.Error))

	// Release ends the session if l still holds it; else it does nothing.
	Release(l Lease, done func(*codec.Error))

	// Told sets who gets what other nodes tell this one, once, before Tell. It is called
	// from any goroutine, and only posts.
	Told(told func(message []byte))

	// Tell brings a message to a node: once, or never, and nobody says which. The
	// message is not changed afterwards.
	Tell(node string, message []byte)

	// Lookup finds who holds a session.
	Lookup(tenant, session string, done func(o Owner, found bool, err *codec.Error))

	// Close ends it. Nothing is released: leases end by their time.
	Close()
}

// Lease is one holding of one session. The nonce, random, tells two holdings of
// the same generation apart, which a store that lost its data may hand out.
type Lease struct {
	Tenant, Session string
	Generation      uint64
	Nonce           uint64
}

// Claim asks for a session. Its Generation is what the caller can prove to have
// been held (its resume token's); its Nonce is that of the lease to be.
type Claim struct {
	Lease
	TTL time.Duration
}

// Acquired is the answer to a Claim.
type Acquired struct {
	Verdict Verdict
	// Lease is what is held from now on, if Taken: the claim's, with a generation
	// above every earlier one.
	Lease Lease
}

// Verdict says what became of a Claim.
type Verdict uint8

const (
	Taken    Verdict = iota + 1
	Ended            // the store does not know the session
	Outdated         // the session has been held with a higher generation since
)

var verdicts = [...]string{"", "taken", "ended", "outdated"}

func (v Verdict) String() string { return verdicts[v] }

// Owner is a node with the generation that it holds.
type Owner struct {
	Node       string
	Generation uint64
}
