package mailbox

import (
	"github.com/yaza-dev/pulse/backpressure"
)

// chunk is how many entries are booked at once, and base how many stay booked
// while the queue is empty, so that a member who keeps up costs the ledger, which
// all sessions share, nothing per frame.
const (
	chunk = 16
	base  = 4
)

// account is the tenant's for frames.
func (o *Outbound) account() *backpressure.Account { return o.m.cfg.Frames }

// charge books n more frames of size bytes in all, if the session's and the
// ledger's bounds allow.
func (o *Outbound) charge(n, size int) bool {
	items := o.items + int32(n)
	if int(items) > o.cfg.Items || o.bytes+size > o.cfg.Bytes {
		return false
	}
	if items > o.charged {
		if !o.account().Charge(chunk * backpressure.EntryBytes) {
			return false
		}
		o.charged += chunk
	}
	if o.state.has(parked) {
		if !o.account().Charge(int64(size)) {
			return false
		}
		o.held += int64(size)
	}
	o.items = items
	o.bytes += size
	return true
}

// force books one more frame whatever the bounds say: its place was promised.
func (o *Outbound) force(size int) {
	if o.items == o.charged {
		n := int32(chunk)
		if o.charged == 0 {
			n = base
		}
		o.account().Force(int64(n) * backpressure.EntryBytes)
		o.charged += n
	}
	if o.state.has(parked) {
		o.account().Force(int64(size))
		o.held += int64(size)
	}
	o.items++
	o.bytes += size
}

// popped books an entry that has left the queue, whichever way. Its bytes were
// charged only if the socket is full: frames are shared, and those who drain
// hold them for a moment.
func (o *Outbound) popped(e *backpressure.Entry[outEntry]) {
	o.items -= 1 + int32(e.Item.more)
	o.bytes -= e.Size
	if n := min(int64(e.Size), o.held); o.state.has(parked) && n > 0 {
		o.account().Release(n)
		o.held -= n
	}
	switch e.Item.kind &^ markBit {
	case reply:
		o.owed.Add(-1)
	case unasked:
		o.control--
	}
}

// discharge gives the ledger back all but keep entries.
func (o *Outbound) discharge(keep int32) {
	if o.charged > keep {
		o.account().Release(int64(o.charged-keep) * backpressure.EntryBytes)
		o.charged = keep
	}
}

func (o *Outbound) unhold() {
	if o.held > 0 {
		o.account().Release(o.held)
		o.held = 0
	}
	o.state &^= parked
}
