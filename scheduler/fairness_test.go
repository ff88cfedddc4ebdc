package scheduler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// shape places the i-th of some competing jobs: in tenants of their own, or in flows of one tenant.
type shape struct {
	name  string
	place func(s *sim, i int, shared *Tenant) *job
	// overshoots is how many of the largest single costs one competitor may add to a wait: the last of its visit, and, within a tenant, a
	// batch that runs first.
	overshoots int64
}

var shapes = []shape{
	{"tenants", func(s *sim, _ int, _ *Tenant) *job { return s.job(NewTenant(1).NewFlow(), Session) }, 1},
	{"tenants' actors", func(s *sim, _ int, _ *Tenant) *job { return s.job(NewTenant(1).NewFlow(), Actor) }, 1},
	{"flows", func(s *sim, _ int, t *Tenant) *job { return s.job(t.NewFlow(), Session) }, 1},
	{"flows' actors", func(s *sim, _ int, t *Tenant) *job { return s.job(t.NewFlow(), Actor) }, 2},
	{"flows of both", func(s *sim, i int, t *Tenant) *job { return s.job(t.NewFlow(), Class(i%2)) }, 2},
}

// NetSys/bess#772: a deficit round robin dropped a flow out of the active list for ever. Five flows that run empty and are refilled at
// random, items of up to 16 quanta, a million steps.
func TestB098NoFlowIsForgotten(t *testing.T) {
	const flows, steps, largest = 5, 1_000_000 / scale, 16 * Quantum
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(98, 98))
			s, shared := newSim(), NewTenant(1)
			var jobs [flows]*job
			for i := range jobs {
				jobs[i] = tt.place(s, i, shared)
				jobs[i].cost = func() int { return 1 + rnd.IntN(largest) }
			}
			for range steps {
				for _, j := range jobs {
					if j.left == 0 && rnd.IntN(2) == 0 {
						j.add(1 + rnd.IntN(4))
					}
				}
				s.pool.Step()
			}
			// The rounds in which it is served or its own debt is paid, and what the others may take in them.
			rounds := int64(largest/Quantum + 1)
			limit := (flows - 1) * (rounds*Quantum + tt.overshoots*largest)
			for i, j := range jobs {
				name := fmt.Sprint("flow ", i)
				atMost(t, name+" waited", slices.Max(j.longest[:]), limit)
				within(t, name+"'s share", float64(j.spent), float64(s.spent)/flows, 0.05)
			}
		})
	}
}

// A flow without debt waits at most (flows - 1) x (quantum + largest single cost).
func TestWaitIsBounded(t *testing.T) {
	const flows, largest = 20, 5 * Quantum
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(18, 18))
			s, shared := newSim(), NewTenant(1)
			for i := 1; i < flows; i++ {
				j := tt.place(s, i, shared)
				j.cost = func() int { return 1 + rnd.IntN(largest) }
				j.add(-1)
			}
			probe := tt.place(s, 0, shared)
			for range 3000 / scale {
				probe.add(1 + rnd.IntN(3))
				for probe.left > 0 {
					s.pool.Step()
				}
				s.run(rnd.Int64N(5000))
			}
			atMost(t, "waited", slices.Max(probe.longest[:]), (flows-1)*(Quantum+tt.overshoots*largest))
		})
	}
}

// The same with four workers: four groups at once are unsettled, which may cost so many quanta and largest costs more.
func TestWaitIsBoundedWithWorkers(t *testing.T) {
	const flows, workers, largest = 20, 4, 2 * Quantum
	rnd := rand.New(rand.NewPCG(4, 4))
	s := newSim()
	for range flows - 1 {
		j := s.job(NewTenant(1).NewFlow(), Session)
		j.cost = func() int { return 1 + rnd.IntN(largest) }
		j.add(-1)
	}
	probe := s.job(NewTenant(1).NewFlow(), Session)
	var inFlight []*worker
	step := func() {
		w := newWorker(s.pool)
		if s.pool.core.next(&w.group) {
			inFlight = append(inFlight, w)
		}
		if len(inFlight) == workers {
			i := rnd.IntN(workers)
			w := inFlight[i]
			inFlight = slices.Delete(inFlight, i, i+1)
			w.settle(w.run())
		}
	}
	for range 3000 / scale {
		probe.add(1)
		for probe.left > 0 {
			step()
		}
		for range rnd.IntN(30) {
			step()
		}
	}
	atMost(t, "waited", slices.Max(probe.longest[:]), (flows-1)*(Quantum+largest)+workers*(Quantum+largest))
}

