package memory

import (
	"sync"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// LeaseStore is what the nodes of one process share to know who holds which
// session. It has no goroutine: what has ended is swept, at most every
// sweepEvery, by whoever renews.
//
// Bounds: a record for each lease that has not ended, as many as its users hold
// and have let go of within their ttl.
type LeaseStore struct {
	// immutable
	now   func() time.Time
	began time.Time

	// guarded by mu
	mu      sync.Mutex
	tenants map[string]map[string]leased
	nodes   map[string]*Leases
	swept   int64
}

// leased is one session's record. Instants count from the store's beginning.
type leased struct {
	generation, nonce uint64
	until             int64
	by                *Leases
}

// NewLeaseStore makes an empty store. now is its clock; nil: time.Now, whose
// instants are compared monotonically.
func NewLeaseStore(now func() time.Time) *LeaseStore {
	if now == nil {
		now = time.Now
	}
	return &LeaseStore{now: now, began: now(), tenants: make(map[string]map[string]leased), nodes: make(map[string]*Leases)}
}

// Leases is a bridge.Leases that lives in one process. Its callbacks run before
// their call has returned, on the caller's goroutine.
type Leases struct {
	// immutable
	store *LeaseStore
	node  string

	// guarded by store.mu
	fenced func(bridge.Lease)
	told   func(message []byte)
	closed bool
}

var _ bridge.Leases = (*Leases)(nil)

// NewLeases is one node's part in a store.
func NewLeases(node string, store *LeaseStore) *Leases {
	l := &Leases{store: store, node: node}
	store.mu.Lock()
	defer store.mu.Unlock()
	store.nodes[node] = l
	return l
}

// Fenced implements bridge.Leases.
func (l *Leases) Fenced(told func(bridge.Lease)) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.fenced = told
}

// Told implements bridge.Leases.
func (l *Leases) Told(told func(message []byte)) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.told = told
}

// Tell implements bridge.Leases.
func (l *Leases) Tell(node string, message []byte) {
	var told func([]byte)
	l.store.mu.Lock()
	if to := l.store.nodes[node]; to != nil && !l.closed && !to.closed {
		told = to.told
	}
	l.store.mu.Unlock()
	if told != nil {
		told(message)
	}
}

// Acquire implements bridge.Leases.
func (l *Leases) Acquire(c bridge.Claim, done func(bridge.Acquired, *codec.Error)) {
	s := l.store
	s.mu.Lock()
	if l.closed {
		s.mu.Unlock()
		done(bridge.Acquired{}, errClosed)
		return
	}
	now := s.at()
	held, known := s.find(c.Tenant, c.Session, now)
	switch {
	case !known:
		s.mu.Unlock()
		done(bridge.Acquired{Verdict: bridge.Ended}, nil)
		return
	case held.generation > c.Generation:
		s.mu.Unlock()
		done(bridge.Acquired{Verdict: bridge.Outdated}, nil)
		return
	}
	mine := c.Lease
	mine.Generation++
	s.put(mine, l, now+int64(c.TTL))
	var tell func(bridge.Lease)
	if held.by != l {
		tell = held.by.fenced
	}
	s.mu.Unlock()
	if tell != nil {
		tell(bridge.Lease{Tenant: c.Tenant, Session: c.Session, Generation: held.generation, Nonce: held.nonce})
	}
	done(bridge.Acquired{Verdict: bridge.Taken, Lease: mine}, nil)
}

// Renew implements bridge.Leases.
func (l *Leases) Renew(held []bridge.Lease, ttl time.Duration, done func(*codec.Error)) {
	var lost []bridge.Lease
	s := l.store
	s.mu.Lock()
	if l.closed {
		s.mu.Unlock()
		done(errClosed)
		return
	}
	now := s.at()
	for _, lease := range held {
		has, known := s.find(lease.Tenant, lease.Session, now)
		if known && (has.generation > lease.Generation || has.generation == lease.Generation && has.nonce != lease.Nonce) {
			lost = append(lost, lease)
			continue
		}
		s.put(lease, l, now+int64(ttl))
	}
	s.sweep(now)
	tell := l.fenced
	s.mu.Unlock()
	if tell != nil {
		for _, lease := range lost {
			tell(lease)
		}
	}
	done(nil)
}

// Release implements bridge.Leases.
func (l *Leases) Release(lease bridge.Lease, done func(*codec.Error)) {
	s := l.store
	s.mu.Lock()
	err := errClosed
	if !l.closed {
		err = nil
		if has, known := s.find(lease.Tenant, lease.Session, s.at()); known && has.generation == lease.Generation && has.nonce == lease.Nonce {
			s.remove(lease.Tenant, lease.Session)
		}
	}
	s.mu.Unlock()
	done(err)
}

// Lookup implements bridge.Leases.
func (l *Leases) Lookup(tenant, session string, done func(bridge.Owner, bool, *codec.Error)) {
	s := l.store
	s.mu.Lock()
	if l.closed {
		s.mu.Unlock()
		done(bridge.Owner{}, false, errClosed)
		return
	}
	has, known := s.find(tenant, session, s.at())
	s.mu.Unlock()
	if !known {
		done(bridge.Owner{}, false, nil)
		return
	}
	done(bridge.Owner{Node: has.by.node, Generation: has.generation}, true, nil)
}

// Close implements bridge.Leases.
func (l *Leases) Close() {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.closed = true
	if l.store.nodes[l.node] == l {
		delete(l.store.nodes, l.node)
	}
}

// Lose forgets everything, as a store that fails may. For tests of whoever uses
// the leases.
func (s *LeaseStore) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tenants)
}

func (s *LeaseStore) at() int64 { return int64(s.now().Sub(s.began)) }

func (s *LeaseStore) find(tenant, session string, now int64) (leased, bool) {
	l, known := s.tenants[tenant][session]
	return l, known && l.until > now
}

func (s *LeaseStore) put(l bridge.Lease, by *Leases, until int64) {
	sessions := s.tenants[l.Tenant]
	if sessions == nil {
		sessions = make(map[string]leased)
		s.tenants[l.Tenant] = sessions
	}
	sessions[l.Session] = leased{l.Generation, l.Nonce, until, by}
}

func (s *LeaseStore) remove(tenant, session string) {
	delete(s.tenants[tenant], session)
	if len(s.tenants[tenant]) == 0 {
		delete(s.tenants, tenant)
	}
}

// sweep removes what has ended, all at once: some 20 ns a record.
func (s *LeaseStore) sweep(now int64) {
	if now-s.swept < int64(sweepEvery) {
		return
	}
	s.swept = now
	for tenant, sessions := range s.tenants {
		for session, l := range sessions {
			if l.until <= now {
				s.remove(tenant, session)
			}
		}
	}
}
