package memory

import (
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// maxWaiting is how many may wait for the commands of one topic that others do.
const maxWaiting = 1024

var (
	errLapsed      = codec.Retry(codec.CodeUnavailable, codec.ScopeRoom, time.Second, "the command did not end in time")
	errManyWait    = codec.Retry(codec.CodeBackpressured, codec.ScopeRoom, time.Second, "too many wait for commands of others")
	errResultLarge = codec.NewError(codec.CodeTooLarge, "the first result was too large to be remembered")
)

// attempts are the commands of a topic that are being done. It is pure.
type attempts struct {
	open    table[repeatKey, *attempt]
	waiting int // in all of them
}

type attempt struct {
	token   uint64
	until   int64 // the first instant at which it is lost
	waiting []func(bridge.Attempted)
}

// answers are callbacks that are owed, to be called without a lock held.
type answers struct {
	to   []func(bridge.Attempted)
	what bridge.Attempted
}

func (a answers) hand() {
	for _, done := range a.to {
		done(a.what)
	}
}

// end takes an attempt out; those who wait are the caller's to answer.
func (a *attempts) end(key repeatKey, at *attempt) []func(bridge.Attempted) {
	a.open.remove(key)
	a.waiting -= len(at.waiting)
	return at.waiting
}

// Attempt implements bridge.Broker.
func (b *Broker) Attempt(name codec.Topic, a bridge.Attempt, done func(bridge.Attempted)) {
	b.makeRoom(recordNeed + repeatCost)
	t := b.enter(name.Tenant)
	if t == nil {
		done(bridge.Attempted{Err: errClosed})
		return
	}
	answer, now, lost := t.attempt(name.Room, a, b.now(), b.tokens.Add(1), done)
	t.mu.Unlock()
	lost.hand()
	if now {
		done(answer)
	}
}

// attempt judges an Attempt. Not now: done waits with the one that does it.
func (t *tenant) attempt(room string, a bridge.Attempt, now int64, token uint64, done func(bridge.Attempted)) (answer bridge.Attempted, ready bool, lost answers) {
	tp, err := t.open(room, now)
	if err != nil {
		return bridge.Attempted{Err: err}, true, lost
	}
	key := newRepeatKey(command, a.Subject, a.Key)
	if first, ok := tp.repeats.find(key, now); ok {
		return *first.done, true, lost
	}
	at, found := tp.attempts.open.get(key)
	switch {
	case found && now < at.until && tp.attempts.waiting >= maxWaiting:
		return bridge.Attempted{Err: errManyWait}, true, lost
	case found && now < at.until:
		at.waiting = append(at.waiting, done)
		tp.attempts.waiting++
		return answer, false, lost
	case found: // the place that it is charged for goes over
		lost = answers{tp.attempts.end(key, at), bridge.Attempted{Err: errLapsed}}
	case tp.repeats.order.Len()+tp.attempts.open.len() >= maxRepeats:
		return bridge.Attempted{Err: errManyKeys}, true, lost
	case !t.charge(repeatCost):
		return bridge.Attempted{Err: t.overBudget(repeatCost)}, true, lost
	}
	tp.attempts.open.put(key, &attempt{token: token, until: now + int64(a.Hold)})
	return bridge.Attempted{Token: token}, true, lost
}

// Settle implements bridge.Broker.
func (b *Broker) Settle(name codec.Topic, s bridge.Settlement) {
	b.makeRoom(int64(s.Result.Len()))
	t := b.enter(name.Tenant)
	if t == nil {
		return // those who waited were answered
	}
	waited := t.settle(name.Room, s, b.now())
	t.mu.Unlock()
	waited.hand()
}

func (t *tenant) settle(room string, s bridge.Settlement, now int64) (waited answers) {
	tp, ok := t.topics.get(room)
	if !ok {
		return waited
	}
	key := newRepeatKey(command, s.Subject, s.Key)
	at, ok := tp.attempts.open.get(key)
	if !ok || at.token != s.Token {
		return waited // it was lost
	}
	waited = answers{tp.attempts.end(key, at), bridge.Attempted{Result: s.Result, Err: s.Err}}
	if s.Err != nil || s.Window <= 0 {
		t.account.Release(repeatCost)
		return waited
	}
	done, cost := bridge.Attempted{Result: s.Result}, int64(s.Result.Len())
	if !t.charge(cost) {
		done, cost = bridge.Attempted{Err: errResultLarge}, 0
	}
	tp.repeats.remember(key, repeat{done: &done}, now, s.Window, repeatCost+cost)
	return waited
}

// lapse ends the attempts of a topic that were not settled in time.
func (t *tenant) lapse(tp *topic, now int64) (lost []func(bridge.Attempted)) {
	for key, at := range tp.attempts.open.entries {
		if now >= at.until {
			lost = append(lost, tp.attempts.end(key, at)...)
			t.account.Release(repeatCost)
		}
	}
	tp.attempts.open.compact()
	return lost
}
