package redis

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

var (
	changeScript = newScript("hall", "change")
	listScript   = newScript("hall", "list")
	sweepScript  = newScript("hall", "sweep")
)

const (
	sweepMost  = 512 // subjects that one call takes out with a dead node
	maxErrands = 32  // of one wing under way
	touchRate  = 1000
)

// wing is the part of a Presence whose topics have one listener. That runs all of
// it.
type wing struct {
	presence *Presence // immutable
	listener *listener // immutable

	halls   map[codec.Topic]*hall // those that are watched
	quiet   backpressure.Ring[*hall]
	errands backpressure.Ring[errand] // one look at most, and one for each dead node, of a hall
	flying  int                       // errands under way
	holding map[*hall]time.Time       // those with calls held, and since when
	closed  bool
}

// errand is something to do about a topic that nobody waits for: take a dead node
// out, or, if there is none, see whether anything is missing.
type errand struct {
	topic codec.Topic
	dead  string
}

// inOrder does what a caller has asked for. What comes after a Watch whose
// confirmation is under way waits for that, so that the watcher hears of it.
func (w *wing) inOrder(topic codec.Topic, do func()) {
	if h := w.halls[topic]; h != nil && h.expects() {
		if h.held = append(h.held, do); len(h.held) == 1 {
			w.holding[h] = time.Now()
		}
		return
	}
	do()
}

// release does what was held for confirmations that are not under way any more, or
// take longer than a reply may.
func (w *wing) release(now time.Time) {
	for h, since := range w.holding {
		if !h.expects() || now.Sub(since) >= replyTimeout || w.presence.bridge.ctx.Err() != nil {
			h.release()
		}
	}
}

// ask brings one step to the server, about what node has in the topic. Either land is
// called, by the listener, or fail, on any goroutine.
func (w *wing) ask(topic codec.Topic, s *script, node string, args []any, size int, land func(r hallReply), fail func(*codec.Error)) {
	b := w.presence.bridge
	own := b.names.presenceOf(topic, node)
	k := &call{script: s, keys: []string{b.names.presence(topic), b.names.presenceOf(topic, ""), own}, args: args}
	k.done = func(reply any, err error) {
		r, bad := readHallReply(reply, err)
		switch {
		case bad != nil:
			b.log.Error("redis: presence was refused", "err", bad)
			fail(errServer)
		case !w.listener.post(true, func() { land(r) }):
			fail(errClosed)
		}
	}
	b.caller.put(topic.Tenant, k.keys[0], &op{call: k, size: int64(size + 256), fail: func(err error) { fail(coded(err)) }})
}

// hallReply is what each of the scripts answers.
type hallReply struct {
	mark  bridge.Mark
	flag  bool     // see there
	nodes []string // that have somebody in the topic
	told  []string // that have told all that they have
	whole bool     // of a list: the one that asked is one of them
	rest  []string
}

func readHallReply(reply any, err error) (r hallReply, bad error) {
	if err != nil {
		return r, err
	}
	list, bad := stringsOf(reply)
	if bad != nil || len(list) < 5 {
		return r, errors.Join(errReply, bad)
	}
	r.mark, bad = mark(list[0], list[1])
	r.flag, r.nodes, r.told, r.rest = list[2] == "1", strings.Fields(list[3]), strings.Fields(list[4]), list[5:]
	return r, bad
}

// landed takes from a reply what it says of the topic.
func (w *wing) landed(topic codec.Topic, r hallReply) *hall {
	h := w.halls[topic]
	if h != nil {
		late := h.known.Epoch == r.mark.Epoch && h.known.Seq > r.mark.Seq
		h.learn(r.mark)
		h.heard(r.told)
		if !late { // changes have come that are newer
			h.meet(r.nodes)
		}
	}
	return h
}

// claim is the highest mark that this node has seen of a topic.
func (w *wing) claim(topic codec.Topic) (epoch, seq any) {
	if h := w.halls[topic]; h != nil {
		return h.known.Epoch, decimal(h.known.Seq)
	}
	return "", "0"
}

// change tells whom this node has, in as many parts as it needs.
func (w *wing) change(topic codec.Topic, generation uint64, u bridge.PresenceUpdate, done func(bridge.Mark, *codec.Error)) {
	parts := partsOf(u)
	all := &changing{left: len(parts), done: done}
	b := w.presence.bridge
	node := w.presence.name()
	epoch, seq := w.claim(topic)
	for i := range parts {
		part := &parts[i]
		args := make([]any, 0, 10+3*len(part.Put)+len(part.Remove)+len(part.stay))
		args = append(args, node, decimal(generation), i, b.publishWord(), b.names.changes(topic), freshEpoch(), epoch, seq,
			flag(part.Whole), len(part.Put))
		for _, m := range part.Put {
			args = append(args, m.Subject, m.Sessions, dataText(m.Data))
		}
		for _, list := range [...][]string{part.Remove, part.stay} {
			for _, subject := range list {
				args = append(args, subject)
			}
		}
		w.ask(topic, &changeScript, node, args, part.size, func(r hallReply) {
			w.landed(topic, r)
			if r.flag {
				w.presence.disown(node)
			}
			all.landed(r.mark, nil)
		}, func(err *codec.Error) { all.landed(bridge.Mark{}, err) })
	}
}

// changing puts the answers to the parts of one Change together. They land in order.
type changing struct {
	done func(bridge.Mark, *codec.Error)

	mu sync.Mutex
	// guarded by mu
	left int
	mark bridge.Mark
	err  *codec.Error
}

func (c *changing) landed(m bridge.Mark, err *codec.Error) {
	c.mu.Lock()
	c.left--
	last := c.left == 0
	if err != nil {
		c.err = err
	}
	if c.mark = m; c.err != nil {
		c.mark = bridge.Mark{}
	}
	m, err = c.mark, c.err
	c.mu.Unlock()
	if last {
		c.done(m, err)
	}
}

