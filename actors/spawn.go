package actors

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
)

// ErrClosed is the answer to a spawn when the system, or the would-be parent,
// is ending, and to one by an actor that is no Parent.
var ErrClosed = errors.New("actors: closed")

// Context is an actor's own view of itself. There is one for each session, so its
// size counts.
type Context struct {
	// immutable after the spawn
	system *System
	kind   *Kind
	ref    Ref

	// owned by the actor's calls
	actor  Actor
	family *family // nil: it is no Parent, or has not started

	at int32 // place in its parent's family, whose it is
}

// Self is the actor's own Ref.
func (c *Context) Self() *Ref { return &c.ref }

// Spawn starts a as a child. Only on the actor's own calls, because children are kept
// without a lock.
func (c *Context) Spawn(k *Kind, a Actor, m *mailbox.Mailbox) (*Ref, error) {
	if c.family == nil || c.family.ending {
		return nil, ErrClosed
	}
	child := &Context{system: c.system, kind: k, actor: a, ref: Ref{Mailbox: m}}
	c.family.add(child)
	if err := c.system.spawn(c.family.proto, child); err != nil {
		c.family.remove(child)
		return nil, err
	}
	return &child.ref, nil
}

// close refuses children from here on: protoactor stops them all once, and a later one
// would never end.
func (c *Context) close() {
	if c.family != nil {
		c.family.ending = true
	}
}

// spawn makes the actor. All actors share one Props, which would otherwise cost
// 224 bytes for each; who is being made is handed to its hooks under the lock.
func (s *System) spawn(by actor.SpawnerContext, c *Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.spawning = c
	_, err := actor.DefaultSpawner(s.proto, c.kind.Name, s.props, by)
	s.spawning = nil
	if err != nil {
		return err
	}
	s.live++
	return nil
}

// newProps are the hooks that protoactor calls, in this order, at a spawn: the
// producer, the mailbox producer, the init hook. A restart calls the producer
// again, without the lock; that guard finds its actor when it is started.
func newProps(s *System) *actor.Props {
	return actor.PropsFromProducer(
		func() actor.Actor { return &guard{c: s.unbound} },
		actor.WithMailbox(func() actor.Mailbox { return s.spawning.ref.Mailbox }),
		actor.WithOnInit(func(ctx actor.Context) {
			c, pid := s.spawning, ctx.Self()
			ctx.Actor().(*guard).c = c
			s.proto.ProcessRegistry.LocalPIDs.GetBucket(pid.Id).Remove(pid.Id)
			c.ref.PID = pid
			pid.Address, pid.RequestId = actorAddress, s.table.add(c)
		}),
		actor.WithSupervisor(s.strategy),
	)
}
