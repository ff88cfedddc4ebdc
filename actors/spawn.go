package actors

import (
	"errors"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/supervision"
)

// ErrClosed is the answer to a spawn when the system, or the would-be parent,
// is ending.
var ErrClosed = errors.New("actors: closed")

// Context is an actor's own view of itself.
type Context struct {
	// immutable after the spawn
	system *System
	kind   *Kind
	ref    Ref

	// owned by the actor's calls
	proto    actor.Context
	actor    Actor
	children map[*actor.PID]*Ref // made at the first child

	// owned by the supervisor's calls
	failures *supervision.Backoff // made at the first failure

	ending bool // owned by the actor's calls: no more children
}

// Self is the actor's own Ref.
func (c *Context) Self() *Ref { return &c.ref }

// Spawn starts a as a child. The name is for logs and may repeat. Only on the
// actor's own calls, because protoactor keeps children without a lock.
func (c *Context) Spawn(k *Kind, name string, a Actor, m *mailbox.Mailbox) (*Ref, error) {
	if c.ending {
		return nil, ErrClosed
	}
	child, err := c.system.spawn(c.proto, k, name, a, m)
	if err != nil {
		return nil, err
	}
	if c.children == nil {
		c.children = make(map[*actor.PID]*Ref)
	}
	c.children[child.PID] = child
	return child, nil
}

// spawner is protoactor's, of a root or of an actor.
type spawner interface {
	SpawnNamed(props *actor.Props, name string) (*actor.PID, error)
}

// spawn makes the actor. All actors share one Props, which would otherwise cost
// 224 bytes for each; who is being made is handed to its hooks under the lock.
func (s *System) spawn(by spawner, k *Kind, name string, a Actor, m *mailbox.Mailbox) (*Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.incarnation++
	c := &Context{system: s, kind: k, actor: a, ref: Ref{Mailbox: m, Incarnation: s.incarnation}}
	s.spawning = c
	s.live++
	_, err := by.SpawnNamed(s.props, name+"~"+strconv.FormatUint(s.incarnation, 36))
	s.spawning = nil
	if err != nil {
		s.ended()
		return nil, err
	}
	return &c.ref, nil
}

// newProps are the hooks that protoactor calls, in this order, at a spawn: the
// producer, the mailbox producer, the init hook. A restart calls the producer
// again, without the lock; that guard finds its actor when it is started.
func newProps(s *System) *actor.Props {
	return actor.PropsFromProducer(
		func() actor.Actor { return &guard{c: s.unbound} },
		actor.WithMailbox(func() actor.Mailbox { return s.spawning.ref.Mailbox }),
		actor.WithOnInit(func(ctx actor.Context) {
			c := s.spawning
			c.proto, c.ref.PID = ctx, ctx.Self()
			ctx.Actor().(*guard).c = c
		}),
		actor.WithSupervisor(s.strategy),
	)
}
