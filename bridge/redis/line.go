package redis

import (
	"time"

	"github.com/yaza-dev/pulse/backpressure"
)

// How much one call, and one pipeline of calls, carries.
const (
	callEvents     = 64
	callBytes      = 64 << 10
	pipelineCalls  = 256
	sharedCalls    = 8 // from so many on two pipelines share them
	pipelineBytes  = 1 << 20
	recoveryEvents = 256 // until the server has answered again
	turnEvents     = 64  // of one tenant, until others have their turn
)

// op is one thing to do on the server.
type op struct {
	since time.Time // when it was put in line
	size  int64     // bytes that are charged for it
	// repeat: it is made again when its outcome is unknown, and waits while the
	// server is away. Others fail at once.
	repeat bool

	call    *call       // what to do
	publish *publish    // or this, which may go together with others of its strand
	fail    func(error) // of call
}

// refuse answers it: it is not done.
func (o *op) refuse(err error) {
	if o.publish != nil {
		o.publish.refuse(err)
	} else {
		o.fail(err)
	}
}

// strand is what must take effect in the order in which it was asked for: the
// events and reads of a topic, or the attempts at a command. One batch of it is
// under way at a time.
type strand struct {
	name   string
	owner  *share
	ops    backpressure.Ring[*op]
	again  *batch // was under way, and is to be repeated before anything else
	busy   bool
	queued bool // in its share's ready
}

// share is what one tenant has in line.
type share struct {
	tenant string
	items  int
	bytes  int64
	ready  backpressure.Ring[*strand]
	queued bool // in the line's ready
}

// batch is what is sent of a strand as one call.
type batch struct {
	strand *strand
	ops    []*op
	events int
	bytes  int64
	call   *call // made once, so that a repeat is the same
	tried  bool  // it may have been done
}

// line is what waits for the server: strands in order, tenants in turns. It is
// pure; whoever uses it holds a lock.
type line struct {
	most  OutageQueue // immutable
	items int         // waiting or under way
	bytes int64

	strands map[string]*strand // with something waiting or under way
	shares  map[string]*share  // likewise
	ready   backpressure.Ring[*share]
	queued  int // strands that have something to send
}

func newLine(most OutageQueue) line {
	return line{most: most, strands: make(map[string]*strand), shares: make(map[string]*share)}
}

// put takes o in, or says why not.
func (l *line) put(tenant, name string, o *op) error {
	sh := l.shares[tenant]
	switch {
	case l.items >= l.most.Items || l.bytes+o.size > l.most.Bytes && l.items > 0:
		return errWaiting
	case sh != nil && sh.items > 0 && (sh.items >= (l.most.Items+3)/4 || sh.bytes+o.size > l.most.Bytes/4):
		return errTenant
	}
	if sh == nil {
		sh = &share{tenant: tenant}
		l.shares[tenant] = sh
	}
	s := l.strands[name]
	if s == nil {
		s = &strand{name: name, owner: sh}
		l.strands[name] = s
	}
	s.ops.Push(o)
	l.items++
	l.bytes += o.size
	sh.items++
	sh.bytes += o.size
	l.enlist(s)
	return nil
}

// enlist puts a strand that has something to send where take finds it.
func (l *line) enlist(s *strand) {
	if s.busy || s.queued || s.again == nil && s.ops.Len() == 0 {
		return
	}
	s.queued = true
	l.queued++
	s.owner.ready.Push(s)
	if !s.owner.queued {
		s.owner.queued = true
		l.ready.Push(s.owner)
	}
}

// take is what one pipeline carries now, of as many tenants as are waiting: so many
// events and calls at most.
func (l *line) take(events, calls int) (taken []*batch) {
	var bytes int64
	for l.ready.Len() > 0 && len(taken) < calls && bytes < pipelineBytes && events > 0 {
		sh, _ := l.ready.Pop()
		sh.queued = false
		turn := turnEvents
		for turn > 0 && sh.ready.Len() > 0 && len(taken) < calls && bytes < pipelineBytes && events > 0 {
			s, _ := sh.ready.Pop()
			s.queued = false
			l.queued--
			b := s.next()
			if b == nil { // what was waiting has expired
				l.settle(s)
				continue
			}
			s.busy = true
			taken = append(taken, b)
			turn -= b.events
			events -= b.events
			bytes += b.bytes
		}
		if sh.ready.Len() > 0 {
			sh.queued = true
			l.ready.Push(sh)
		} else if sh.items == 0 {
			delete(l.shares, sh.tenant)
		}
	}
	return taken
}

// next forms the strand's next batch.
func (s *strand) next() *batch {
	if b := s.again; b != nil {
		s.again = nil
		return b
	}
	first, ok := s.ops.Pop()
	if !ok {
		return nil
	}
	b := &batch{strand: s, call: first.call}
	b.add(first)
	for first.publish != nil && s.ops.Len() > 0 {
		o := *s.ops.Front()
		if o.publish == nil || !o.publish.joins(first.publish) || b.events+len(o.publish.batch) > callEvents || b.bytes+o.size > callBytes {
			break
		}
		s.ops.Drop()
		b.add(o)
	}
	return b
}

func (b *batch) add(o *op) {
	b.ops = append(b.ops, o)
	b.bytes += o.size
	b.events++
	if o.publish != nil {
		b.events += len(o.publish.batch) - 1
	}
}

// done ends a batch that was under way.
func (l *line) done(b *batch) {
	b.strand.busy = false
	for _, o := range b.ops {
		l.release(b.strand, o)
	}
	l.settle(b.strand)
}

// back puts a batch before everything else of its strand, to be sent again once
// the strand is enlisted.
func (l *line) back(b *batch) { b.tried, b.strand.busy, b.strand.again = true, false, b }

func (l *line) release(s *strand, o *op) {
	l.items--
	l.bytes -= o.size
	s.owner.items--
	s.owner.bytes -= o.size
}

// settle enlists a strand, or forgets it when it is empty.
func (l *line) settle(s *strand) {
	if s.busy || s.again != nil || s.ops.Len() > 0 {
		l.enlist(s)
		return
	}
	if !s.queued {
		delete(l.strands, s.name)
	}
	if s.owner.items == 0 && !s.owner.queued {
		delete(l.shares, s.owner.tenant)
	}
}

// expire takes out what has waited since before the given instant.
func (l *line) expire(before time.Time) (expired []*op) {
	for _, s := range l.strands {
		if s.busy {
			continue
		}
		if s.again != nil && s.again.ops[0].since.Before(before) {
			expired = append(expired, s.again.ops...)
			for _, o := range s.again.ops {
				l.release(s, o)
			}
			s.again = nil
		}
		for s.again == nil && s.ops.Len() > 0 && (*s.ops.Front()).since.Before(before) {
			o, _ := s.ops.Pop()
			l.release(s, o)
			expired = append(expired, o)
		}
		l.settle(s)
	}
	return expired
}
