package room

import (
	"context"
	"slices"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// Commander answers commands: requests that clients make of the room, by name.
// Whether the client has to be a member is the handler's to say.
//
// What Command returns is the result, as a value that encoding/json can encode, a
// codec.Data as it is, nil as null. What the client is told of an error: a
// *codec.Error as it is (see Refuse), with the handler's own Data if it has any;
// of any other, internal without its text, which is logged; so is a result that
// does not fit a frame. After c.Later the return values do not count.
type Commander interface {
	Command(ctx *Context, c *Command) (any, error)
}

// Command is a client's request to the room. Its fields are the handler's to keep.
type Command struct {
	Name string
	Data codec.Data // absent when the client sent none
	// From and Session say whose it is.
	From, Session string
	// Member is the session as a member of the room; nil: it has not joined.
	Member *Member

	call  *message.Command
	ctx   *Context
	reply *Reply // of Later
}

// Later leaves the answer for later: it is given by the Reply, and what Command
// returns does not count. It is valid during Command only, as a Context is.
func (c *Command) Later() *Reply {
	r, leave := c.ctx.enter()
	defer leave()
	if c.reply == nil {
		c.reply = &Reply{call: c.call, cfg: &r.cfg}
	}
	return c.reply
}

// Context ends when nobody waits for the answer any more: it has been given, its
// deadline has passed, the client's connection or the room has ended, the handler
// has failed. A command with a dedup key, whose result somebody may still come
// for, is not ended by its client, and by its deadline only a minute later. The
// method is valid during Command only; the context is for work that goes on beside
// the room.
func (c *Command) Context() context.Context {
	r, leave := c.ctx.enter()
	defer leave()
	return c.call.Context(r.handler.alive())
}

// Reply is the answer of a command that is given later, from any goroutine. It is
// open until it is given, or until the command's deadline, the room or the handler
// that took the command has ended, by which it is answered instead.
type Reply struct {
	call *message.Command
	cfg  *Config
}

// Answer gives the answer, as Command's return values do. False: it was given
// before, or nobody waits for it any more.
func (r *Reply) Answer(v any, err error) bool {
	data, refusal, hidden := r.call.Result(v, err)
	return r.cfg.answer(nil, r.call, data, refusal, hidden)
}

func (cfg *Config) answer(t *turn, c *message.Command, data codec.Data, refusal *codec.Error, hidden error) bool {
	counts := c.Answer(t, data, refusal)
	if hidden != nil && counts {
		cfg.Logger.Warn("command failed", "tenant", cfg.Topic.Tenant, "room_kind", cfg.Policy.Name, "err", hidden)
	}
	return counts
}

var (
	errNoCommander   = codec.NewError(codec.CodeNotFound, "nobody handles this command")
	errManyCommands  = codec.Retry(codec.CodeBackpressured, codec.ScopeRoom, 100*time.Millisecond, "too many commands under way")
	errRoomEnded     = message.Unavailable(codec.ScopeRoom)
	errInstanceEnded = codec.Retry(codec.CodeUnavailable, codec.ScopeRoom, 100*time.Millisecond, "the room's handler has started anew")
)

// attempt is a command with a dedup key on its way through the broker, which says
// whether it is to be done. Its signal is the slot of the answer.
type attempt struct {
	room   *Room
	signal mailbox.Signal
	call   *message.Command
	answer bridge.Attempted // written by the broker's goroutine before signal is raised
}

// handleCommand begins a command.
func (r *Room) handleCommand(c *message.Command) {
	r.used = r.turn.Now()
	switch {
	case c.Over():
		c.Data = codec.Data{}
	case r.unknown != nil:
		c.Answer(r.turn, codec.Data{}, r.unknown)
	case r.handler == nil || r.handler.commander == nil:
		c.Answer(r.turn, codec.Data{}, errNoCommander)
	case r.handler.crowded(r):
		c.Answer(r.turn, codec.Data{}, errManyCommands)
	case c.DedupKey != "":
		a := &attempt{room: r, call: c}
		a.signal.InitWork(a)
		r.handler.attempting++
		c.Attempt(r.cfg.Broker, r.turn.Now(), a.done)
	default:
		r.command(c)
	}
}

// done is the broker's, on any goroutine.
func (a *attempt) done(answer bridge.Attempted) {
	a.answer = answer
	if answer.Token != 0 {
		a.call.First(a.room.cfg.Broker, answer.Token)
	}
	if !a.room.mb.Raise(&a.signal, 1) {
		a.drop()
	}
}

// decided takes the broker's word on a command: it was done, or it waits for its
// turn to be.
func (r *Room) decided(a *attempt) {
	if a.answer.Token == 0 || r.phase == ended {
		r.handler.attempting--
		a.drop()
		return
	}
	r.handler.list = append(r.handler.list, a)
}

// drop answers a command that is not to be done here.
func (a *attempt) drop() {
	a.call.Data = codec.Data{}
	if a.answer.Token == 0 {
		a.call.Repeat(nil, a.answer)
		return
	}
	a.call.Answer(nil, codec.Data{}, errRoomEnded)
}

// run does a command that waited for its turn.
func (a *attempt) run(r *Room) {
	r.handler.attempting--
	switch {
	case a.call.Over():
		a.drop()
	case r.handler.commander == nil: // the handler is another one
		a.call.Answer(r.turn, codec.Data{}, errNoCommander)
	default:
		r.command(a.call)
	}
}

// command puts a command to the handler.
func (r *Room) command(call *message.Command) {
	c := &Command{Name: call.Name, Data: call.Data, From: call.Subject, Session: call.Session, call: call}
	call.Data = codec.Data{}
	if m := r.mine(call.Member); m != nil && m.state.in() {
		info := m.info
		c.Member = &info
	}
	r.hand = call
	r.handler.command(r, c)
	r.hand = nil
	if c.reply != nil && !call.Settled() {
		r.handler.replies.add(call)
	}
}

// command asks the handler, and answers what it does not leave for later.
func (in *instance) command(r *Room, c *Command) {
	h := in.commander
	var data codec.Data
	var refusal *codec.Error
	var hidden error
	if !in.serve(r, "command", func() {
		in.with(r, false, func(ctx *Context) {
			c.ctx = ctx
			v, err := h.Command(ctx, c)
			if c.reply == nil {
				data, refusal, hidden = c.call.Result(v, err) // may run the program's own code
			}
		})
	}) {
		c.call.Answer(r.turn, codec.Data{}, errPanicked)
		return
	}
	if c.reply == nil {
		r.cfg.answer(r.turn, c.call, data, refusal, hidden)
	}
}

// replies are the commands whose answer the handler has left for later. Others
// settle them at any time; those are taken out now and then.
type replies struct {
	list []*message.Command
	next int // how long the list grows before it is looked through
}

func (rs *replies) add(c *message.Command) { rs.list = append(rs.list, c) }

// count is how many are open: exactly when limit or more are in the list, else at
// most.
func (rs *replies) count(limit int) int {
	if len(rs.list) >= min(limit, rs.next) {
		rs.list = slices.DeleteFunc(rs.list, (*message.Command).Settled)
		rs.next = 2*len(rs.list) + 16
	}
	return len(rs.list)
}
