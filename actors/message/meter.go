package message

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/internal/telemetry"
)

// Refusals are counted by their code.
type Refusals [codec.CodeUnknownType + 1]atomic.Uint64

// Count counts one. A code that is none, which a program may make, is a fault of its.
func (r *Refusals) Count(err *codec.Error) {
	code := err.Code
	if int(code) >= len(r) {
		code = codec.CodeInternal
	}
	r[code].Add(1)
}

// Meter is what is measured of all rooms of one kind. Nil: nothing is.
type Meter struct {
	// atomics
	Taken      [codec.Coalesced + 1]atomic.Uint64 // publishes, by codec.Outcome
	Duplicates atomic.Uint64                      // answered by the result of an earlier one
	Refused    Refusals
	Handlers   atomic.Uint64 // made anew after a panic
	Broker     BrokerMeter

	// Called is told how long some calls of handlers have taken. Immutable.
	Called func(time.Duration)
}

// BrokerMeter is what of their events goes through the broker.
type BrokerMeter struct {
	// atomics
	Taken, Duplicates atomic.Uint64 // publications
	Refused           Refusals
	Received          atomic.Uint64 // events
	Filled, Unfilled  atomic.Uint64 // gaps in what was received: read from the history, or not there any more
}

// Gap counts one that is over.
func (m *Meter) Gap(filled bool) {
	switch {
	case m == nil:
	case filled:
		m.Broker.Filled.Add(1)
	default:
		m.Broker.Unfilled.Add(1)
	}
}

// Published counts what the publisher of an event is told.
func (m *Meter) Published(ok *codec.PublishResult, err *codec.Error) {
	switch {
	case m == nil:
	case err != nil:
		m.Refused.Count(err)
	case ok.Duplicate:
		m.Duplicates.Add(1)
	default:
		m.Taken[ok.Outcome].Add(1)
	}
}

// Restarted counts a handler that is made anew.
func (m *Meter) Restarted() {
	if m != nil {
		m.Handlers.Add(1)
	}
}

// Samples is true for a call of a handler that is to be measured.
func (m *Meter) Samples() bool { return m != nil && rand.Uint32()%telemetry.EveryCall == 0 }

// Stage is a part of an event's way.
type Stage uint8

const (
	Queued    Stage = iota // until the room turned to it
	Handled                // by the room's handler
	FannedOut              // to the room's members
)

// Trace follows one event on its way. Callable from any goroutine.
type Trace interface {
	// Begin begins a stage; the one before need not have ended.
	Begin(Stage)
	// End ends it.
	End(Stage)
	// Context is what other nodes are told of it; nil: nothing.
	Context() *codec.Trace
	// Published is told what the publisher is told. Stages may follow.
	Published(ok *codec.PublishResult, err *codec.Error)
}
