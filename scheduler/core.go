package scheduler

// core decides who runs next: deficit round robin by tenant, and in a tenant's turn by flow. It has no goroutine, clock or lock; whoever
// drives it does.
//
// A driver asks next for a group, runs it, then settles it: its tasks and its real cost. Settling comes before the following decision,
// never after: what was reserved and paid back later would skew the shares.
type core struct {
	fresh   fifo[Tenant, tenantTurn] // newly ready tenants, served before the old ones
	old     fifo[Tenant, tenantTurn]
	control fifo[Tenant, tenantControl]
	current *Tenant
	ready   int // linked tasks of tenants that are not barred
	groups  int // since the last control turn
}

// add takes note of a wake-up of t that f is to be charged for.
func (c *core) add(t *Task, f *Flow) {
	if t.phase == running {
		t.woken = f
	} else {
		c.link(t, f, false)
	}
	if t.urgent.Load() {
		c.linkControl(t)
	}
}

// link makes t ready, and lists it unless it is in a list already.
func (c *core) link(t *Task, f *Flow, front bool) {
	t.phase = ready
	if t.linked {
		return
	}
	t.linked = true
	t.flow = f
	if front {
		f.list(t.class).pushFront(t)
	} else {
		f.list(t.class).push(t)
	}
	tenant := f.tenant
	tenant.ready++
	if !tenant.barred {
		c.ready++
	}
	tenant.activate(f)
	if !tenant.listed {
		c.activate(tenant)
	}
}

func (c *core) linkControl(t *Task) {
	if t.inControl {
		return
	}
	t.inControl = true
	tenant := t.home.tenant
	tenant.control.push(t)
	c.activateControl(tenant)
}

func (c *core) activate(t *Tenant) {
	if !t.listed && !t.barred {
		t.listed = true
		c.fresh.push(t)
	}
}

func (c *core) activateControl(t *Tenant) {
	if !t.inControl && !t.barred && !t.control.empty() {
		t.inControl = true
		c.control.push(t)
	}
}

// next fills g with what runs next; false when nothing is ready.
func (c *core) next(g *group) bool {
	if c.groups >= ControlEvery-1 && c.nextControl(g) {
		c.groups = 0
		return true
	}
	for {
		t := c.current
		if t == nil {
			if t = c.fresh.pop(); t == nil {
				if t = c.old.pop(); t == nil {
					return false
				}
			}
			if !c.visit(t) {
				continue
			}
			c.current = t
		}
		if t.deficit > 0 && !t.barred && t.next(c, g) {
			c.groups++
			return true
		}
		c.old.push(t)
		c.current = nil
	}
}

// visit grants t its quantum and reports whether it may have a turn; if not it is where it belongs.
func (c *core) visit(t *Tenant) bool {
	if t.barred {
		t.listed = false // bar lists it again
		return false
	}
	if t.ready == 0 && len(t.readers) == 0 {
		t.rest()
		return false
	}
	t.grant()
	t.admit()
	if t.ready == 0 || t.deficit <= 0 {
		c.old.push(t)
		return false
	}
	t.begin()
	return true
}

// nextControl takes a task with control work, tenant by tenant, whatever their debts.
func (c *core) nextControl(g *group) bool {
	for {
		t := c.control.pop()
		if t == nil {
			return false
		}
		t.inControl = false
		if t.barred {
			continue
		}
		task := t.control.pop()
		task.inControl = false
		c.activateControl(t)
		if !task.urgent.Load() {
			continue // served by a turn of its own
		}
		if ok, _ := task.take(); ok { // else running: its end sees to it
			g.tenant, g.control = t, true
			g.add(task, task.home, true)
			return true
		}
	}
}

// pop takes the next ready task from a list of f.
func (c *core) pop(f *Flow, list *taskList) (t *Task, wanted bool) {
	for {
		t = list.pop()
		if t == nil {
			return nil, false
		}
		t.linked = false
		f.tenant.ready--
		if !f.tenant.barred {
			c.ready--
		}
		if ok, wanted := t.take(); ok {
			t.flow = f
			return t, wanted
		}
		if t.phase == idle {
			t.flow = nil // a control turn has done all
		} // else it is in one, whose end links it again if there is more
	}
}

func (c *core) takeActor(f *Flow, g *group) bool {
	t, wanted := c.pop(f, &f.actors)
	if t == nil {
		return false
	}
	g.tenant = f.tenant
	g.add(t, f, wanted)
	return true
}

