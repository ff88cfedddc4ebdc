package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/actors/session"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

const (
	// renewBatch is how many leases are renewed by one call, and by how many calls
	// within a lease's life their dates are spread.
	renewBatch = 512
	renewTicks = 30
	// acquireTime is how long a client with a resume token waits for the store,
	// before it gets a new session instead.
	acquireTime = 2 * time.Second
	// partingTime is how long Close waits for the store to hear of sessions whose
	// connections have ended.
	partingTime = 2 * time.Second
)

// sessions keeps the leases of the sessions whose connections are on this node.
// One goroutine, owned by it from start to close, makes all calls of the store
// that write, one renewal at a time; so a release comes behind the renewals of
// its lease.
//
// A lease is renewed at a third of its life, and once more when its connection has
// ended, from which on its life counts. While the store is away everything waits
// and is tried again at the next tick.
type sessions struct {
	// immutable
	leases bridge.Leases
	sealer *auth.Sealer
	ttl    time.Duration
	began  time.Time
	most   func(tenant string) int // detached sessions that a tenant may have
	logger *slog.Logger
	nudged chan struct{}      // of 1: something is to be told at once
	quit   chan time.Duration // of 1: how long run may go on
	ended  chan struct{}

	// guarded by mu
	mu      sync.Mutex
	records records
}

// startSessions starts its goroutine.
func startSessions(leases bridge.Leases, sealer *auth.Sealer, cfg *Config, most func(tenant string) int) *sessions {
	s := &sessions{
		leases: leases, sealer: sealer, ttl: cfg.Limits.ResumeTTL, began: time.Now(), logger: cfg.Logger,
		most:   most,
		nudged: make(chan struct{}, 1), quit: make(chan time.Duration, 1), ended: make(chan struct{}),
		records: newRecords(cfg.Limits.ResumeTTL, cfg.Limits.MaxSessions),
	}
	leases.Fenced(s.fenced)
	go s.run()
	return s
}

// now is monotonic: steps of the wall clock move nothing.
func (s *sessions) now() int64 { return int64(time.Since(s.began)) }

// claim makes the record of a client's session: the one that its resume token
// names, if the token and the store allow it, else a new one. Why they do not is
// told to the log alone.
func (s *sessions) claim(ctx context.Context, id *auth.Identity, token string) (r *record, resumed bool) {
	if token != "" {
		r, why := s.resume(ctx, id, token)
		if r != nil {
			return r, true
		}
		s.logger.Info("resume token not taken", "cause", why, "tenant", id.Tenant)
	}
	return &record{lease: bridge.Lease{Tenant: id.Tenant, Session: rand.Text(), Generation: 1, Nonce: nonce()}}, false
}

// resume acquires the session that a token names; else it says why not.
func (s *sessions) resume(ctx context.Context, id *auth.Identity, token string) (r *record, why string) {
	t, err := s.sealer.Open(token, time.Now())
	switch {
	case err != nil:
		return nil, "invalid"
	case t.Tenant != id.Tenant:
		return nil, "tenant"
	case t.Subject != id.Subject:
		return nil, "subject"
	}
	c := bridge.Lease{Tenant: t.Tenant, Session: t.Session, Generation: t.Generation, Nonce: nonce()}
	s.mu.Lock()
	here, decided := s.records.claim(c)
	s.mu.Unlock()
	if decided {
		return taken(here, false)
	}
	ctx, cancel := context.WithTimeout(ctx, acquireTime)
	defer cancel()
	there, fault := await(ctx, func(done func(bridge.Acquired, *codec.Error)) {
		s.leases.Acquire(bridge.Claim{Lease: c, TTL: s.ttl}, done)
	})
	if fault != nil {
		return nil, "store" // what it takes nevertheless ends by its time
	}
	return taken(there, true)
}

func taken(a bridge.Acquired, written bool) (r *record, why string) {
	if a.Verdict != bridge.Taken {
		return nil, a.Verdict.String()
	}
	return &record{lease: a.Lease, written: written}, ""
}

func nonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// hold takes a session on. The one of an earlier connection, if that is on this
// node and lives, is told that it was taken over, and returned.
func (s *sessions) hold(r *record, its *session.Session) (old *session.Session) {
	s.mu.Lock()
	if r.session == nil {
		old = s.records.add(r, s.now())
	}
	r.session = its
	s.mu.Unlock()
	if old != nil {
		old.Kick(codec.CauseTakenOver)
	}
	s.nudge()
	return old
}

// end is told that a session is over.
func (s *sessions) end(r *record) {
	s.mu.Lock()
	s.records.end(r)
	s.mu.Unlock()
	s.nudge()
}

// detach is told that a session's connection has ended; its time begins to run.
func (s *sessions) detach(r *record) {
	s.mu.Lock()
	s.records.detach(r, s.now(), s.most(r.lease.Tenant))
	s.mu.Unlock()
	s.nudge()
}

// find is the live session of a tenant by its id; nil: there is none on this node.
func (s *sessions) find(tenant, id string) *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records.byID[id]; r != nil && r.lease.Tenant == tenant {
		return r.session
	}
	return nil
}

// holder is the node that has a session, by the store; empty: there is no such session.
func (s *sessions) holder(ctx context.Context, tenant, id string) (string, *codec.Error) {
	return await(ctx, func(done func(string, *codec.Error)) {
		s.leases.Lookup(tenant, id, func(o bridge.Owner, _ bool, err *codec.Error) { done(o.Node, err) })
	})
}

// fenced is the store's: a lease is somebody else's.
func (s *sessions) fenced(lost bridge.Lease) {
	s.mu.Lock()
	its := s.records.lose(lost)
	s.mu.Unlock()
	if its != nil {
		its.Kick(codec.CauseTakenOver)
	}
}

func (s *sessions) nudge() {
	select {
	case s.nudged <- struct{}{}:
	default: // it will look
	}
}

// run tells the store, until close.
func (s *sessions) run() {
	defer close(s.ended)
	tick := time.NewTicker(max(s.ttl/renewTicks, 10*time.Millisecond))
	defer tick.Stop()
	var (
		batch    []*record // being renewed; empty: none is
		failed   bool      // since the last tick
		answered = make(chan *codec.Error, 1)
		closing  bool
		late     <-chan time.Time // while closing: the end of patience
	)
	for {
		if s.release(); len(batch) == 0 && !failed {
			batch = s.renew(batch, answered)
		}
		if len(batch) == 0 && closing {
			return
		}
		select {
		case err := <-answered:
			s.mu.Lock()
			s.records.renewed(batch, err == nil, s.now())
			s.mu.Unlock()
			clear(batch)
			batch, failed = batch[:0], err != nil
		case <-tick.C:
			failed = false
			s.mu.Lock()
			s.records.expire(s.now())
			s.mu.Unlock()
		case <-s.nudged:
		case patience := <-s.quit:
			closing, late, failed = true, time.After(patience), false
		case <-late:
			s.logger.Error("closed before the store has heard of all sessions")
			return
		}
	}
}

// renew has what is due renewed, if anything is.
func (s *sessions) renew(batch []*record, answered chan<- *codec.Error) []*record {
	s.mu.Lock()
	batch = s.records.toRenew(batch, s.now(), renewBatch)
	leases := make([]bridge.Lease, len(batch))
	for i, r := range batch {
		leases[i] = r.lease
	}
	s.mu.Unlock()
	if len(batch) > 0 {
		s.leases.Renew(leases, s.ttl, func(err *codec.Error) { answered <- err })
	}
	return batch
}

// release has released what is to be.
func (s *sessions) release() {
	s.mu.Lock()
	list := s.records.toRelease()
	s.mu.Unlock()
	for _, r := range list {
		// If it is not heard of the lease ends by its time.
		s.leases.Release(r.lease, func(*codec.Error) {})
	}
}

// close tells the store what it has yet to hear, if it can in that time. No
// connection is left.
func (s *sessions) close(patience time.Duration) {
	s.quit <- patience
	<-s.ended
}
