package scheduler

// Flow is a flow of the second level: a room, or a session's own. It may be embedded by value, and must not be copied after Init.
type Flow struct {
	tenant *Tenant // immutable after Init

	// guarded by Pool.mu
	actors     taskList
	sessions   taskList
	nextTurn   *Flow
	nextFirst  *Flow
	nextResume *Flow
	place      uint64 // when it left the rotation empty: where it would pass through its end, by Tenant.passed
	deficit    int32  // units; positive: may still be spent in this visit, negative: debt
	listed     bool   // in the tenant's rotation
	first      bool   // in the tenant's list of flows whose batches run first
	due        bool   // a batch is due since the last visit that left credit, whatever drains have spent of it
	resumed    goesOn
}

// goesOn says whether a flow is in the tenant's list of those whose visits go on.
type goesOn uint8

const (
	notAtAll  goesOn = iota
	afterNew         // after flows that have become ready
	beforeNew        // before them, as its visit or its last session was only just interrupted
)

// Init makes f a flow of t.
func (f *Flow) Init(t *Tenant) { f.tenant = t }

// Tenant is the tenant that f belongs to.
func (f *Flow) Tenant() *Tenant { return f.tenant }

func (f *Flow) empty() bool { return f.actors.empty() && f.sessions.empty() }

// alone: what waits is one session.
func (f *Flow) alone() bool { return f.actors.empty() && f.sessions.one() }

// renew makes f one that was idle: credit is dropped, debt is kept.
func (f *Flow) renew() {
	f.due = false
	f.deficit = min(f.deficit, 0)
}

func (f *Flow) list(c Class) *taskList {
	if c == Actor {
		return &f.actors
	}
	return &f.sessions
}

// flowList is the fifo of a rotation, written out like taskList.
type flowList struct{ tail *Flow }

func (q *flowList) empty() bool { return q.tail == nil }

func (q *flowList) push(f *Flow) {
	if q.tail == nil {
		f.nextTurn = f
	} else {
		f.nextTurn, q.tail.nextTurn = q.tail.nextTurn, f
	}
	q.tail = f
}

func (q *flowList) pop() *Flow {
	if q.tail == nil {
		return nil
	}
	f := q.tail.nextTurn
	if f == q.tail {
		q.tail = nil
	} else {
		q.tail.nextTurn = f.nextTurn
	}
	f.nextTurn = nil
	return f
}

type (
	flowFirst  struct{}
	flowResume struct{}
)

func (flowFirst) next(f *Flow) **Flow  { return &f.nextFirst }
func (flowResume) next(f *Flow) **Flow { return &f.nextResume }
