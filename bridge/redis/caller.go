package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/actors/supervision"
)

// call is one command, made so that it may be repeated.
type call struct {
	script *script // nil: a plain command, in args
	// company, if it is set, tells with which others this can be one call of the script,
	// which does each by its keys and args, and answers with a list.
	company *company
	keys    []string
	args    []any
	// done gets the server's reply. It only posts.
	done func(reply any, err error)
}

const (
	callers   = 2 // pipelines under way
	waitTick  = 50 * time.Millisecond
	firstWait = 50 * time.Millisecond // between attempts to reach the server
	longWait  = time.Second
)

func backoff() supervision.Backoff {
	return supervision.Backoff{Initial: firstWait, Cap: longWait, Jitter: 0.5, Window: time.Hour}
}

// caller brings what is in line to the server: each of its goroutines takes what
// waits, as one pipeline, and comes back with the replies. While it is away more
// gathers, so that load makes pipelines longer and nothing waits for others when
// there is little.
type caller struct {
	// immutable
	client goredis.UniversalClient
	wait   time.Duration        // of ops that are repeated; 0: none are
	build  func(b *batch) *call // makes a batch of publications a call, or answers it
	// lead are arguments before those of calls in company; after them comes whether one
	// of the calls may have been done before.
	lead func(c *company) []any
	// ailing is told of every pipeline's worst, outside mu: n says in which order they
	// came back, which need not be that of the calls.
	ailing func(f fault, n uint64)
	ctx    context.Context

	running sync.WaitGroup

	mu    sync.Mutex
	ready sync.Cond // something to take, or closed
	// guarded by mu
	line   line
	later  []*strand // to be enlisted at the next tick
	closed bool
	sick   bool // nothing got through last time
	trying bool // one pipeline is finding out whether something does
	idle   int  // callers that wait for something to do
	until  time.Time
	retry  supervision.Backoff
	back   uint64 // pipelines that came back
}

func newCaller(ctx context.Context, client goredis.UniversalClient, most OutageQueue) *caller {
	c := &caller{client: client, wait: most.Wait, ctx: ctx, line: newLine(most), retry: backoff()}
	c.ready.L = &c.mu
	return c
}

// start runs the goroutines, which end at close.
func (c *caller) start() {
	for range callers {
		c.running.Go(c.run)
	}
	c.running.Go(c.watch)
}

// put takes o in; if it cannot, o fails at once.
func (c *caller) put(tenant, strand string, o *op) {
	o.since = time.Now()
	if o.repeat && c.wait == 0 {
		o.repeat = false
	}
	c.mu.Lock()
	var err error
	switch {
	case c.closed:
		err = errClosed
	case c.sick && !o.repeat:
		err = errLost
	default:
		err = c.line.put(tenant, strand, o)
	}
	wake := c.line.ready.Len() > 0
	c.mu.Unlock()
	if err != nil {
		o.refuse(err)
		return
	}
	if wake { // else its strand has a batch under way
		c.ready.Signal()
	}
}

// waiting is how much is in line or under way.
func (c *caller) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line.items
}

func (c *caller) run() {
	for {
		taken, trial := c.take()
		if taken == nil {
			return
		}
		c.send(taken, trial)
	}
}

// take waits for something to do. nil: closed.
func (c *caller) take() (taken []*batch, trial bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed {
		switch {
		case !c.sick:
			taken = c.line.take(1<<20, c.calls())
		case !c.trying && !time.Now().Before(c.until):
			taken, trial = c.line.take(recoveryEvents, pipelineCalls), true
			c.trying = len(taken) > 0
		}
		if len(taken) > 0 {
			if c.line.queued > 0 {
				c.ready.Signal()
			}
			return taken, trial
		}
		c.idle++
		c.ready.Wait()
		c.idle--
	}
	return nil, false
}

// calls is how many the next pipeline carries at most. What many strands wait with is
// shared by two where another caller has nothing to do: so the server has work while the
// answers to the first are told. Under mu.
func (c *caller) calls() int {
	if n := c.line.queued; c.idle > 0 && n >= sharedCalls {
		return (n + 1) / 2
	}
	return pipelineCalls
}

// send makes one pipeline of what was taken and hands the replies out.
func (c *caller) send(taken []*batch, trial bool) {
	sent := taken[:0:0]
	var answered []*batch // by build: nothing of them is for the server
	for _, b := range taken {
		if b.call == nil {
			b.call = c.build(b)
		}
		if b.call == nil {
			answered = append(answered, b)
		} else {
			sent = append(sent, b)
		}
	}
	outcomes := make([]outcome, len(sent))
	all := make([]int, len(sent))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int { return sent[a].call.company.compare(sent[b].call.company) })
	if len(sent) > 0 {
		unknown, together := c.pipeline(sent, all, outcomes, byName)
		if len(unknown) > 0 {
			// The server was restarted, or told to forget. One call of a strand is
			// under way at a time, so that sending these later changes no order.
			_, more := c.pipeline(sent, unknown, outcomes, byText)
			together = append(together, more...)
		}
		if len(together) > 0 {
			c.pipeline(sent, together, outcomes, alone) // so that one of them spoils no other
		}
	}
	c.finish(sent, outcomes, answered, trial)
}

