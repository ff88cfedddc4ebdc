package scheduler

import (
	"sync"
	"testing"
)

// fifoPool is what the pool would be without fairness: one list, first come first
// served, with the same groups. It is the reference for
// what two levels of round robin cost.
type fifoPool struct {
	mu   sync.Mutex
	list taskList
	turn Turn
}

func (p *fifoPool) wake(tasks []*Task) {
	p.mu.Lock()
	for _, t := range tasks {
		if t.phase == idle {
			t.phase = ready
			p.list.push(t)
		}
	}
	p.mu.Unlock()
}

func (p *fifoPool) step() bool {
	var group [groupTasks]*Task
	n := 0
	p.mu.Lock()
	for n < groupTasks {
		t := p.list.pop()
		if t == nil {
			break
		}
		if ok, _ := t.take(); ok {
			group[n] = t
			n++
		}
	}
	p.mu.Unlock()
	for _, t := range group[:n] {
		t.runner.Run(&p.turn)
	}
	p.mu.Lock()
	for _, t := range group[:n] {
		t.phase = idle
	}
	p.mu.Unlock()
	return n > 0
}

// BenchmarkTask64PerWakeFIFO is BenchmarkTask64PerWake without fairness, cost or
// watchdog.
func BenchmarkTask64PerWakeFIFO(b *testing.B) {
	pool := &fifoPool{}
	flow := NewTenant(1).NewFlow()
	tasks := make([]*Task, 64)
	for i := range tasks {
		tasks[i] = task(flow, Session, func(*Turn) bool { return false })
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		pool.wake(tasks)
		for pool.step() {
		}
		n += len(tasks)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/task")
}
