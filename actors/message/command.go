package message

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// attemptGrace is how much longer than its deadline a command with a dedup key
// stays the one that is done. Whoever repeats it later has it done again, even if
// it is not over yet.
const attemptGrace = time.Minute

const (
	// commandTime is how long a command without a deadline of its own may take.
	commandTime = 30 * time.Second
	// AnswerRest is what an answer holds beside the result of a command, in bytes.
	AnswerRest = 4 << 10
)

// CommandTime is how long a client's command may take.
func CommandTime(r *codec.Command) time.Duration {
	if !r.HasDeadline {
		return commandTime
	}
	return min(r.Deadline, 1<<62) // so that the sum with the clock stays positive
}

var (
	errNoFrame  = codec.NewError(codec.CodeInternal, "the result does not fit a frame")
	errTooLarge = errors.New("message: the command's result does not fit a frame")
	errUntold   = errors.New("message: the command's refusal cannot be told")
)

// ErrCommand is what a client is told of an error that was not made for clients.
var ErrCommand = codec.NewError(codec.CodeInternal, "the command failed")

// Caller is told what became of its command: once, or never if it has gone. It
// must not block.
type Caller interface {
	Answered(t *scheduler.Turn, c *Command, ok *codec.CommandResult, err *codec.Error)
}

// Command is a request to a room's handler, or to the tenant's, and the place of
// its answer, which is given once, from any goroutine, by whoever comes first: the
// handler, the deadline, the end of the caller or that of the room.
type Command struct {
	// immutable once posted
	By        Caller
	ID        uint64
	Topic     codec.Topic // without a room: the tenant's own
	Name      string
	Subject   string
	Session   string
	Member    *Membership   // of the session in the room; nil: none
	DedupKey  string        // empty: none, or the kind remembers none
	Window    time.Duration // how long a result is remembered
	Deadline  int64         // by the pool's clock
	Codec     codec.Codec   // of the caller
	MaxResult int           // bytes that a result may have in it

	// Data is owned by whoever has the message, and gone once it is handed on.
	Data codec.Data

	// set by Attempt and First, before the command is handed on
	broker bridge.Broker
	token  uint64
	lapses time.Time // when nobody is told of its result any more

	mu sync.Mutex
	// guarded by mu
	over   bool // the caller has been answered, or is gone
	done   bool // the command came to something
	ctx    context.Context
	cancel context.CancelFunc
}

// Item is the message as it goes into a room's mailbox.
func (c *Command) Item() mailbox.Item {
	size := 160 + len(c.Topic.Room) + len(c.Name) + len(c.DedupKey) + c.Data.Len()
	return mailbox.Item{Msg: c, Size: size, Expires: c.Deadline}
}

// Attempt asks the broker whether the command, which has a dedup key, is to be
// done. now is the pool's clock.
func (c *Command) Attempt(b bridge.Broker, now int64, done func(bridge.Attempted)) {
	hold := min(time.Duration(c.Deadline-now), 1<<62) + attemptGrace
	c.lapses = time.Now().Add(hold)
	b.Attempt(c.Topic, bridge.Attempt{Subject: c.Subject, Key: c.DedupKey, Hold: hold}, done)
}

// First says that the command is the one with its key that is done: what it comes
// to is the broker's to tell the others.
func (c *Command) First(b bridge.Broker, token uint64) { c.broker, c.token = b, token }

// Repeat answers a command by what another one with its key came to.
func (c *Command) Repeat(t *scheduler.Turn, a bridge.Attempted) {
	if a.Err == nil && !c.fits(a.Result) {
		a.Err = errNoFrame // the other's codec said it shorter
	}
	c.answer(t, a.Result, true, a.Err)
}

// Answer says what the command came to. False: that was said before, or nobody
// waits for it.
func (c *Command) Answer(t *scheduler.Turn, result codec.Data, err *codec.Error) bool {
	return c.answer(t, result, false, err)
}

