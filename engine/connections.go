package engine

import (
	"sync"

	"github.com/yaza-dev/pulse/actors/session"
)

// connections are the sockets that there are, from Accept until they have ended:
// what is counted is a set, so that no path can count one twice or never.
type connections struct {
	mu  sync.Mutex
	all map[*connection]struct{} // guarded by mu
}

func (cs *connections) add(c *connection) {
	cs.mu.Lock()
	cs.all[c] = struct{}{}
	cs.mu.Unlock()
}

func (cs *connections) remove(c *connection) {
	cs.mu.Lock()
	delete(cs.all, c)
	if len(cs.all) == 0 {
		cs.all = make(map[*connection]struct{}) // a map never gives back what it has grown to
	}
	cs.mu.Unlock()
}

func (cs *connections) count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.all)
}

// attached is one session that has a connection.
type attached struct {
	tenant  string
	session *session.Session
}

// held lists the sessions that have a connection here, and counts those that may be
// resumed.
func (s *sessions) held() (live []attached, detached int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records.byID {
		if r.state == recordLive && r.session != nil {
			live = append(live, attached{r.lease.Tenant, r.session})
		}
	}
	return live, s.records.apart
}
