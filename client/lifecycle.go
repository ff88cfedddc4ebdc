package client

import (
	"fmt"
	"time"
)

// State is where a client's connection stands.
type State uint8

const (
	Connecting State = iota + 1 // dialing, or waiting for the welcome
	Connected                   // welcome
	Waiting                     // lost; a new attempt follows
	Closed                      // for good
)

var states = [...]string{"none", "connecting", "connected", "waiting", "closed"}

func (s State) String() string { return states[s] }

// edges are the steps that a connection may take.
var edges = [...][]State{
	Connecting: {Connected, Waiting, Closed},
	Connected:  {Waiting, Closed},
	Waiting:    {Connecting, Closed},
	Closed:     {},
}

// lifecycle decides when a lost connection comes back. It is pure: no clock, no
// goroutine; its owner tells it what happened and when.
type lifecycle struct {
	state   State
	backoff backoff
	since   time.Time // of the welcome, while Connected
	renewed bool      // a new token was asked for since the last welcome
}

// plan is what follows an ending.
type plan struct {
	final bool          // stays closed
	wait  time.Duration // else the next attempt comes after this
	renew bool          // and with a new token
}

func newLifecycle(random func(int64) int64) lifecycle {
	return lifecycle{state: Connecting, backoff: backoff{random: random}}
}

func (l *lifecycle) to(next State) {
	for _, s := range edges[l.state] {
		if s == next {
			l.state = next
			return
		}
	}
	panic(fmt.Sprintf("client: no way from %v to %v", l.state, next))
}

// attempt begins the next connection.
func (l *lifecycle) attempt() { l.to(Connecting) }

// welcomed notes a connection that is welcome.
func (l *lifecycle) welcomed(now time.Time) {
	l.to(Connected)
	l.since, l.renewed = now, false
}

// stable is how long a connection must have been welcome for the next backoff to
// begin anew.
const stable = 10 * time.Second

// ended decides what follows the end of a connection or of an attempt. A new
// token, where one is wanted, can be had once per welcome.
func (l *lifecycle) ended(now time.Time, e ending, canRenew bool) plan {
	if l.state == Connected && now.Sub(l.since) >= stable {
		l.backoff.reset()
	}
	verdict := e.verdict()
	renew := verdict == renewToken
	if verdict == stayClosed || renew && (l.renewed || !canRenew) {
		l.to(Closed)
		return plan{final: true}
	}
	l.renewed = l.renewed || renew
	l.to(Waiting)
	first := l.backoff.n == 0
	wait := l.backoff.next()
	switch {
	case e.hint.high > 0:
		wait = l.backoff.within(e.hint)
	case e.soon && first:
		wait = 0
	}
	return plan{wait: wait, renew: renew}
}

// close ends it for good; it may have ended before.
func (l *lifecycle) close() {
	if l.state != Closed {
		l.to(Closed)
	}
}