// list reads a page.
func (w *wing) list(topic codec.Topic, after string, limit int, done func(bridge.MemberPage, *codec.Error)) {
	w.page(topic, after, max(limit, 0), func(r hallReply) {
		h := w.landed(topic, r)
		if h != nil {
			h.listed(r.mark)
		}
		page, err := readPage(r)
		switch {
		case err != nil:
			w.presence.bridge.log.Error("redis: a page of presence cannot be read", "err", err)
			done(bridge.MemberPage{}, errServer)
		case h != nil && h.unsettled(time.Now()):
			done(bridge.MemberPage{}, errUnsettled)
		default:
			done(page, nil)
		}
	}, func(err *codec.Error) { done(bridge.MemberPage{}, err) })
}

func (w *wing) page(topic codec.Topic, after string, limit int, land func(r hallReply), fail func(*codec.Error)) {
	node := w.presence.name()
	epoch, seq := w.claim(topic)
	w.ask(topic, &listScript, node, []any{node, freshEpoch(), epoch, seq, after, limit}, 0, func(r hallReply) {
		if r.flag {
			w.presence.disown(node)
		}
		r.whole = slices.Contains(r.told, node)
		land(r)
	}, fail)
}

// readPage reads what the list has.
func readPage(r hallReply) (page bridge.MemberPage, err error) {
	if len(r.rest) < 2 || len(r.rest)%2 != 0 {
		return page, errReply
	}
	page.Mark, page.More = r.mark, r.rest[1] == "1"
	if page.Count, err = strconv.Atoi(r.rest[0]); err != nil {
		return page, err
	}
	for i := 2; i < len(r.rest) && err == nil; i += 2 {
		var m codec.Member
		m, err = readMember(r.rest[i], r.rest[i+1])
		page.Members = append(page.Members, m)
	}
	return page, err
}

// watch begins to bring a topic's changes to v.
func (w *wing) watch(topic codec.Topic, v bridge.Watcher) {
	if w.closed {
		return
	}
	h := w.halls[topic]
	if h == nil {
		h = &hall{wing: w, topic: topic, viewers: []viewer{{Watcher: v}}, checked: time.Now()}
		w.halls[topic] = h
		w.quiet.Push(h)
		h.channel = w.listener.listen(w.presence.bridge.names.changes(topic), topic.String(), h)
		return
	}
	if i := h.viewer(v); i >= 0 {
		h.viewers[i].from = h.known
	} else {
		h.viewers = append(h.viewers, viewer{v, h.known})
	}
	if h.attached {
		v.Anew()
	}
}

// unwatch ends it.
func (w *wing) unwatch(topic codec.Topic, v bridge.Watcher) {
	h := w.halls[topic]
	if h == nil {
		return
	}
	if i := h.viewer(v); i >= 0 {
		h.viewers = slices.Delete(h.viewers, i, i+1)
	}
	if len(h.viewers) == 0 {
		w.end(h)
	}
}

func (w *wing) end(h *hall) {
	h.gone = true
	delete(w.halls, h.topic)
	h.release()
	w.presence.meet(h.nodes, nil)
	w.listener.unlisten(h.channel)
}

func (w *wing) close() {
	w.closed = true
	for _, h := range w.halls {
		w.end(h)
	}
}

// anew begins anew with everything.
func (w *wing) anew() {
	for _, h := range w.halls {
		if h.attached {
			h.anew()
		}
	}
}

// bury has a dead node taken out wherever it has somebody.
func (w *wing) bury(node string) {
	for topic, h := range w.halls {
		if slices.Contains(h.nodes, node) {
			w.errands.Push(errand{topic, node})
		}
	}
	w.pump()
}

// tick has the halls looked at that nobody has for the time of a check.
func (w *wing) tick(now time.Time, every time.Duration) {
	w.release(now)
	most := max(1, int(touchRate*every/time.Second))
	for n := 0; n < most && w.quiet.Len() > 0; n++ {
		h := *w.quiet.Front()
		if !h.gone && now.Sub(h.checked) < w.presence.bridge.config.Check {
			break
		}
		w.quiet.Drop()
		if !h.gone {
			h.checked = now
			w.quiet.Push(h)
			w.errands.Push(errand{topic: h.topic})
		}
	}
	w.pump()
}

// pump does as many errands as may be under way.
func (w *wing) pump() {
	for w.flying < maxErrands && w.errands.Len() > 0 {
		e, _ := w.errands.Pop()
		h := w.halls[e.topic]
		switch {
		case h == nil || !h.attached:
		case e.dead == "":
			w.flying++
			w.page(e.topic, "", 0, func(r hallReply) {
				if h := w.landed(e.topic, r); h != nil {
					h.compare(r.mark, r.whole)
				}
				w.back()
			}, func(*codec.Error) { w.listener.post(true, w.back) })
		case slices.Contains(h.nodes, e.dead):
			w.flying++
			w.sweep(e)
		}
	}
}

// back is the end of an errand.
func (w *wing) back() {
	w.flying--
	w.pump()
}

// sweep takes a dead node out, or a part of what it has.
func (w *wing) sweep(e errand) {
	b := w.presence.bridge
	epoch, seq := w.claim(e.topic)
	args := []any{e.dead, b.publishWord(), b.names.changes(e.topic), freshEpoch(), epoch, seq, sweepMost}
	w.ask(e.topic, &sweepScript, e.dead, args, 0, func(r hallReply) {
		w.landed(e.topic, r)
		if r.flag {
			w.errands.Push(e)
		}
		w.back()
	}, func(*codec.Error) { w.listener.post(true, w.back) }) // it is found dead again
}
