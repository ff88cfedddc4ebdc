package scheduler

import "testing"

// One turn in eight for control, tenant by tenant: with 10,000 busy tenants a ping gets through, even of a tenant deep in debt.
func TestPingPassesTenThousandBusyTenants(t *testing.T) {
	s := newSim()
	for range 10_000 {
		j := s.job(NewTenant(1).NewFlow(), Session)
		j.cost = fixed(Quantum)
		j.add(-1)
	}
	tenant := NewTenant(1)
	for _, class := range []Class{Session, Actor} {
		ping := s.job(tenant.NewFlow(), class)
		tenant.deficit, ping.task.home.deficit = -1_000_000, -1_000_000
		s.run(1_000_000 / scale)
		for range 100 {
			ping.left, ping.mark = 1, s.spent
			served := 0
			ping.each = func(turn *Turn) {
				if !turn.Control {
					t.Error("served by a turn that was none for control")
				}
				served++
			}
			s.pool.ReadyControl(&ping.task)
			groups := 0
			for ; served == 0; groups++ {
				s.pool.Step()
			}
			atMost(t, "groups until it was served", int64(groups), ControlEvery)
		}
	}
}

func TestControlGetsOneGroupInEight(t *testing.T) {
	s := newSim()
	flow := NewTenant(1).NewFlow()
	work := s.job(flow, Session)
	work.add(-1)
	var pings []*job
	control := 0
	for range 3 { // of different tenants, with as much control work as they can take
		j := s.job(NewTenant(1).NewFlow(), Session)
		j.each = func(turn *Turn) {
			if turn.Control {
				control++
			}
			s.pool.ReadyControl(&j.task)
		}
		pings = append(pings, j)
		j.left = -1
		s.pool.ReadyControl(&j.task)
	}
	const groups = 80_000
	for range groups {
		s.pool.Step()
	}
	within(t, "control groups", float64(control), groups/ControlEvery, 0.01)
	for i, j := range pings {
		if j.runs == 0 {
			t.Errorf("ping %d never served", i)
		}
	}
	if work.runs < groups/5 {
		t.Errorf("the other work ran %d times in %d groups", work.runs, groups)
	}
}

// A control turn takes a task out of its turn, but not out of its place: else a task that is pinged often would never come to its bulk.
func TestControlTurnKeepsThePlace(t *testing.T) {
	s := newSim()
	tenant := NewTenant(1)
	flow := tenant.NewFlow()
	var order []int
	jobs := make([]*job, 100)
	for i := range jobs {
		jobs[i] = s.job(flow, Session)
		jobs[i].cost = fixed(Quantum)
		jobs[i].left = 2
		s.pool.Ready(&jobs[i].task, nil)
	}
	pinged := jobs[20]
	pinged.each = func(turn *Turn) {
		if turn.Control {
			pinged.left = 2 // nothing of its own work was done
		}
	}
	for i, j := range jobs {
		j.onRun = func(int64, bool) { order = append(order, i) }
	}
	for step := 0; pinged.runs == 0 || pinged.left == 2; step++ {
		s.pool.ReadyControl(&pinged.task)
		s.pool.Step()
		if step > 60 {
			t.Fatalf("not served in its place: %v", order)
		}
	}
}

// A control turn that finds all done leaves an idle task in its place; that must neither run for nothing nor hide a later wake-up.
func TestControlTurnThatFindsAllDone(t *testing.T) {
	s := newSim()
	j := s.job(NewTenant(1).NewFlow(), Session)
	for range 20 {
		j.left = 1
		s.pool.ReadyControl(&j.task)
		s.pool.core.groups = ControlEvery
		runs := j.runs
		if !s.pool.Step() || j.runs != runs+1 || s.pool.core.groups != 0 {
			t.Fatal("no control turn")
		}
		if j.runs%2 == 0 { // woken again before its place is reached
			j.left = 1
			s.pool.Ready(&j.task, nil)
			if !s.pool.Step() || j.runs != runs+2 {
				t.Fatal("the wake-up was lost")
			}
		}
		if s.pool.Step() {
			t.Fatal("ran for nothing")
		}
	}
}

// A task that was taken with others of its flow and not run gets its control work noted again.
func TestPutBackKeepsControl(t *testing.T) {
	s := newSim()
	flow := NewTenant(1).NewFlow()
	first := s.job(flow, Session)
	first.cost = fixed(2 * Quantum) // ends the group
	first.add(1)
	second := s.job(flow, Session)
	second.left = 1
	s.pool.ReadyControl(&second.task)
	s.pool.Step()
	if first.runs != 1 || second.runs != 0 {
		t.Fatalf("runs %d and %d", first.runs, second.runs)
	}
	second.each = func(turn *Turn) {
		if !turn.Control {
			t.Error("no control turn for the second")
		}
	}
	s.pool.core.groups = ControlEvery
	s.pool.Step()
	if second.runs != 1 {
		t.Error("the second did not run")
	}
}
