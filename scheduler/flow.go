package scheduler

// Flow is a flow of the second level: a room, or a session's own. It may be embedded by value, and must not be copied after Init.
type Flow struct {
	tenant *Tenant // immutable after Init

	// guarded by Pool.mu
	deficit   int64 // units; positive: may still be spent in this visit, negative: debt
	actors    taskList
	sessions  taskList
	nextTurn  *Flow
	nextFirst *Flow
	listed    bool // in the tenant's rotation
	first     bool // in the tenant's list of flows whose batches run first
	due       bool // a batch is due since the last visit that left credit, whatever drains have spent of it
}

// Init makes f a flow of t.
func (f *Flow) Init(t *Tenant) { f.tenant = t }

// Tenant is the tenant that f belongs to.
func (f *Flow) Tenant() *Tenant { return f.tenant }

func (f *Flow) empty() bool { return f.actors.empty() && f.sessions.empty() }

// unlist takes an empty flow out of the rotation: credit is dropped, debt is kept.
func (f *Flow) unlist() {
	f.listed, f.due = false, false
	f.deficit = min(f.deficit, 0)
}

func (f *Flow) list(c Class) *taskList {
	if c == Actor {
		return &f.actors
	}
	return &f.sessions
}

type (
	flowTurn  struct{}
	flowFirst struct{}
)

func (flowTurn) next(f *Flow) **Flow  { return &f.nextTurn }
func (flowFirst) next(f *Flow) **Flow { return &f.nextFirst }