func (c *core) takeSessions(f *Flow, g *group) bool {
	for g.n < groupTasks {
		t, wanted := c.pop(f, &f.sessions)
		if t == nil {
			break
		}
		g.add(t, f, wanted)
	}
	g.tenant = f.tenant
	g.budget = min(int64(f.deficit), f.tenant.deficit)
	return g.n > 0
}

// takeCrowd takes the only session of the flow that is being visited, and those of the flows that come next as long as they have but one:
// where each session has a flow of its own a worker would else come back for every Run. Each of the flows has credit for its Run, and the
// tenant's credit ends the group. When it has run, visits with credit left go on.
func (c *core) takeCrowd(t *Tenant, g *group) bool {
	ahead := true
	for t.current != nil && t.current.alone() && g.n < groupTasks {
		f := t.current
		c.takeAlone(f, g, ahead)
		t.current = nil
		t.retire(f)
		for t.current == nil && t.toVisit > 0 && g.n < groupTasks && (t.resumed.empty() || !t.resumes()) {
			ahead = !t.fresh.empty()
			t.toVisit--
			t.visit()
		}
	}
	return g.n > 0
}

// takeResumed goes on with visits that a crowd has begun, as a crowd again where they allow it.
func (c *core) takeResumed(t *Tenant, g *group) bool {
	for g.n < groupTasks && t.resumes() {
		f := t.resumed.pop()
		when := f.resumed
		f.resumed = notAtAll
		switch {
		case f.deficit <= 0:
		case f.alone():
			c.takeAlone(f, g, when == beforeNew)
		case g.n > 0:
			t.resume(f, when, true)
			return true
		case c.takeSessions(f, g) || c.takeActor(f, g):
			t.resume(f, beforeNew, true)
			return true
		}
	}
	return g.n > 0
}

func (c *core) takeAlone(f *Flow, g *group, ahead bool) {
	if t, wanted := c.pop(f, &f.sessions); t != nil {
		if ahead {
			g.ahead |= 1 << g.n
		}
		g.tenant, g.crowd, g.budget = f.tenant, true, f.tenant.deficit
		g.add(t, f, wanted)
	}
}

// charge books the cost of a group.
func (c *core) charge(g *group, cost int64) {
	for i, before := 0, int64(0); i < g.done; i++ {
		upTo := g.upTo(i, cost)
		g.flows[i].deficit -= int32(upTo - before)
		before = upTo
	}
	g.tenant.deficit -= cost
	if g.batch {
		g.tenant.batches -= cost
	}
	g.tenant.fold()
}

// resume lets the visits of a crowd's flows go on that have credit and something to spend it on. Those whose session did not run come
// first, and before or after flows that have become ready as if they had not been visited.
func (c *core) resume(g *group) {
	if !g.crowd {
		return
	}
	for _, f := range g.flows[:g.done] {
		if !f.empty() {
			g.tenant.resume(f, afterNew, false)
		}
	}
	for i := g.n - 1; i >= g.done; i-- {
		when := afterNew
		if g.ahead&(1<<i) != 0 {
			when = beforeNew
		}
		g.tenant.resume(g.flows[i], when, true)
	}
}

// settle returns a group's tasks: what ran by its result, the rest to the front, as it was.
func (c *core) settle(g *group) {
	for i := range g.done {
		c.finish(g.tasks[i], g.more&(1<<i) != 0)
	}
	for i := g.n - 1; i >= g.done; i-- {
		c.putBack(g.tasks[i], g.wanted&(1<<i) != 0)
	}
}

func (c *core) finish(t *Task, more bool) {
	t.phase = idle
	switch {
	case more || t.woken != nil:
		c.again(t)
	case !t.linked:
		t.flow = nil
	}
}

// again makes a task ready whose Run has ended.
func (c *core) again(t *Task) {
	f := t.flow
	if t.woken != nil {
		f, t.woken = t.woken, nil
	}
	if f == nil {
		f = t.home
	}
	c.add(t, f)
}

func (c *core) putBack(t *Task, wanted bool) {
	t.woken = nil
	if wanted {
		t.urgent.Store(true)
	}
	c.link(t, t.flow, true)
	if t.urgent.Load() {
		c.linkControl(t)
	}
}

// bar stops or resumes the serving of t. Its tasks keep their places.
func (c *core) bar(t *Tenant, barred bool) {
	if t.barred == barred {
		return
	}
	t.barred = barred
	if barred {
		c.ready -= t.ready
		t.admitAll() // nobody pays its debts now
		return
	}
	c.ready += t.ready
	if t.ready > 0 {
		c.activate(t)
	}
	c.activateControl(t)
}
