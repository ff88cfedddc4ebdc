package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
)

// renewTime is how long a node waits for the one that has a session.
const renewTime = 3 * time.Second

// renewals are those of sessions on other nodes: each is told the node that holds the
// session, and its answer comes back in the same way. What nodes tell each other is
// sealed with the deployment's key; no token is in it, but what its node has found it to
// say.
type renewals struct {
	mu      sync.Mutex
	waiting map[string]chan noteAnswer // by name; guarded by mu
}

// note is what one node tells another. What it does not know is passed over.
type note struct {
	Name   string      `json:"name"` // of the renewal
	From   string      `json:"from,omitempty"`
	Renew  *noteRenew  `json:"renew,omitempty"`
	Answer *noteAnswer `json:"answer,omitempty"`
}

// noteRenew asks for new credentials of a session, which were found good.
type noteRenew struct {
	Tenant  string          `json:"tenant"`
	Session string          `json:"session"`
	Subject string          `json:"subject"`
	Grants  json.RawMessage `json:"grants"` // as in a token
	Expires int64           `json:"exp_ms,omitempty"`
	Leeway  int64           `json:"leeway_ms,omitempty"`
	TokenID string          `json:"token_id,omitempty"`
}

// noteAnswer has no token where the session is not the subject's, or has ended.
type noteAnswer struct {
	Expires int64  `json:"exp_ms,omitempty"`
	Resume  string `json:"resume,omitempty"`
}

func noteOf(session string, id *auth.Identity) *noteRenew {
	n := &noteRenew{
		Tenant: id.Tenant, Session: session, Subject: id.Subject,
		Leeway: id.Leeway.Milliseconds(), TokenID: id.TokenID,
	}
	if !id.Expires.IsZero() {
		n.Expires = id.Expires.UnixMilli()
	}
	n.Grants, _ = json.Marshal(id.Grants.List()) // a list of grants has no error
	return n
}

// identity is what the note says of who it is. A right of a later version is passed
// over; grants that are none are no rights.
func (n *noteRenew) identity() *auth.Identity {
	id := &auth.Identity{Tenant: n.Tenant, Subject: n.Subject, Leeway: time.Duration(n.Leeway) * time.Millisecond, TokenID: n.TokenID}
	if n.Expires != 0 {
		id.Expires = time.UnixMilli(n.Expires)
	}
	id.Grants, _ = auth.ParseGrants(n.Grants)
	return id
}

// elsewhere renews a session that is not on this node.
func (e *Engine) elsewhere(ctx context.Context, session string, id *auth.Identity) (codec.Result, *codec.Error) {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	owner, err := e.leases.holder(ctx, id.Tenant, session)
	if err != nil || owner == "" || owner == e.cfg.Node {
		if err == nil {
			err = errOtherSession
		}
		return nil, err
	}
	name, answer := rand.Text(), make(chan noteAnswer, 1)
	r := &e.renewals
	r.mu.Lock()
	if r.waiting == nil {
		r.waiting = make(map[string]chan noteAnswer)
	}
	r.waiting[name] = answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.waiting, name)
		r.mu.Unlock()
	}()
	e.tell(owner, note{Name: name, From: e.cfg.Node, Renew: noteOf(session, id)})
	select {
	case a := <-answer:
		if a.Resume == "" {
			return nil, errOtherSession
		}
		return &codec.TokenResult{Exp: a.Expires, Resume: a.Resume}, nil
	case <-ctx.Done():
		return nil, errNodeSilent
	}
}

func (e *Engine) tell(node string, n note) {
	plain, err := json.Marshal(n)
	if err != nil {
		panic(err) // it has nothing that cannot be said
	}
	e.leases.leases.Tell(node, e.leases.sealer.SealMessage(plain, time.Now()))
}

// told is the leases'.
func (e *Engine) told(message []byte) {
	plain, err := e.leases.sealer.OpenMessage(message, time.Now())
	var n note
	if err != nil || json.Unmarshal(plain, &n) != nil {
		if n := e.unread.due(time.Now()); n > 0 {
			e.cfg.Logger.Warn("what another node tells cannot be read: have all the same deployment key, and one time?", "times", n)
		}
		return
	}
	switch {
	case n.Answer != nil:
		r := &e.renewals
		r.mu.Lock()
		answer := r.waiting[n.Name]
		delete(r.waiting, n.Name)
		r.mu.Unlock()
		if answer != nil {
			answer <- *n.Answer
		}
	case n.Renew != nil:
		e.renewHere(n)
	}
}

// renewHere renews a session for another node.
func (e *Engine) renewHere(n note) {
	answer := func(ok *codec.TokenResult, err *codec.Error) {
		if err != nil {
			return // what is not answered may be tried again
		}
		var a noteAnswer
		if ok != nil {
			a = noteAnswer{Expires: ok.Exp, Resume: ok.Resume}
		}
		e.tell(n.From, note{Name: n.Name, Answer: &a})
	}
	s := e.leases.find(n.Renew.Tenant, n.Renew.Session)
	if s == nil || s.Subject() != n.Renew.Subject || !s.Renew(n.Renew.identity(), answer) {
		answer(nil, nil)
	}
}
