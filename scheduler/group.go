package scheduler

// group is what a worker takes at once: one batch of an actor, some sessions of one flow, or a crowd.
type group struct {
	tenant  *Tenant
	tasks   [groupTasks]*Task
	flows   [groupTasks]*Flow // what each of them is charged to
	ran     [groupTasks]int64 // the model's cost of it and those before it, 1 at least for each
	n       int
	done    int    // tasks that have run, from the front
	more    uint32 // bit i: tasks[i] has more to do
	wanted  uint32 // bit i: tasks[i] had control work when it was taken
	budget  int64  // model's units after which no further task is begun
	batch   bool   // charged to the batches' half
	crowd   bool   // sessions each alone in its flow, whose visits are not over
	ahead   uint32 // bit i of a crowd: tasks[i] comes before flows that have become ready
	control bool   // a control turn
}

func (g *group) add(t *Task, f *Flow, wanted bool) {
	if wanted {
		g.wanted |= 1 << g.n
	}
	g.tasks[g.n], g.flows[g.n] = t, f
	g.n++
}

// upTo is what of the group's cost its tasks up to i are charged, by the model's cost of their Runs.
func (g *group) upTo(i int, cost int64) int64 { return cost * g.ran[i] / g.ran[g.done-1] }

// part is the tasks from..to of g, of which the first done have run. It leaves out ran, which is the worker's while it runs.
func (g *group) part(from, to, done int) group {
	p := group{
		tenant: g.tenant, n: to - from, done: done, wanted: g.wanted >> from, ahead: g.ahead >> from,
		batch: g.batch, crowd: g.crowd, control: g.control,
	}
	copy(p.tasks[:], g.tasks[from:to])
	copy(p.flows[:], g.flows[from:to])
	return p
}

// reset forgets the tasks, so that an idle worker holds nobody's memory.
func (g *group) reset() {
	clear(g.tasks[:g.n])
	clear(g.flows[:g.n])
	g.tenant, g.n, g.done, g.more, g.wanted, g.ahead, g.budget = nil, 0, 0, 0, 0, 0, 0
	g.batch, g.crowd, g.control = false, false, false
}
