package scheduler

import "time"

// Stats are what a Pool does at a moment, and what it has done since it was made.
type Stats struct {
	Workers int // that are not stuck
	Busy    int // of them, in a group
	Stuck   int // in a Run that does not return
	Ready   int // tasks that wait for a worker
	Blocks  int // pieces of blocking work that run
	Waiting int // and that wait for a place

	Work   time.Duration // of all workers, in groups that have ended
	Hits   uint64        // Runs that the watchdog has reported
	Frames uint64        // that Runs have written, by Wrote
	Bytes  uint64
}

// Stats tells them. They are counted under the pool's lock, by workers that have it
// anyway, so that nobody pays for them.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	s := p.counted
	s.Ready, s.Workers = p.core.ready, p.alive
	for w := range p.workers {
		switch {
		case w.stuck:
			s.Stuck++
		case w.at.Load()&atIndex != 0:
			s.Busy++
		}
	}
	p.mu.Unlock()
	s.Blocks, s.Waiting = p.blocking.load()
	return s
}

func (b *blocking) load() (running, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.stile.keys {
		waiting += q.waiting.Len()
	}
	return b.running, waiting
}

// Wrote is Spend for frames that the Run has handed to a socket.
func (t *Turn) Wrote(frames, bytes int) {
	t.Spend(frames, bytes)
	t.frames += frames
	t.written += bytes
}

// Sample is true once in every calls on this worker.
func (t *Turn) Sample(every uint32) bool {
	t.samples++
	return t.samples%every == 0
}

// count adds what a group has done. Under Pool.mu.
func (s *Stats) count(t *Turn, took time.Duration) {
	s.Work += took
	s.Frames += uint64(t.frames)
	s.Bytes += uint64(t.written)
	t.frames, t.written = 0, 0
}
