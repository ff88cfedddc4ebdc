package scheduler

// group is what a worker takes at once: one batch of an actor, or some sessions of one flow.
type group struct {
	flow    *Flow
	tasks   [groupTasks]*Task
	n       int
	done    int    // tasks that have run, from the front
	more    uint32 // bit i: tasks[i] has more to do
	wanted  uint32 // bit i: tasks[i] had control work when it was taken
	budget  int64  // model's units after which no further task is begun
	batch   bool   // charged to the batches' half
	control bool   // a control turn
}

func (g *group) add(t *Task, wanted bool) {
	if wanted {
		g.wanted |= 1 << g.n
	}
	g.tasks[g.n] = t
	g.n++
}

// reset forgets the tasks, so that an idle worker holds nobody's memory.
func (g *group) reset() {
	clear(g.tasks[:g.n])
	*g = group{tasks: g.tasks}
}
