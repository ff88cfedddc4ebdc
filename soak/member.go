package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/soak/history"
)

// payload is what publishers send.
type payload struct {
	Source int           `json:"s"`
	Number int           `json:"n"`
	Sent   time.Duration `json:"t"` // since the run began
}

// member is one client in its rooms. What it hears is written down twice: as it comes
// over the wire, and as the client hands it out.
type member struct {
	crowd *crowd // immutable, as name and rooms
	name  string
	rooms []string

	client *client.Client                  // of whoever connects it, as subs
	subs   map[string]*client.Subscription // by room

	mu sync.Mutex
	// guarded by mu
	wire   map[string][]history.Entry // by room
	given  map[string][]history.Entry
	faults []string // of what came, that nothing else would tell

	following sync.WaitGroup // who read subscriptions
}

func newMember(c *crowd, name string, rooms ...string) *member {
	return &member{
		crowd: c, name: name, rooms: rooms, subs: map[string]*client.Subscription{},
		wire: map[string][]history.Entry{}, given: map[string][]history.Entry{},
	}
}

// come connects, and joins the rooms from where the member was, until ctx ends.
func (m *member) come(ctx context.Context) error {
	c, err := client.New(client.Options{
		URL: "ws://any", Timeout: 3 * time.Second, Events: client.Bound{Items: longKept},
		Token:      func(context.Context) (string, error) { return m.crowd.site.token(), nil },
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: m.crowd.site.dial, DisableKeepAlives: true}},
		OnFrame:    m.heard,
	})
	if err != nil {
		return err
	}
	m.client = c
	for _, room := range m.rooms {
		join := client.Join{Room: room}
		if old := m.subs[room]; old != nil {
			join.Position = old.Position()
		}
		s, err := m.join(ctx, c, join)
		if err != nil {
			return fmt.Errorf("%s joins %s: %w", m.name, room, err)
		}
		m.subs[room] = s
		m.following.Go(func() { m.follow(s) })
	}
	return nil
}

// join tries again what may succeed later.
func (m *member) join(ctx context.Context, c *client.Client, j client.Join) (*client.Subscription, error) {
	for {
		s, err := c.Join(ctx, j)
		var refusal *client.Error
		if !errors.As(err, &refusal) || !refusal.Code.Retryable() {
			return s, err
		}
		select {
		case <-time.After(refusal.RetryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// goAway ends the client, once everything that it had was handed out. What came over the
// wire while it ended was not taken, and comes again to whoever comes back.
func (m *member) goAway() {
	if m.client == nil {
		return // it never came
	}
	m.client.Close()
	m.following.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for room, s := range m.subs {
		entries := m.wire[room]
		for n := len(entries); n > 0 && entries[n-1].Position != s.Position(); n-- {
			entries = entries[:n-1]
		}
		m.wire[room] = entries
	}
}

// wander comes and goes until stay is closed, and is there then.
func (m *member) wander(ctx context.Context, seed uint64, stay <-chan struct{}) error {
	random := rand.New(rand.NewPCG(seed, 1))
	for {
		select {
		case <-stay:
			return nil
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second + time.Duration(random.Int64N(int64(4*time.Second)))):
		}
		m.goAway()
		select {
		case <-stay:
		case <-time.After(time.Duration(random.Int64N(int64(3 * time.Second)))):
		}
		if err := m.come(ctx); err != nil {
			return err
		}
	}
}

// heard writes down what comes over the wire.
func (m *member) heard(frame []byte) {
	doc, err := codec.DecodeDocument(codec.JSON, frame)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.faults = append(m.faults, err.Error())
		return
	}
	switch d := doc.(type) {
	case *codec.Welcome:
		m.crowd.connected.Add(1)
		for room := range m.wire {
			m.write(m.wire, room, history.Entry{Kind: history.Lost})
		}
		for _, r := range d.Rooms {
			if r.OK != nil {
				m.joined(r.OK)
			}
		}
	case *codec.Reply:
		if r, is := d.OK.(*codec.JoinResult); is {
			m.joined(r)
		}
	case *codec.Event:
		late := m.event(m.wire, d.Topic.Room, d.Position, d.Data)
		m.crowd.delays.add(late)
	case *codec.Reset:
		m.write(m.wire, d.Room, history.Entry{Kind: history.Reset, Reason: d.Reason, Position: d.Position})
	case *codec.Left:
		m.write(m.wire, d.Room, history.Entry{Kind: history.Left})
	}
}

func (m *member) joined(r *codec.JoinResult) {
	m.write(m.wire, r.Room, history.Entry{Kind: history.Joined, Recovered: r.Recovered, Reason: r.Reset, Position: r.Position})
}

// event writes one down, and says how late it is. mu is held.
func (m *member) event(diary map[string][]history.Entry, room string, at codec.Position, data codec.Data) time.Duration {
	var p payload
	if err := data.Unmarshal(&p); err != nil {
		m.faults = append(m.faults, err.Error())
	}
	m.write(diary, room, history.Entry{Kind: history.Event, Position: at, Key: history.Key{Source: p.Source, Number: p.Number}})
	return m.crowd.now() - p.Sent
}

// write adds an entry to a diary. mu is held.
func (m *member) write(diary map[string][]history.Entry, room string, e history.Entry) {
	e.At = m.crowd.now()
	diary[room] = append(diary[room], e)
}

// follow writes down what the client hands out, until the subscription ends.
func (m *member) follow(s *client.Subscription) {
	for {
		item, err := s.Next(context.Background())
		if err != nil {
			if !errors.Is(err, client.ErrClosed) {
				m.mu.Lock()
				m.faults = append(m.faults, fmt.Sprintf("%s: %v", s.Room(), err))
				m.mu.Unlock()
			}
			return
		}
		m.mu.Lock()
		switch item := item.(type) {
		case *client.Event:
			m.event(m.given, s.Room(), item.Position, item.Data)
		case *client.Reset:
			kind := history.Reset
			if item.Reason == codec.ResetNone {
				kind = history.Joined
			}
			m.write(m.given, s.Room(), history.Entry{Kind: kind, Reason: item.Reason, Position: item.Position})
		case *client.Gap:
			m.faults = append(m.faults, fmt.Sprintf("%s: the client was too slow: %+v", s.Room(), item))
		}
		m.mu.Unlock()
	}
}

// reached reports whether the member has what is at p, by both diaries.
func (m *member) reached(room string, p codec.Position) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, diary := range []map[string][]history.Entry{m.wire, m.given} {
		n := len(diary[room])
		if n == 0 || diary[room][n-1].Position.Epoch != p.Epoch || diary[room][n-1].Position.Offset < p.Offset {
			return false
		}
	}
	return true
}
