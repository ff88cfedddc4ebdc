package scheduler

import "time"

// watch is the watchdog's goroutine: four times in StuckAfter it looks at every worker. It ends after the workers.
func (p *Pool) watch() {
	defer close(p.watched)
	ticker := time.NewTicker(watchPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-ticker.C:
			for _, r := range p.look(p.now()) {
				if p.cfg.Stuck != nil {
					p.cfg.Stuck(r.task, r.tenant, r.running)
				}
			}
		}
	}
}

// report names a Run that is stuck.
type report struct {
	task    *Task
	tenant  *Tenant
	running time.Duration
}

// look finds the workers whose Run has not changed for StuckAfter, and lets the pool go on without them.
func (p *Pool) look(now int64) (reports []report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.workers {
		at := w.at.Load()
		if w.stuck || at&atIndex == 0 {
			continue
		}
		if at != w.seen {
			w.seen, w.since = at, now
			continue
		}
		running := time.Duration(now - w.since)
		if running < StuckAfter || !w.at.CompareAndSwap(at, at|atStuck) {
			continue
		}
		i := int(at&atIndex) - 1
		task, tenant := w.group.tasks[i], w.group.tenant
		p.abandon(w, i, moreOf(at))
		p.counted.Hits++
		reports = append(reports, report{task, tenant, running})
	}
	return reports
}

// abandon settles all of a worker's group but the Run that is stuck, and puts a substitute in its place. While StuckPerTenant Runs of a
// tenant are stuck none of its work is started, so that one tenant cannot hold more workers than it has substitutes for, beyond those
// that it got hold of within one StuckAfter. Under mu.
func (p *Pool) abandon(w *worker, at int, more uint32) {
	g := &w.group
	tenant := g.tenant
	before, after := g.part(0, at, at), g.part(at+1, g.n, 0)
	before.more = more
	for _, part := range [...]*group{&before, &after} {
		p.core.settle(part)
		p.core.resume(part)
	}
	w.turn.takeOver()
	w.stuck, w.stuckAt = true, at // the group itself is the worker's to change
	p.alive--
	held := tenant.stuck.Add(1)
	if held >= StuckPerTenant {
		p.core.bar(tenant, true)
	}
	if !p.stopped && held <= StuckPerTenant && p.substitutes < p.cfg.BlockingWorkers {
		p.substitutes++
		w.replaced = true
		p.hire()
	}
	p.ended.Broadcast()
}

// returned undoes abandon when the Run has returned after all. Under mu.
func (p *Pool) returned(w *worker) {
	g := &w.group
	*g = g.part(w.stuckAt, w.stuckAt+1, 1) // the rest is settled
	clear(g.tasks[1:])
	clear(g.flows[1:])
	g.ran[0], g.more = 1, 0
	if w.returnedMore {
		g.more = 1
	}
	w.turn.gathered.Store(0)
	w.stuck = false
	if w.replaced {
		p.substitutes--
	} else {
		p.alive++
	}
	tenant := g.tenant
	if tenant.stuck.Add(-1) < StuckPerTenant {
		p.core.bar(tenant, false)
		p.rouse()
	}
}
