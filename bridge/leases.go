package bridge

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Leases says which node holds a session. A session is held through one Lease
// at a time; whoever acquires it fences the holder before. The node that a
// Leases belongs to is its owner in every lease that it hands out.
//
// What is promised: of two holders of one session the one with the higher
// generation stays, and the other's Holder hears of it, at the latest when it
// renews. A store that lost its records gets them back from renewals, so that
// no holder is ended by such a loss alone. While the store is away, calls are
// answered with CodeUnavailable and nobody is fenced.
type Leases interface {
	// Acquire takes a session for h. The new generation is one above the highest
	// of what the store knows and c.Generation.
	Acquire(c Claim, h Holder, done func(Acquired, *codec.Error))

	// Renew prolongs a batch of held leases. Leases that were lost are told to
	// their Holders; one that the store does not know, or knows with a lower
	// generation, is written back.
	Renew(held []Lease, ttl time.Duration, done func(*codec.Error))

	// Release ends the session's record if l still holds it; else it does
	// nothing. Its Holder hears nothing more.
	Release(l Lease, done func(*codec.Error))

	// Lookup finds who holds a session.
	Lookup(tenant, session string, done func(o Owner, found bool, err *codec.Error))

	// Close ends it. Nothing is released: leases end by their time.
	Close()
}

// Claim asks for a session.
type Claim struct {
	Tenant, Session string

	// Generation is what the caller can prove to have been held (its resume
	// token's); 0 for a new session.
	Generation uint64

	TTL time.Duration
}

// Lease is one holding of one session. The nonce, random, tells two holdings of
// the same generation apart, which a store that lost its data may hand out.
type Lease struct {
	Tenant, Session string
	Generation      uint64
	Nonce           string
}

// Acquired is the answer to a Claim that succeeded.
type Acquired struct {
	Lease Lease

	// Known tells that the store had the session: a claim with a generation
	// resumes it. Otherwise the session had ended, or the store lost it.
	Known bool

	// Previous is who held it; the zero value: nobody, it was detached.
	Previous Owner
}

// Owner is a node with the generation that it holds.
type Owner struct {
	Node       string
	Generation uint64
}

// Holder is told when a lease is lost. It only posts, like a Sink.
type Holder interface {
	// Fenced comes at most once for a lease, after Acquire's done: someone else
	// holds the session from now on.
	Fenced(lost Lease)
}