func (c *Command) answer(t *scheduler.Turn, result codec.Data, repeat bool, err *codec.Error) bool {
	c.mu.Lock()
	if c.settled() {
		c.done = true
		c.mu.Unlock()
		return false
	}
	told := c.over
	c.over, c.done = true, true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if c.token != 0 {
		c.broker.Settle(c.Topic, bridge.Settlement{
			Subject: c.Subject, Key: c.DedupKey, Token: c.token, Window: c.Window, Result: result, Err: err,
		})
	}
	switch {
	case told:
	case err != nil:
		c.By.Answered(t, c, nil, err)
	default:
		c.By.Answered(t, c, &codec.CommandResult{Data: result, Duplicate: repeat}, nil)
	}
	return true
}

// fits: from one codec to the other no value grows to more than six times itself.
func (c *Command) fits(d codec.Data) bool {
	return d.Len() <= c.MaxResult/6 || len(d.In(c.Codec)) <= c.MaxResult
}

// Expire answers a command whose deadline has passed. What its work comes to still
// counts for repeats; without a dedup key nobody waits for it any more.
func (c *Command) Expire(t *scheduler.Turn) {
	if c.leave() {
		c.By.Answered(t, c, nil, ErrDeadline)
	}
}

// Gone says that nobody is there to be answered.
func (c *Command) Gone() { c.leave() }

// leave takes the caller out; false: it has been answered.
func (c *Command) leave() bool {
	c.mu.Lock()
	first := !c.over
	c.over = true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil && c.DedupKey == "" {
		cancel()
	}
	return first
}

// Over: the caller has been answered, or is gone.
func (c *Command) Over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// Settled: nothing that the command may come to interests anybody.
func (c *Command) Settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settled()
}

func (c *Command) settled() bool {
	return c.done || c.over && (c.DedupKey == "" || time.Now().After(c.lapses))
}

// Context ends with parent, and when nobody waits for the command any more.
func (c *Command) Context(parent context.Context) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		if c.DedupKey == "" {
			c.ctx, c.cancel = context.WithCancel(parent)
		} else {
			c.ctx, c.cancel = context.WithDeadline(parent, c.lapses)
		}
		if c.settled() {
			c.cancel()
		}
	}
	return c.ctx
}

// Removed answers a command that left a queue unhandled.
func (c *Command) Removed(o backpressure.Outcome) {
	c.Data = codec.Data{}
	if o == backpressure.Expired {
		c.Expire(nil)
		return
	}
	c.Answer(nil, codec.Data{}, Refusal(o, codec.ScopeRoom))
}

// Result is what a handler has returned as the caller is told it. A *codec.Error is
// told as it is; any other fault, also of the result itself, is for the log alone.
func (c *Command) Result(v any, err error) (result codec.Data, refusal *codec.Error, hidden error) {
	switch {
	case errors.As(err, &refusal):
		if !Tellable(refusal, c.MaxResult) {
			return codec.Data{}, ErrCommand, errUntold
		}
		return codec.Data{}, refusal, nil
	case err != nil:
		return codec.Data{}, ErrCommand, err
	case v == nil:
		return codec.Data{}, nil, nil
	}
	result, err = codec.NewData(v)
	switch {
	case err != nil:
		return codec.Data{}, ErrCommand, err
	case !c.fits(result):
		return codec.Data{}, errNoFrame, errTooLarge
	}
	return result, nil, nil
}

// Tellable reports whether a refusal that a handler made can be told to a client, in
// either codec, in a frame that has max bytes for it. Nil refuses nothing.
func Tellable(refusal *codec.Error, max int) bool {
	return refusal == nil || refusal.Valid() && len(refusal.Message)+refusal.Data.Len() <= max/6
}

// Answered sends the reply.
func (c Client) Answered(t *scheduler.Turn, m *Command, ok *codec.CommandResult, err *codec.Error) {
	reply := &codec.Reply{ID: m.ID, Err: err}
	if err == nil {
		reply.OK = ok
	}
	c.Out.Reply(t, backpressure.Control, codec.NewFrame(reply), mailbox.Seat{}, false)
}
