package scheduler

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The core against what it promises, over random wake-ups, control work, results and settlements of up to four groups in flight. The naive
// model of a task is one bit: it has been woken since it last began.
func TestCoreModel(t *testing.T) {
	for seed := range uint64(40) {
		m := newCoreModel(t, seed)
		for range 4000 {
			m.step()
			m.check()
		}
		m.drain()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type coreModel struct {
	t        *testing.T
	rnd      *rand.Rand
	core     core
	tenants  []*Tenant
	flows    []*Flow
	tasks    []*Task
	woken    map[*Task]bool // must run
	inFlight []*group
	begun    map[*Task]int // between the Run's begin and the settlement of its group: at most 1
}

func newCoreModel(t *testing.T, seed uint64) *coreModel {
	m := &coreModel{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), woken: map[*Task]bool{}, begun: map[*Task]int{}}
	for range 3 {
		tenant := NewTenant(1 + m.rnd.IntN(3))
		m.tenants = append(m.tenants, tenant)
		for range 1 + m.rnd.IntN(3) {
			flow := tenant.NewFlow()
			m.flows = append(m.flows, flow)
			for range m.rnd.IntN(30) {
				task := new(Task)
				task.Init(nil, flow, Class(m.rnd.IntN(2)))
				m.tasks = append(m.tasks, task)
			}
		}
	}
	m.tasks = append(m.tasks, new(Task))
	m.tasks[len(m.tasks)-1].Init(nil, m.flows[0], Actor)
	return m
}

func (m *coreModel) step() {
	switch m.rnd.IntN(10) {
	case 0, 1, 2, 3:
		m.wake(false)
	case 4:
		m.wake(true)
	case 5:
		tenant := m.tenants[m.rnd.IntN(len(m.tenants))]
		m.core.bar(tenant, m.rnd.IntN(4) == 0)
	case 6, 7:
		if len(m.inFlight) < 4 {
			m.take()
		}
	default:
		m.settle()
	}
}

func (m *coreModel) wake(control bool) {
	task := m.tasks[m.rnd.IntN(len(m.tasks))]
	flow := task.home
	if !control {
		flow = m.flows[m.rnd.IntN(len(m.flows))]
		if flow.tenant != task.home.tenant {
			flow = task.home
		}
	}
	m.woken[task] = true
	if !control || task.hurry() {
		m.core.add(task, flow)
	}
}

func (m *coreModel) take() bool {
	g := new(group)
	if !m.core.next(g) {
		return false
	}
	if g.tenant.barred {
		m.t.Error("a barred tenant was served")
	}
	g.done = 1 + m.rnd.IntN(g.n)
	for i, task := range g.tasks[:g.n] {
		m.begun[task]++
		if m.begun[task] > 1 {
			m.t.Error("a task was taken twice")
		}
		if i < g.done {
			g.ran[i] = int64(i + 1)
			delete(m.woken, task)
			if m.rnd.IntN(3) == 0 {
				g.more |= 1 << i
				m.woken[task] = true
			}
		}
	}
	m.inFlight = append(m.inFlight, g)
	return true
}

func (m *coreModel) settle() {
	if len(m.inFlight) == 0 {
		return
	}
	i := m.rnd.IntN(len(m.inFlight))
	g := m.inFlight[i]
	m.inFlight = slices.Delete(m.inFlight, i, i+1)
	for _, task := range g.tasks[:g.n] {
		m.begun[task]--
	}
	m.core.settle(g)
	m.core.charge(g, int64(m.rnd.IntN(3*Quantum)))
	m.core.resume(g)
}

func (m *coreModel) check() {
	linked := 0
	for _, tenant := range m.tenants {
		if !tenant.barred {
			linked += tenant.ready
		}
		if tenant.deficit > tenant.quantum() {
			m.t.Errorf("a tenant's credit of %d is above its quantum", tenant.deficit)
		}
	}
	if linked != m.core.ready {
		m.t.Errorf("%d tasks counted, %d linked", m.core.ready, linked)
	}
	for _, flow := range m.flows {
		if flow.deficit > Quantum {
			m.t.Errorf("a flow's credit of %d is above the quantum", flow.deficit)
		}
		if !flow.empty() && !flow.listed {
			m.t.Error("a flow with tasks is in no list")
		}
	}
	for _, task := range m.tasks {
		if task.urgent.Load() && task.phase != running && !task.inControl {
			m.t.Error("a task with control work is not in the control list")
		}
	}
	for _, tenant := range m.tenants {
		if !tenant.control.empty() && !tenant.inControl && !tenant.barred {
			m.t.Error("a tenant with control work is not in the control rotation")
		}
	}
	for task := range m.woken {
		if task.phase != running && !task.linked {
			m.t.Error("a woken task is in no list")
		}
	}
}

// drain runs all there is: every woken task must have run then, and nothing may be left.
func (m *coreModel) drain() {
	for _, tenant := range m.tenants {
		m.core.bar(tenant, false)
	}
	for m.take() || len(m.inFlight) > 0 {
		for len(m.inFlight) > 0 {
			m.settle()
		}
	}
	if len(m.woken) > 0 || m.core.ready != 0 {
		m.t.Errorf("%d woken tasks never ran, %d linked", len(m.woken), m.core.ready)
	}
	for _, task := range m.tasks {
		if !task.rests() || task.linked || task.flow != nil {
			m.t.Errorf("task at rest: %+v", task)
		}
	}
	for _, flow := range m.flows {
		if flow.listed || flow.first || flow.resumed != notAtAll || flow.place > flow.tenant.passed {
			m.t.Errorf("flow at rest: %+v", flow)
		}
	}
}

// rests: nothing is to be done.
func (t *Task) rests() bool { return t.phase == idle && t.woken == nil && !t.urgent.Load() }

// What becomes of wake-ups, by w for one, c for one with control work, t for a worker that takes the task, T for one in a control turn,
// e for the end of its Run and m for one that leaves more to do.
func TestTaskIsToRunAgain(t *testing.T) {
	for _, tt := range []struct {
		name, steps string
		due, urgent bool
	}{
		{"woken", "w", true, false},
		{"ran", "wte", false, false},
		{"left more", "wtm", true, false},
		{"woken while it runs", "wtwe", true, false},
		{"and left more", "wtwm", true, false},
		{"woken twice", "wwte", false, false},
		{"woken twice while it runs", "wtwwete", false, false},
		{"control work", "c", true, true},
		{"control work for one that waits", "wc", true, true},
		{"is done by any turn", "wcte", false, false},
		{"came twice", "ccte", false, false},
		{"while it runs", "wtce", true, true},
		{"a control turn has done all", "wcTe", false, false},
		{"and it is woken again in its old place", "wcTew", true, false},
		{"left more than control work", "wcTm", true, false},
	} {
		var c core
		var task Task
		task.Init(nil, NewTenant(1).NewFlow(), Actor)
		for _, step := range tt.steps {
			g := group{done: 1}
			switch step {
			case 'w':
				c.add(&task, task.home)
			case 'c':
				if task.hurry() {
					c.add(&task, task.home)
				}
			case 't':
				if task, _ := c.pop(task.home, &task.home.actors); task == nil {
					t.Fatalf("%s: was not taken", tt.name)
				}
			case 'T':
				if !c.nextControl(&g) {
					t.Fatalf("%s: had no control work", tt.name)
				}
			case 'e', 'm':
				c.finish(&task, step == 'm')
			}
		}
		if due := task.phase == ready; due != tt.due || task.urgent.Load() != tt.urgent || due && !task.linked {
			t.Errorf("%s: %+v", tt.name, &task)
		}
	}
}

func TestGroup(t *testing.T) {
	s := newSim()
	flow := NewTenant(1).NewFlow()
	jobs := make([]*job, 40)
	for i := range jobs {
		jobs[i] = s.job(flow, Session)
		jobs[i].add(1)
	}
	ran := func() (n int) {
		for _, j := range jobs {
			n += j.runs
		}
		return n
	}
	s.pool.Step()
	if ran() != groupTasks {
		t.Fatalf("a group of %d, want %d", ran(), groupTasks)
	}
	// One that spends the flow's credit ends the group, and those behind it keep their order.
	jobs[17].cost = fixed(Quantum)
	s.pool.Step()
	if ran() != 18 {
		t.Errorf("%d ran, the group went on past its credit", ran())
	}
	// One that takes the time of a batch ends it too.
	jobs[20].each = func(turn *Turn) {
		s.pass(BatchTime)
		if !turn.Overdue() {
			t.Error("not overdue after 1 ms")
		}
	}
	for ran() < 21 {
		s.pool.Step()
	}
	if ran() != 21 {
		t.Errorf("%d ran, the group went on past its time", ran())
	}
	s.run(1 << 20)
	if ran() != 40 {
		t.Errorf("%d ran of 40", ran())
	}
}

// Drains are charged to the room whose event made the session ready, and to the last one that woke it while it ran.
func TestDrainIsChargedToWhoWokeIt(t *testing.T) {
	s := newSim()
	tenant := NewTenant(1)
	own, room, other := tenant.NewFlow(), tenant.NewFlow(), tenant.NewFlow()
	j := s.job(own, Session)
	j.cost = fixed(100)
	j.left = 2
	j.each = func(*Turn) {
		if j.runs == 1 {
			s.pool.Ready(&j.task, other)
		}
	}
	s.pool.Ready(&j.task, room)
	s.pool.Step()
	if own.deficit != 0 || room.deficit != Quantum-100 || other.deficit != 0 {
		t.Errorf("after the first: own %d, room %d, other %d", own.deficit, room.deficit, other.deficit)
	}
	s.pool.Step()
	if own.deficit != 0 || other.deficit != Quantum-100 {
		t.Errorf("after the second: own %d, other %d", own.deficit, other.deficit)
	}
}

func TestCreditIsDroppedAtIdleAndDebtKept(t *testing.T) {
	s := newSim()
	flow := NewTenant(1).NewFlow()
	j := s.job(flow, Session)
	j.add(1)
	s.pool.Step()
	s.pool.Step() // finds nothing
	j.cost = fixed(10 * Quantum)
	j.add(1)
	if flow.deficit != 0 || flow.tenant.deficit != 0 {
		t.Errorf("credit kept at idle: flow %d, tenant %d", flow.deficit, flow.tenant.deficit)
	}
	s.pool.Step()
	s.pool.Step()
	if flow.deficit != -9*Quantum || flow.tenant.deficit != -9*Quantum {
		t.Errorf("debt at idle: flow %d, tenant %d, want %d", flow.deficit, flow.tenant.deficit, -9*Quantum)
	}
}

func TestCost(t *testing.T) {
	for _, tt := range []struct {
		name         string
		items, bytes int
		took         time.Duration
		want         int64
	}{
		{"model", 3, 5 << 10, 0, 8},
		{"less than a KiB", 3, 1023, 0, 3},
		{"measured", 3, 0, 10 * UnitTime, 10},
		{"no more than four times the model", 3, 0, 100 * UnitTime, 12},
		{"the time of a batch is a quantum", 3, 0, BatchTime, Quantum},
		{"and no more", 100, 0, time.Hour, 400},
	} {
		if got := realCost(modelCost(tt.items, tt.bytes), tt.took); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// An idle session costs its task and its own flow; these are part of the memory budget of an idle session.
func TestSizes(t *testing.T) {
	if size := sizeOf[Task]() + sizeOf[Flow](); size > 128 {
		t.Errorf("task and flow: %d bytes", size)
	}
	if size := sizeOf[Timer](); size > 48 {
		t.Errorf("timer: %d bytes", size)
	}
}