// postel-sh/postel#126, wavelens/gradient#111: first come, first served over tenants, and one tenant's burst delays everyone.
func TestB097BurstDelaysNobody(t *testing.T) {
	const burst = 100_000 / scale
	for _, class := range []Class{Actor, Session} {
		t.Run(fmt.Sprint("class ", class), func(t *testing.T) {
			s := newSim()
			tenant := NewTenant(1)
			a := make([]*job, burst)
			for i := range a {
				a[i] = s.job(tenant.NewFlow(), class)
				a[i].add(1)
			}
			b, c := s.job(NewTenant(1).NewFlow(), class), s.job(NewTenant(1).NewFlow(), class)
			s.run(1000)
			b.add(1)
			c.add(10)
			start := s.spent
			for b.left+c.left > 0 {
				s.pool.Step()
			}
			atMost(t, "until both were served", s.spent-start, 2*(Quantum+1)+11)
			s.run(1 << 30)
			if s.spent != burst+11 {
				t.Errorf("%d served of %d", s.spent, burst+11)
			}
		})
	}
}

// asynkron/protoactor-go#253, zakgof/actr#5: a busy actor keeps its worker, and the timers of others do not fire. One actor is fed for
// ever with messages of 1 ms; 500 others tick every 50 ms.
func TestB094BusyActorYields(t *testing.T) {
	const ms = int64(1e6)
	s := newSim()
	var wheel wheel
	tenant := NewTenant(1)
	busy := s.job(tenant.NewFlow(), Actor)
	busy.each = func(t *Turn) {
		messages := 0
		for !t.Overdue() {
			s.pass(time.Millisecond)
			t.Spend(1, 0)
			messages++
		}
		if messages > 1 {
			panic("a batch of more than 1 ms")
		}
	}
	busy.cost = fixed(0)
	busy.add(-1)
	var late []int64
	timers := make([]Timer, 500)
	for i := range timers {
		j := s.job(tenant.NewFlow(), Actor)
		timer, due := &timers[i], int64(0)
		arm := func() {
			due = (s.now.Load()/ms + 50) * ms
			wheel.set(timer, uint64((due+int64(Tick)-1)/int64(Tick)))
		}
		j.each = func(*Turn) {
			late = append(late, s.now.Load()-due)
			arm()
		}
		timer.Init(func() { j.add(1) })
		s.pass(time.Millisecond / 10)
		arm()
	}
	for len(late) < 100_000/scale {
		for t := wheel.pop(uint64(s.now.Load() / int64(Tick))); t != nil; t = wheel.pop(uint64(s.now.Load() / int64(Tick))) {
			t.fire()
		}
		s.pool.Step()
	}
	slices.Sort(late)
	atMost(t, "lateness of 99 in 100, ns", late[len(late)*99/100], 20*ms-1)
	if busy.runs < 1000/scale {
		t.Errorf("the busy actor ran %d times", busy.runs)
	}
}

func TestOneSessionBesideAThousandOfAnotherTenant(t *testing.T) {
	s := newSim()
	crowd := NewTenant(1)
	room := crowd.NewFlow()
	for range 1000 {
		j := s.job(room, Session)
		j.cost = fixed(5)
		j.add(-1)
	}
	one := s.job(NewTenant(1).NewFlow(), Session)
	one.cost = fixed(5)

	one.add(-1)
	s.run(1_000_000 / scale)
	within(t, "its share while busy", float64(one.spent), float64(s.spent)/2, 0.01)

	one.left = 1
	s.run(10_000)
	one.longest = [2]int64{}
	for range 1000 / scale {
		one.add(1)
		s.run(1000)
	}
	atMost(t, "it waited when it became ready", one.longest[1], Quantum+5)
}

