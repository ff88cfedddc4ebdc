package scheduler

import "sync/atomic"

// Tenant is a flow of the first level: it belongs to one Pool and must not be copied.
type Tenant struct {
	// atomic
	share   atomic.Int64 // quantum times weight
	decoded atomic.Int64 // units that readers have spent and no visit has charged yet
	debt    atomic.Int64 // -deficit, for readers to see without the lock
	stuck   atomic.Int32 // Runs held up now

	// guarded by Pool.mu: level 1
	deficit     int64
	nextTurn    *Tenant
	nextControl *Tenant
	control     fifo[Task, controlLink]
	readers     []reader // wait until the debt is paid, in order
	ready       int      // linked tasks
	listed      bool     // in the rotation
	inControl   bool     // in the control rotation
	barred      bool     // too many stuck Runs: nothing is started, its tasks keep their places

	// guarded by Pool.mu: level 2
	fresh   flowList // newly ready flows, visited before the old ones
	old     flowList
	olds    uint64                 // flows in old
	passed  uint64                 // flows that have passed through the end of old
	firsts  fifo[Flow, flowFirst]  // flows with ready actors and without debt
	resumed fifo[Flow, flowResume] // flows whose visits a crowd has begun and that go on; their place in the rotation is behind already
	flows   int                    // listed ones
	nFirsts int
	current *Flow // being visited
	batches int64 // units that batches may still take first in this turn: half the quantum; negative: debt
	firstly int   // flows left in this pass of batches
	toVisit int   // visits left in this round of drains
}

// NewTenant makes a tenant whose share is weight times that of a tenant with weight 1, the least; MaxWeight is the most.
func NewTenant(weight int) *Tenant {
	t := new(Tenant)
	t.SetWeight(weight)
	return t
}

// SetWeight gives t another share, from its next turn on.
func (t *Tenant) SetWeight(weight int) {
	t.share.Store(Quantum * int64(min(max(weight, 1), MaxWeight)))
}

// quantum is what one turn grants.
func (t *Tenant) quantum() int64 { return t.share.Load() }

// NewFlow makes a flow of t.
func (t *Tenant) NewFlow() *Flow {
	f := new(Flow)
	f.Init(t)
	return f
}

// Stuck is how many Runs of the tenant are held up now. From StuckPerTenant on none of its work is started.
func (t *Tenant) Stuck() int { return int(t.stuck.Load()) }

// grant begins a turn: credit left over is dropped, debt is kept.
func (t *Tenant) grant() {
	t.deficit = min(t.deficit, 0) + t.quantum()
	t.fold()
}

// fold charges what readers have spent since the last time.
func (t *Tenant) fold() {
	if t.decoded.Load() != 0 {
		t.deficit -= t.decoded.Swap(0)
	}
	t.debt.Store(-t.deficit)
}

// begin starts a turn that may spend: batches first.
func (t *Tenant) begin() {
	t.batches = min(t.batches, 0) + t.quantum()/2
	t.firstly = t.nFirsts
}

// activate lists a flow that has work: as a new one, unless it left a moment ago and would not have passed through the end of the old ones
// yet, if it had waited there.
func (t *Tenant) activate(f *Flow) {
	if !f.listed {
		f.listed = true
		t.flows++
		if f.place > t.passed {
			t.await(f)
		} else {
			f.renew()
			t.fresh.push(f)
		}
	}
	if !f.actors.empty() {
		t.enterFirst(f)
	}
}

// await puts f behind the old flows.
func (t *Tenant) await(f *Flow) {
	t.old.push(f)
	t.olds++
}

// pass takes the first of the old flows; nil: there is none.
func (t *Tenant) pass() *Flow {
	f := t.old.pop()
	if f != nil {
		t.olds--
		t.passed++
	}
	return f
}

// enterFirst lets the next batch of a flow with ready actors run ahead of the drains, unless the flow is in debt.
func (t *Tenant) enterFirst(f *Flow) {
	if !f.first && (f.deficit >= 0 || f.due) {
		f.first = true
		t.nFirsts++
		t.firsts.push(f)
	}
}

