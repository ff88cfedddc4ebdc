package engine

import (
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
)

// puppet is a room handler made of functions. Those that are nil do nothing.
type puppet struct {
	publish  func(*room.Context, *room.Event) error
	join     func(*room.Context, *room.Member) error
	leave    func(*room.Context, *room.Member)
	apply    func(*room.Context, *room.Applied)
	snapshot func() (any, error)
	restore  func(codec.Data, codec.Position) error
}

func (p *puppet) Publish(c *room.Context, e *room.Event) error {
	if p.publish == nil {
		return nil
	}
	return p.publish(c, e)
}

func (p *puppet) Join(c *room.Context, m *room.Member) error {
	if p.join == nil {
		return nil
	}
	return p.join(c, m)
}

func (p *puppet) Leave(c *room.Context, m *room.Member) {
	if p.leave != nil {
		p.leave(c, m)
	}
}

func (p *puppet) Apply(c *room.Context, e *room.Applied) {
	if p.apply != nil {
		p.apply(c, e)
	}
}

func (p *puppet) Snapshot() (any, error) {
	if p.snapshot == nil {
		return 0, nil
	}
	return p.snapshot()
}

func (p *puppet) Restore(state codec.Data, at codec.Position) error {
	if p.restore == nil {
		return nil
	}
	return p.restore(state, at)
}

// kind is openKind under another name, with a handler.
func kind(name string, handler func() room.Handler) room.Kind {
	k := openKind
	k.Name, k.New = name, handler
	return k
}

// one makes every room of a kind have the same puppet.
func one(p *puppet) func() room.Handler { return func() room.Handler { return p } }
