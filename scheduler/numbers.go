package scheduler

import "time"

// The numbers of the scheduler, all in one place. A unit of cost is one message or one KiB.
const (
	// Quantum is what a flow may spend in one visit, in units; a tenant's is multiplied by its weight.
	Quantum = 64
	// MaxWeight is the most that a tenant's weight counts.
	MaxWeight = 1 << 20
	// UnitTime turns measured time into units. At two microseconds a unit a quantum is some sixteen small socket writes.
	UnitTime = 2 * time.Microsecond
	// MaxCorrection bounds what measured time may charge, in multiples of the model's cost: preemption and GC are nobody's debt.
	MaxCorrection = 4

	// BatchMessages, BatchBytes and BatchTime bound one batch of a mailbox.
	BatchMessages = 64
	BatchBytes    = 256 << 10
	BatchTime     = time.Millisecond

	// WriteBytes and WriteFrames bound one write of a session's drain.
	WriteBytes  = 64 << 10
	WriteFrames = 64

	// Slice is how many members a fan-out serves before it yields.
	Slice = 64

	// ControlEvery: one group in so many serves control work only, while there is any.
	ControlEvery = 8

	// Tick is the resolution of the timer wheel.
	Tick = 10 * time.Millisecond

	// StuckAfter is how long a Run may take before it is reported, and StuckPerTenant how many of a tenant's may be stuck before none of
	// its work is started any more.
	StuckAfter     = time.Second
	StuckPerTenant = 4

	// BlockLine is how many pieces of blocking work of one tenant may wait.
	BlockLine = 64

	groupTasks  = 16 // session tasks taken per acquisition of the lock
	wakeBatch   = 64 // tasks woken per acquisition of the lock
	debtQuanta  = 2  // a tenant deeper in debt than so many quanta has its readers wait
	watchPeriod = StuckAfter / 4
)
