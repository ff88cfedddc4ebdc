package scheduler

import (
	"sync/atomic"
	"testing"
	"time"
)

type runnerFunc func(t *Turn) bool

func (f runnerFunc) Run(t *Turn) bool { return f(t) }

// What a pool counts is what its tasks did, by a clock that the test moves.
func TestStatsOfWork(t *testing.T) {
	var now atomic.Int64
	now.Store(1)
	p := NewPool(PoolConfig{Workers: 1, Now: func() int64 { return now.Load() }})
	defer p.Stop()
	tenant := NewTenant(1)
	flow := tenant.NewFlow()
	sampled := 0
	var task, other Task
	task.Init(runnerFunc(func(turn *Turn) bool {
		now.Add(int64(time.Millisecond))
		turn.Wrote(3, 700)
		if turn.Sample(4) {
			sampled++
		}
		return false
	}), flow, Session)
	other.Init(runnerFunc(func(*Turn) bool { return false }), flow, Actor)
	for range 8 {
		p.Ready(&task, nil)
		for p.Step() {
		}
	}
	p.Ready(&other, nil)
	got := p.Stats()
	want := Stats{Ready: 1, Work: 8 * time.Millisecond, Frames: 24, Bytes: 5600}
	if got != want || sampled != 2 {
		t.Errorf("%+v and %d sampled, want %+v and 2", got, sampled, want)
	}
	for p.Step() {
	}
}

// A worker that is held is told apart from one that works and one that sleeps, and
// blocking work that waits from what runs.
func TestStatsOfWorkers(t *testing.T) {
	hits := make(chan struct{}, 1)
	p := NewPool(PoolConfig{Workers: 2, BlockingWorkers: 2, Stuck: func(*Task, *Tenant, time.Duration) { hits <- struct{}{} }})
	p.Start()
	defer p.Stop()
	tenant := NewTenant(1)
	flow := tenant.NewFlow()
	in, out := make(chan struct{}), make(chan struct{})
	var task Task
	task.Init(runnerFunc(func(*Turn) bool { close(in); <-out; return false }), flow, Actor)
	p.Ready(&task, nil)
	<-in
	if s := p.Stats(); s.Busy != 1 || s.Workers != 2 || s.Stuck != 0 || s.Hits != 0 {
		t.Errorf("a busy one: %+v", s)
	}
	<-hits
	if s := p.Stats(); s.Busy != 0 || s.Workers != 2 || s.Stuck != 1 || s.Hits != 1 { // a substitute is there
		t.Errorf("a stuck one: %+v", s)
	}
	close(out)

	blocks, end := make(chan struct{}), make(chan struct{})
	if !p.Block(tenant, func() { close(blocks); <-end }) {
		t.Fatal("no place")
	}
	<-blocks
	for range 3 {
		p.Block(tenant, func() { <-end })
	}
	if s := p.Stats(); s.Blocks != 1 || s.Waiting != 3 { // half of the two places are one tenant's
		t.Errorf("blocking: %+v", s)
	}
	close(end)
}
