package engine

import (
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// Command is a client's request to its tenant rather than to a room.
type Command struct {
	Tenant string
	Name   string
	Data   codec.Data // absent when the client sent none
	// From and Session say whose it is.
	From, Session string
}

var errManyCommands = codec.Retry(codec.CodeBackpressured, codec.ScopeTenant, 100*time.Millisecond, "too many commands at once")

// commands hands commands of a tenant's clients to Config.Commands, on the
// blocking pool under the tenant's share. Nil: there is no such function.
func (e *Engine) commands(flow *scheduler.Tenant) func(*message.Command) *codec.Error {
	if e.cfg.Commands == nil {
		return nil
	}
	begin := func(c *message.Command) bool {
		return e.pool.Block(flow, func() { e.command(c) })
	}
	return func(c *message.Command) *codec.Error {
		if c.DedupKey == "" {
			if !begin(c) {
				return errManyCommands
			}
			return nil
		}
		c.Attempt(e.broker, e.pool.Now(), func(a bridge.Attempted) {
			if a.Token == 0 {
				c.Repeat(nil, a)
				return
			}
			c.First(e.broker, a.Token)
			if !begin(c) {
				c.Answer(nil, codec.Data{}, errManyCommands)
			}
		})
		return nil
	}
}

// command runs one, where it may block.
func (e *Engine) command(c *message.Command) {
	if c.Over() {
		c.Answer(nil, codec.Data{}, message.Unavailable(codec.ScopeTenant))
		return
	}
	call := Command{Tenant: c.Topic.Tenant, Name: c.Name, Data: c.Data, From: c.Subject, Session: c.Session}
	c.Data = codec.Data{}
	var data codec.Data
	var refusal *codec.Error
	_, hidden := protect(func() (_ struct{}, err error) {
		var v any
		v, err = e.cfg.Commands(c.Context(e.working), call)
		data, refusal, err = c.Result(v, err)
		return struct{}{}, err
	})
	if hidden == errPanicked {
		refusal = message.ErrCommand
	}
	// An error that nobody waits for is mostly that of a context which ended for it.
	if counts := c.Answer(nil, data, refusal); hidden != nil && (counts || hidden == errPanicked) {
		e.cfg.Logger.Error("command failed", "tenant", call.Tenant, "err", hidden)
	}
}