// manner is how calls are sent.
type manner uint8

const (
	byName manner = iota // scripts by their names, several calls as one where that can be
	byText               // scripts as they are
	alone                // likewise, each call by itself, which may have been done with others
)

// pipeline sends some of the batches. It returns those whose script the server does not
// know, and those that were refused together with others.
func (c *caller) pipeline(sent []*batch, which []int, outcomes []outcome, how manner) (unknown, together []int) {
	pipe := c.client.Pipeline()
	var cmds []*goredis.Cmd
	var groups [][]int
	for len(which) > 0 {
		n := 1
		if how != alone {
			n = group(sent, which)
		}
		cmds = append(cmds, c.command(pipe, sent, which[:n], how))
		groups = append(groups, which[:n])
		which = which[n:]
	}
	_, unsent := pipe.Exec(c.ctx)
	for g, members := range groups {
		reply, err := cmds[g].Result()
		if reply == nil && err == nil {
			// The driver leaves one error to who looks here: a Sentinel's answer, for
			// which there is no connection.
			err = unsent
		}
		f := faultOf(err)
		list, _ := reply.([]any)
		for n, i := range members {
			switch outcomes[i] = (outcome{reply, err, f}); {
			case f == noScript:
				unknown = append(unknown, i)
			case f == refusedFault && len(members) > 1:
				together = append(together, i)
			case f == noFault && sent[i].call.company != nil && n < len(list):
				outcomes[i].reply = list[n]
			}
		}
	}
	return unknown, together
}

// outcome is what became of one batch.
type outcome struct {
	reply any
	err   error
	fault fault
}

// finish takes the replies in, and calls back.
func (c *caller) finish(sent []*batch, outcomes []outcome, answered []*batch, trial bool) {
	worst, through := noFault, len(sent) == 0
	c.mu.Lock()
	for _, b := range answered {
		c.line.done(b)
	}
	for i, b := range sent {
		o := &outcomes[i]
		if o.fault.ails() {
			worst = max(worst, o.fault)
		} else {
			through = true
			if o.fault == elsewhere && worst == noFault {
				worst = elsewhere
			}
		}
		if o.fault.repeat() && b.repeats() && !c.closed {
			c.line.back(b)
			c.later = append(c.later, b.strand)
			sent[i] = nil
		} else {
			c.line.done(b)
		}
	}
	if trial {
		c.trying = false
	}
	c.back++
	n := c.back
	if !through {
		c.sick = true
		delay, _ := c.retry.Next(time.Now())
		c.until = time.Now().Add(delay)
	} else if len(sent) > 0 && c.sick {
		c.sick = false
		c.retry.Reset()
	}
	c.mu.Unlock()
	c.ready.Broadcast()
	if len(sent) > 0 {
		c.ailing(worst, n)
	}
	for i, b := range sent {
		if b == nil {
			continue
		}
		switch o := &outcomes[i]; {
		case o.fault == noFault:
			b.call.done(o.reply, nil)
		case o.fault == outOfMemory:
			b.fail(errMemory)
		case o.fault.repeat():
			b.fail(errLost)
		default:
			b.call.done(nil, o.err)
		}
	}
}

func (b *batch) repeats() bool {
	for _, o := range b.ops {
		if !o.repeat {
			return false
		}
	}
	return true
}

func (b *batch) fail(err error) {
	for _, o := range b.ops {
		o.refuse(err)
	}
}

// watch ends what has waited too long, and lets repeats go.
func (c *caller) watch() {
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case now := <-tick.C:
			c.tick(now)
		}
	}
}

func (c *caller) tick(now time.Time) {
	c.mu.Lock()
	for _, s := range c.later {
		c.line.enlist(s)
	}
	c.later = c.later[:0]
	expired := c.line.expire(now.Add(-max(c.wait, time.Second)))
	if c.sick && !c.trying && c.line.items == 0 && !now.Before(c.until) {
		// Nobody asks for anything: so that the server's return is noticed all the same.
		_ = c.line.put("", "ping", &op{since: now, call: &call{args: []any{"PING"}, done: func(any, error) {}}, fail: func(error) {}})
	}
	c.mu.Unlock()
	c.ready.Broadcast()
	for _, o := range expired {
		o.refuse(errLost)
	}
}

// close ends it, once the client is closed, and fails what is left.
func (c *caller) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.ready.Broadcast()
	c.running.Wait()
	c.mu.Lock()
	left := c.line.expire(time.Now().Add(time.Hour))
	c.mu.Unlock()
	for _, o := range left {
		o.refuse(errClosed)
	}
}