// room is an actor that, per item, wakes members, each of which then drains.
func (s *sim) room(t *Tenant, members, costPerItem int) (*job, []*job) {
	actor := s.job(t.NewFlow(), Actor)
	actor.cost = fixed(costPerItem)
	sessions := make([]*job, members)
	for i := range sessions {
		sessions[i] = s.job(t.NewFlow(), Session)
	}
	actor.each = func(turn *Turn) {
		for _, m := range sessions {
			if m.left == 0 {
				m.mark, m.fresh = s.spent, true
			}
			m.left = 1
			turn.Wake(&m.task, actor.task.home)
		}
	}
	return actor, sessions
}

func TestSmallRoomBesideAGiantOne(t *testing.T) {
	const batch = 5 * Quantum
	s, tenant := newSim(), NewTenant(1)
	giant, _ := s.room(tenant, 5000, batch)
	giant.add(-1)
	small, members := s.room(tenant, 3, 1)
	s.run(50_000)
	for range 200 / scale {
		small.add(1)
		start := s.spent
		for small.left > 0 || members[0].left+members[1].left+members[2].left > 0 {
			s.pool.Step()
		}
		// Its batch may wait for the visit that goes on and a batch, its drains for the giant's next visit and batch.
		atMost(t, "from the event to the last write", s.spent-start, 2*(Quantum+batch)+Quantum)
		s.run(3000)
	}
}

func TestEndlessPublisherStarvesNoDrain(t *testing.T) {
	const members = 200
	for _, batch := range []int{1, Quantum / 2, 5 * Quantum} {
		t.Run(fmt.Sprint("batches of ", batch), func(t *testing.T) {
			s := newSim()
			actor, sessions := s.room(NewTenant(1), members, batch)
			for _, m := range sessions {
				m.cost = fixed(4)
			}
			actor.add(-1)
			s.run(1_000_000 / scale * 2)
			var drained int64
			for i, m := range sessions {
				drained += m.spent
				if m.runs == 0 {
					t.Fatalf("member %d never drained", i)
				}
			}
			if drained < s.spent*45/100 {
				t.Errorf("drains got %d of %d, less than about half", drained, s.spent)
			}
			if actor.runs == 0 {
				t.Error("the actor never ran again")
			}
			for _, m := range sessions {
				atMost(t, "a drain waited", m.longest[0]+m.longest[1], 2*(members*4+2*Quantum+int64(batch))+2*int64(batch))
			}
		})
	}
}

// The other side: drains that never end must not keep the room from its batch.
func TestEndlessDrainsStarveNoBatch(t *testing.T) {
	s, tenant := newSim(), NewTenant(1)
	flow := tenant.NewFlow()
	for range 100 {
		j := s.job(flow, Session)
		j.cost = fixed(Quantum + 7) // each ends in debt
		j.add(-1)
	}
	actor := s.job(flow, Actor)
	actor.cost = fixed(1)
	actor.add(-1)
	s.run(1_000_000 / scale)
	atMost(t, "a batch waited", max(slices.Max(actor.longest[:]), s.spent-actor.mark), 4*(2*Quantum+7))
}

// A new event joins the writes that wait: the room's batch runs before the rest of its members' drains.
func TestRoomsRunBeforeDrains(t *testing.T) {
	s, tenant := newSim(), NewTenant(1)
	room := tenant.NewFlow()
	for range 1000 {
		j := s.job(room, Session)
		j.cost = fixed(4)
		j.add(1)
	}
	s.run(Quantum)
	actor := s.job(room, Actor)
	actor.add(1)
	start := s.spent
	for actor.left > 0 {
		s.pool.Step()
	}
	atMost(t, "units of drains before the batch", s.spent-start, Quantum+4+1)
}

