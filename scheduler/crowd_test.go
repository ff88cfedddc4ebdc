package scheduler

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// Sessions that are each alone in their flows are taken together; that must change nothing but what it costs.

// lone makes n sessions with a flow each.
func (s *sim) lone(t *Tenant, n, cost int) []*job {
	jobs := make([]*job, n)
	for i := range jobs {
		jobs[i] = s.job(t.NewFlow(), Session)
		jobs[i].cost = fixed(cost)
	}
	return jobs
}

func TestCrowd(t *testing.T) {
	for _, tt := range []struct {
		name      string
		cost      int
		one, more int // how many have run after a group, and after the next
	}{
		{"as many as fit", 1, groupTasks, 2 * groupTasks},
		{"as many as the tenant has credit for", 20, 4, 7},
		{"one that spends it all", Quantum, 1, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSim()
			jobs := s.lone(NewTenant(1), 40, tt.cost)
			for _, j := range jobs {
				j.add(1)
			}
			for _, want := range []int{tt.one, tt.more} {
				s.pool.Step()
				for i, j := range jobs {
					ran := 0
					if i < want {
						ran = 1
					}
					if j.runs != ran {
						t.Fatalf("of the first %d, session %d ran %d times", want, i, j.runs)
					}
				}
			}
			s.run(1 << 20)
			if s.spent != int64(40*tt.cost) {
				t.Errorf("%d spent in all", s.spent)
			}
		})
	}
}

func TestCrowdChargesEachFlowItsOwn(t *testing.T) {
	s := newSim()
	jobs := s.lone(NewTenant(1), 5, 0)
	costs := []int{1, 7, 3, 20, 2}
	for i, j := range jobs {
		j.cost = fixed(costs[i])
		j.add(1)
	}
	slow := func(*Turn) { s.pass(33 * UnitTime) } // as much again
	jobs[2].each = slow
	s.pool.Step()
	for i, j := range jobs {
		if j.runs != 1 {
			t.Fatalf("session %d ran %d times", i, j.runs)
		}
		if got, want := Quantum-int(j.task.home.deficit), 2*costs[i]; got < want-1 || got > want+1 {
			t.Errorf("flow %d was charged %d, want about %d", i, got, want)
		}
	}
}

// A visit that a crowd has begun goes on: a session of cheap messages that is alone in its flow gets as much as flows that have many, or
// costly ones.
func TestCrowdLeavesTheSharesAsTheyAre(t *testing.T) {
	s, tenant := newSim(), NewTenant(1)
	rnd := rand.New(rand.NewPCG(16, 16))
	var flows []*Flow
	spent := map[*Flow]*int64{}
	add := func(sessions int, cost func() int) {
		f := tenant.NewFlow()
		flows = append(flows, f)
		spent[f] = new(int64)
		for range sessions {
			j := s.job(f, Session)
			j.cost = func() int { c := cost(); *spent[f] += int64(c); return c }
			j.add(-1)
		}
	}
	for range 20 {
		add(1, fixed(1))
		add(1, func() int { return 1 + rnd.IntN(50) })
	}
	add(7, fixed(3))
	add(30, fixed(40))
	s.run(4_000_000 / scale)
	for i, f := range flows {
		within(t, "share", float64(*spent[f]), float64(s.spent)/float64(len(flows)), 0.03)
		if t.Failed() {
			t.Fatalf("of flow %d", i)
		}
	}
}

// A Run of a crowd that does not return holds up nobody else of it, and is charged to its own flow when it does.
func TestCrowdWithAStuckRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(PoolConfig{Workers: 1})
		tenant := NewTenant(1)
		var ran counts
		free := make(chan struct{})
		count := func(name string) func(*Turn) bool { return func(*Turn) bool { return ran.add(name) < 3 } }
		stuck := task(tenant.NewFlow(), Session, once(func() { <-free }))
		tasks := []*Task{
			task(tenant.NewFlow(), Session, count("before")), stuck, task(tenant.NewFlow(), Session, count("after")),
		}
		for _, task := range tasks {
			pool.Ready(task, nil)
		}
		pool.Start()
		synctest.Wait()
		ran.expect(t, "in its group", map[string]int{"before": 1})
		time.Sleep(2 * StuckAfter)
		synctest.Wait()
		ran.expect(t, "while it is stuck", map[string]int{"before": 3, "after": 3})
		close(free)
		synctest.Wait()
		expectPool(t, "after its return", pool, 1, 1, 0)
		pool.Stop()
		for _, task := range tasks {
			if f := task.home; !task.rests() || f.listed || f.resumed != notAtAll {
				t.Errorf("left over: %+v, flow %+v", task, f)
			}
		}
	})
}