// next fills g with the tenant's next group; false: nothing of it is ready.
//
// A turn repeats two passes. Batches: each flow without debt runs one batch of an actor, while they have taken no more than half of the
// quantum. Drains: a deficit round robin over all active flows, the only place that grants a flow its quantum; a visit serves the flow's
// sessions, then its actors. As the pass of batches spends what the rotation grants, a flow gets its share however it divides its work
// between the two; and as a visit that leaves credit makes a batch due, whatever drains then spend, neither starves the other.
func (t *Tenant) next(c *core, g *group) bool {
	for t.ready > 0 {
		switch {
		case t.firstly > 0 && t.batches > 0:
			t.firstly--
			if t.nextBatch(c, g) {
				return true
			}
		case t.current != nil:
			switch f := t.current; {
			case f.deficit <= 0:
				t.leave()
			case f.alone():
				if c.takeCrowd(t, g) {
					return true
				}
			case c.takeSessions(f, g) || c.takeActor(f, g):
				return true
			default:
				t.leave()
			}
		case t.resumes():
			if c.takeResumed(t, g) {
				return true
			}
		case t.toVisit > 0:
			t.toVisit--
			t.visit()
		default:
			t.firstly, t.toVisit = t.nFirsts, t.flows
		}
	}
	return false
}

func (t *Tenant) nextBatch(c *core, g *group) bool {
	f := t.firsts.pop()
	if f == nil {
		return false
	}
	f.first = false
	t.nFirsts--
	if f.deficit < 0 && !f.due {
		return false // until a visit has paid its debt
	}
	if !c.takeActor(f, g) {
		return false
	}
	f.due = false
	if !f.actors.empty() {
		t.enterFirst(f)
	}
	g.batch = true
	return true
}

// leave ends the visit that goes on.
func (t *Tenant) leave() {
	f := t.current
	t.current = nil
	if f.empty() {
		t.retire(f)
	} else {
		t.await(f)
	}
}

// retire lets an empty flow leave the rotation. Its place is remembered, so that leaving and coming back gains nothing.
func (t *Tenant) retire(f *Flow) {
	f.listed = false
	f.place = t.passed + t.olds + 1
	t.flows--
}

// resume lets a visit go on that was left, if there is credit and something to spend it on.
func (t *Tenant) resume(f *Flow, when goesOn, next bool) {
	if f.deficit <= 0 || f.empty() || f.resumed != notAtAll {
		return
	}
	f.resumed = when
	if next {
		t.resumed.pushFront(f)
	} else {
		t.resumed.push(f)
	}
}

// resumes: a visit goes on before another begins.
func (t *Tenant) resumes() bool {
	f := t.resumed.front()
	return f != nil && (f.resumed == beforeNew || t.fresh.empty())
}

// rest forgets the rotation of a tenant that has nothing to do: flows keep their debts, and nobody keeps the flows.
func (t *Tenant) rest() {
	t.listed = false
	t.deficit = min(t.deficit, 0)
	t.batches = min(t.batches, 0)
	t.fold()
	if t.current != nil {
		t.leave()
	}
	for f := t.resumed.pop(); f != nil; f = t.resumed.pop() {
		f.resumed = notAtAll
	}
	for f := t.fresh.pop(); f != nil; f = t.fresh.pop() {
		f.listed = false
	}
	for f := t.pass(); f != nil; f = t.pass() {
		f.listed = false
	}
	t.passed++ // so that no place is ahead
	for f := t.firsts.pop(); f != nil; f = t.firsts.pop() {
		f.first = false
	}
	t.flows, t.nFirsts, t.firstly, t.toVisit = 0, 0, 0, 0
}

// visit goes to the next flow of the rotation and grants it its quantum.
func (t *Tenant) visit() {
	f := t.fresh.pop()
	if f == nil {
		if f = t.pass(); f == nil {
			return
		}
	}
	if f.empty() {
		f.listed = false
		t.flows--
		return
	}
	f.deficit = min(f.deficit, 0) + Quantum
	if f.deficit <= 0 {
		t.await(f)
		return
	}
	f.due = true
	if !f.actors.empty() {
		t.enterFirst(f)
	}
	t.current = f
}

type (
	tenantTurn    struct{}
	tenantControl struct{}
)

func (tenantTurn) next(t *Tenant) **Tenant    { return &t.nextTurn }
func (tenantControl) next(t *Tenant) **Tenant { return &t.nextControl }