// Who becomes ready is served after the visit that goes on, however many are busy.
func TestNewlyReadyFirst(t *testing.T) {
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			s, shared := newSim(), NewTenant(1)
			for i := range 100 {
				j := tt.place(s, i+1, shared)
				j.cost = fixed(10)
				j.add(-1)
			}
			probe := tt.place(s, 0, shared)
			for range 100 / scale {
				s.run(20_000) // long enough for it to leave the rotation
				probe.add(1)
				for probe.left > 0 {
					s.pool.Step()
				}
			}
			// Within a tenant a pass of batches may come first.
			atMost(t, "waited", probe.longest[1], Quantum+10+(tt.overshoots-1)*(Quantum/2+10))
		})
	}
}

func TestToggleGainsNothing(t *testing.T) {
	for _, tt := range shapes {
		for i := range 12 {
			// Steps until it comes back, so that it is found empty in its turn, or not.
			delay, cost := i%4, []int{Quantum / 4, Quantum / 2, Quantum}[i/4]
			t.Run(fmt.Sprint(tt.name, ", delay ", delay, ", cost ", cost), func(t *testing.T) {
				s, shared := newSim(), NewTenant(1)
				var steady [4]*job
				for i := range steady {
					steady[i] = tt.place(s, i+1, shared)
					steady[i].cost = fixed(10)
					steady[i].add(-1)
				}
				toggler := tt.place(s, 0, shared)
				toggler.cost = fixed(cost)
				away := 0
				for s.spent < 1_000_000/scale {
					s.pool.Step()
					if toggler.left > 0 {
						away = 0
					} else if away++; away > delay {
						toggler.add(1)
					}
				}
				atMost(t, "spent by the toggler", toggler.spent, s.spent/5*101/100+2*Quantum)
			})
		}
	}
}

func TestWeights(t *testing.T) {
	s := newSim()
	var jobs []*job
	sum := 0
	for w := 1; w <= 5; w++ {
		j := s.job(NewTenant(w).NewFlow(), Class(w%2))
		j.cost = fixed(7)
		j.add(-1)
		jobs = append(jobs, j)
		sum += w
	}
	s.run(3_000_000 / scale)
	for i, j := range jobs {
		within(t, fmt.Sprint("weight ", i+1), float64(j.spent), float64(s.spent)*float64(i+1)/float64(sum), 0.01)
	}
}

// Beside a naive fair share: whoever asks for less than its share gets all it asks for, the rest is divided evenly among the others.
func TestSharesAreMaxMinFair(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		s := newSim()
		const flows, total = 12, 1_000_000 / scale * 4
		var jobs [flows]*job
		var rate, offered [flows]float64 // items per slot; units in all
		const slot = 2000
		for i := range jobs {
			cost := 1 + rnd.IntN(40)
			jobs[i] = s.job(NewTenant(1).NewFlow(), Class(rnd.IntN(2)))
			jobs[i].cost = fixed(cost)
			rate[i] = slot * rnd.Float64() / 4 / float64(cost)
		}
		for s.spent < total {
			for i, j := range jobs {
				if n := int(rate[i] + rnd.Float64()); n > 0 {
					j.add(n)
					offered[i] += float64(n) * float64(j.cost())
				}
			}
			before := s.spent
			s.run(slot)
			s.spent = max(s.spent, before+slot) // an idle rest of the slot is nobody's
		}
		for i, want := range maxMin(offered[:], total) {
			within(t, fmt.Sprintf("seed %d, flow %d of %v", seed, i, offered), float64(jobs[i].spent), want, 0.05)
		}
	}
}

// maxMin fills from the smallest demand.
func maxMin(demand []float64, capacity float64) []float64 {
	share := make([]float64, len(demand))
	order := make([]int, len(demand))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(demand[a] - demand[b]) })
	for i, f := range order {
		share[f] = min(demand[f], capacity/float64(len(order)-i))
		capacity -= share[f]
	}
	return share
}

// A weight beyond all bounds is a large one: it must not come round as a debt.
func TestAnyWeightIsAShare(t *testing.T) {
	for _, weight := range []int{math.MinInt, -1, 0, 1, MaxWeight, MaxWeight + 1, math.MaxInt/Quantum + 1, math.MaxInt} {
		if got := NewTenant(weight).quantum(); got < Quantum || got > MaxWeight*Quantum {
			t.Errorf("%d gives %d a turn", weight, got)
		}
	}
}
