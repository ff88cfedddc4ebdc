package backpressure

// Outcome is what became of an offered entry. It is a value and no error: being refused is part of a bounded queue's normal life.
type Outcome uint8

const (
	// Accepted: it waits in the queue.
	Accepted Outcome = iota
	// Coalesced: it waits in the place of an older one with its key.
	Coalesced
	// Backpressured: the queue is full.
	Backpressured
	// Expired: its deadline passed before it ran.
	Expired
	// Closed: the receiver takes nothing any more.
	Closed
	// QuotaExceeded: an Account would pass its limit.
	QuotaExceeded
	// RateLimited: its sender is over a rate or a number of open requests.
	RateLimited
	// Unavailable: what it needs is away for now.
	Unavailable
	// TooLarge: it would not fit an empty queue, so trying again is useless.
	TooLarge

	outcomes = 9
)

var outcomeNames = [outcomes]string{"accepted", "coalesced", "backpressured", "expired", "closed", "quota_exceeded", "rate_limited", "unavailable", "too_large"}

// String is the outcome's name on metrics, and on the wire where the wire has it.
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeNames[o]
	}
	return "unknown"
}

// Took reports whether the entry is in the queue.
func (o Outcome) Took() bool { return o <= Coalesced }
