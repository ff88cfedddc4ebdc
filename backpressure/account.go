package backpressure

import "sync/atomic"

// EntryBytes is what one queued entry is charged for itself, beside the bytes that it holds.
const EntryBytes = 32

// Account is one line of the ledger of bytes: session within tenant within node. It is the only memory that actors share. All methods may
// be called from any goroutine.
type Account struct {
	// immutable
	parent *Account

	// atomic
	limit    atomic.Int64
	used     atomic.Int64
	released atomic.Int64 // bytes released that had not been charged: a broken invariant, made safe
}

// NewAccount is an empty account below parent, which is nil at the top. A limit of 0 is no limit of its own; the parents' hold.
func NewAccount(parent *Account, limit int64) *Account {
	a := &Account{parent: parent}
	a.limit.Store(limit)
	return a
}

// Charge books n bytes on this account and all above it, or on none. It is refused by the lowest account that would pass its limit; a
// charge that is being refused higher up may for its moment refuse another of the same account, never one of a sibling below it.
func (a *Account) Charge(n int64) bool {
	for at := a; at != nil; at = at.parent {
		used := at.used.Add(n)
		if limit := at.limit.Load(); limit > 0 && used > limit {
			for undo := a; ; undo = undo.parent {
				undo.used.Add(-n)
				if undo == at {
					return false
				}
			}
		}
	}
	return true
}

// SetLimit gives the account another limit. What is booked beyond it stays until it is released.
func (a *Account) SetLimit(limit int64) { a.limit.Store(limit) }

// Force books n bytes past every limit: for what was promised before, such as a reserved slot. The number of promises is the bound.
func (a *Account) Force(n int64) {
	for at := a; at != nil; at = at.parent {
		at.used.Add(n)
	}
}

// Release takes n bytes off this account and all above it. Releasing more than was charged is a fault of the caller: it panics in race
// builds; else the account stays at zero, and Faults counts it.
func (a *Account) Release(n int64) {
	for at := a; at != nil; at = at.parent {
		if used := at.used.Add(-n); used < 0 {
			if checked {
				panic("backpressure: account released below zero")
			}
			at.used.Add(-used)
			at.released.Add(-used)
		}
	}
}

// Used is the number of bytes booked now.
func (a *Account) Used() int64 { return a.used.Load() }

// Faults is how many bytes were released without having been charged. Anything but zero is a defect.
func (a *Account) Faults() int64 { return a.released.Load() }
