package scheduler

import (
	"context"
	"time"
)

// reader is a goroutine that waits until its tenant's debt is paid.
type reader struct {
	cost int64
	in   chan struct{}
}

// Decode runs work, the decoding of some bytes of t, on the caller's goroutine and charges it to t, corrected by measured time. At most
// GOMAXPROCS decode at once, those who wait round robin by tenant.
//
// A tenant more than two quanta in debt has its readers wait, asleep. While they do, the tenant stays in the rotation even with no task
// ready, and each visit pays a quantum; so the debt is paid at the pace of the others' turns, and at once when nobody else has work. For
// the same reason a reader that comes in debt to a pool with nothing ready finds the debt forgiven: nobody is owed anything.
func (p *Pool) Decode(t *Tenant, bytes int, work func()) {
	cost := modelCost(1, bytes)
	if owed := t.debt.Load() + t.decoded.Add(cost) - cost; owed > debtQuanta*t.quantum() {
		p.awaitCredit(t, cost)
	}
	// Not to be cancelled: a place is held for the time of decoding one frame.
	_ = p.decoders.acquire(context.Background(), t)
	defer p.decoders.release()
	start := p.now()
	work()
	if more := realCost(cost, time.Duration(p.now()-start)) - cost; more > 0 {
		t.decoded.Add(more)
	}
}

// awaitCredit waits until t may decode again. cost has been added to t.decoded.
func (p *Pool) awaitCredit(t *Tenant, cost int64) {
	p.mu.Lock()
	t.fold()
	if p.core.ready == 0 && !t.barred {
		t.deficit = max(t.deficit, 0)
		t.fold()
	}
	if p.stopped || t.barred || t.inCredit(cost) {
		p.mu.Unlock()
		return
	}
	t.deficit += cost // charged when it is let in
	r := reader{cost, make(chan struct{})}
	t.readers = append(t.readers, r)
	p.core.activate(t)
	p.mu.Unlock()
	select {
	case <-r.in:
	case <-p.stopping:
	}
}

// inCredit reports whether the debt, less refund, lets readers go on.
func (t *Tenant) inCredit(refund int64) bool { return t.deficit+refund >= -debtQuanta*t.quantum() }

// admit lets readers in while the debt allows it.
func (t *Tenant) admit() {
	for len(t.readers) > 0 && t.inCredit(0) {
		t.admitNext()
	}
}

func (t *Tenant) admitAll() {
	for len(t.readers) > 0 {
		t.admitNext()
	}
}

func (t *Tenant) admitNext() {
	r := t.readers[0]
	t.readers[0] = reader{}
	if t.readers = t.readers[1:]; len(t.readers) == 0 {
		t.readers = nil
	}
	t.deficit -= r.cost
	t.fold()
	close(r.in)
}
