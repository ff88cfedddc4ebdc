package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

var (
	publishScript = newScript("position", "publish")

	errExpired   = codec.NewError(codec.CodeExpired, "too late to publish")
	errNoHistory = codec.NewError(codec.CodeUnsupported, "the room has no history")
	errTooLong   = codec.NewError(codec.CodeTooLarge, "larger than the room's history")
	errOffsets   = codec.NewError(codec.CodeInternal, "the room's offsets are used up")
)

// publish is publications of one topic on their way; their number is bounded by
// callEvents.
type publish struct {
	topic     codec.Topic
	at        place
	retention bridge.Retention
	plain     bool // nothing is kept or remembered: no script, and never twice
	batch     []bridge.Publication
	texts     []text // of each
	done      func([]bridge.Published)
}

// text is a publication as it is sent. It is made while the one before is under way,
// by whoever publishes, so that nobody waits for it.
type text struct {
	text    string
	refusal *codec.Error // it is larger than the bridge or the history can hold, or there is none
	size    int
}

func (p *publish) joins(first *publish) bool {
	return p.plain == first.plain && p.retention == first.retention
}

// refuse answers all of it. Who publishes what is only passed on has been heard on
// this node, and an outage is nothing that he must know of.
func (p *publish) refuse(err error) {
	results := make([]bridge.Published, len(p.batch))
	for i := range results {
		if p.plain && err == errLost {
			results[i].EID = p.batch[i].Event.EID
		} else {
			results[i].Err = coded(err)
		}
	}
	p.done(results)
}

// Publish implements bridge.Broker.
func (b *Bridge) Publish(topic codec.Topic, r bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	if len(batch) <= callEvents {
		b.publish(topic, r, batch, done)
		return
	}
	all := &gathered{results: make([]bridge.Published, len(batch)), left: (len(batch) + callEvents - 1) / callEvents, done: done}
	for from := 0; from < len(batch); from += callEvents {
		b.publish(topic, r, batch[from:min(from+callEvents, len(batch))], func(part []bridge.Published) { all.add(from, part) })
	}
}

// gathered puts the answers of parts together.
type gathered struct {
	done func([]bridge.Published)

	mu sync.Mutex
	// guarded by mu
	results []bridge.Published
	left    int
}

func (g *gathered) add(from int, part []bridge.Published) {
	g.mu.Lock()
	copy(g.results[from:], part)
	g.left--
	last := g.left == 0
	g.mu.Unlock()
	if last {
		g.done(g.results)
	}
}

// publish puts what one call carries in line.
func (b *Bridge) publish(topic codec.Topic, r bridge.Retention, batch []bridge.Publication, done func([]bridge.Published)) {
	if len(batch) == 0 {
		done(nil)
		return
	}
	o := newPublish(len(batch))
	p := o.publish
	p.topic, p.at, p.retention, p.plain, p.done = topic, b.names.placeOf(topic), r, true, done
	copy(p.batch, batch)
	size := int64(0)
	full := !b.budget.admits(topic.Tenant)
	w := b.texts.Get().(*texts)
	for i := range batch {
		pub := &batch[i]
		p.texts[i] = b.text(w, pub, r, full)
		size += int64(pub.Event.Size() + len(pub.DedupKey))
		if pub.Buffered || pub.DedupKey != "" && r.DedupWindow > 0 {
			p.plain = false
		}
	}
	b.texts.Put(w)
	o.size, o.repeat = size, !p.plain
	b.caller.put(topic.Tenant, p.at.channel, o)
}

// newPublish has room for n publications. For one, which is the rule, it is one piece of
// memory with its op.
func newPublish(n int) *op {
	if n > 1 {
		return &op{publish: &publish{batch: make([]bridge.Publication, n), texts: make([]text, n)}}
	}
	one := &struct {
		op      op
		publish publish
		batch   [1]bridge.Publication
		texts   [1]text
	}{}
	one.op.publish, one.publish.batch, one.publish.texts = &one.publish, one.batch[:], one.texts[:]
	return &one.op
}

// text makes it; full: the tenant may have no more kept.
func (b *Bridge) text(w *texts, pub *bridge.Publication, r bridge.Retention, full bool) (t text) {
	if pub.Buffered {
		t.size = pub.Event.Size() + 16 // of the epoch
	}
	switch {
	case pub.Buffered && r.Events < 1:
		t.refusal = errNoHistory
		return t
	case pub.Buffered && r.Bytes > 0 && int64(t.size) > r.Bytes:
		t.refusal = errTooLong
		return t
	case pub.Buffered && full:
		t.refusal = errQuota
		return t
	}
	var err error
	if t.text, err = w.of(pub.Event, pub.Buffered); err != nil {
		b.log.Warn(errTooLarge.Message, "err", err)
		t.refusal = errTooLarge
	}
	return t
}

// publishing is one batch as one call: of which ops which publications it has.
type publishing struct {
	bridge  *Bridge
	topic   codec.Topic
	at      place
	ops     []*op
	results [][]bridge.Published // of each op
	sent    []sentPublication

	// arguments of the script
	token, reached, letters, sizes string
	claim                          codec.Position

	// here and not apart, since each is a piece of memory for every room
	call    call
	company company
	keys    [2]string
}

type sentPublication struct {
	op, at  int
	verdict byte
	eid     string
	refusal *codec.Error
}

// buildPublish makes one call of a batch. nil: there is nothing to send, and all is
// answered.
func (b *Bridge) buildPublish(batch *batch) *call {
	first := batch.ops[0].publish
	p := &publishing{bridge: b, topic: first.topic, at: first.at, ops: batch.ops, results: make([][]bridge.Published, len(batch.ops)), sent: make([]sentPublication, 0, batch.events)}
	var k *call
	if first.plain {
		k = p.message()
	} else {
		k = p.script(first.retention)
	}
	if len(p.sent) == 0 {
		p.answer()
		return nil
	}
	return k
}

// each visits all publications, with the place of the result.
func (p *publishing) each(visit func(op, at int, pub *bridge.Publication, result *bridge.Published)) {
	all := make([]bridge.Published, cap(p.sent)) // which is for all there are
	for i, o := range p.ops {
		n := len(o.publish.batch)
		p.results[i], all = all[:n:n], all[n:]
		for j := range o.publish.batch {
			visit(i, j, &o.publish.batch[j], &p.results[i][j])
		}
	}
}

func (p *publishing) answer() {
	for i, o := range p.ops {
		o.publish.done(p.results[i])
	}
}

// message is a batch that nobody keeps.
func (p *publishing) message() *call {
	var lines []string
	now := time.Now()
	p.each(func(op, at int, pub *bridge.Publication, result *bridge.Published) {
		t := &p.ops[op].publish.texts[at]
		switch {
		case late(pub, now):
			result.Err = errExpired
		case t.refusal != nil:
			result.Err = t.refusal
		default:
			result.EID = pub.Event.EID
			lines = append(lines, t.text)
			p.sent = append(p.sent, sentPublication{op: op, at: at})
		}
	})
	b := p.bridge
	return &call{
		args: []any{b.publishWord(), p.at.channel, passingMessage(b.config.Node, lines)},
		done: func(any, error) { p.answer() },
	}
}

// script is a batch that is sequenced; see publish.lua for what it is given.
func (p *publishing) script(r bridge.Retention) *call {
	b := p.bridge
	now := time.Now()
	p.claim = b.listenerOf(p.at.channel).claim(p.topic)
	p.token, p.reached = decimal(b.tokens.Add(1)), decimal(p.claim.Offset)
	p.keys = [2]string{p.at.buffer, p.at.meta}
	keys := p.keys[:]
	var numbers map[string]int // of dedup keys
	var marks []string         // of publications with one
	p.each(func(op, i int, pub *bridge.Publication, result *bridge.Published) {
		key := 0
		if pub.DedupKey != "" && r.DedupWindow > 0 {
			name := b.names.dedup(p.topic, newDigest(ofPublication, pub.Event.From, pub.DedupKey))
			if numbers == nil {
				numbers = make(map[string]int)
			}
			if numbers[name] == 0 {
				keys = append(keys, name)
				numbers[name] = len(keys) - 2
			}
			key = numbers[name]
		}
		verdict, refusal := byte('p'), p.ops[op].publish.texts[i].refusal
		switch {
		case late(pub, now):
			verdict, refusal = 'l', errExpired
		case refusal != nil:
			verdict = 't'
		case pub.Buffered:
			verdict = 'b'
		}
		if refusal != nil && key == 0 {
			result.Err = refusal // it can be no repeat
			return
		}
		if key > 0 {
			for len(marks) < len(p.sent) {
				marks = append(marks, "")
			}
			marks = append(marks, strconv.Itoa(key)+" "+pub.Event.EID)
		}
		p.sent = append(p.sent, sentPublication{op, i, verdict, pub.Event.EID, refusal})
	})
	p.letters, p.sizes = p.verdicts()
	if n := len(keys) - 2; n > 0 {
		p.letters = strconv.Itoa(n) + " " + p.letters
	}
	// Pointers, since a string in an interface is a piece of memory more.
	args := make([]any, 0, 6+len(p.sent)+len(marks))
	args = append(args, &p.token, &p.at.channel, &p.claim.Epoch, &p.reached, &p.letters, &p.sizes)
	for i, s := range p.sent {
		args = append(args, &p.ops[s.op].publish.texts[s.at].text)
		if i < len(marks) {
			args = append(args, marks[i])
		} else if len(marks) > 0 {
			args = append(args, "")
		}
	}
	p.company = company{script: &publishScript, slot: p.at.tag, retention: r}
	p.call = call{script: &publishScript, company: &p.company, keys: keys, args: args, done: p.published}
	return &p.call
}

// lead are the first arguments of calls in company.
func (b *Bridge) lead(c *company) []any {
	if c.script == &readScript {
		return []any{freshEpoch()}
	}
	r := c.retention
	return []any{
		b.config.Node, b.publishWord(), freshEpoch(), r.Events, r.Age.Milliseconds(), r.Bytes, max(1, r.DedupWindow.Milliseconds()),
	}
}

// verdicts are a letter for each that is sent, or one for all, and seven digits of the
// size of each.
func (p *publishing) verdicts() (letters, sizes string) {
	text := make([]byte, 8*len(p.sent))
	count := len(p.sent)
	same := true
	for i, s := range p.sent {
		text[i] = s.verdict
		same = same && s.verdict == text[0]
		size := p.ops[s.op].publish.texts[s.at].size
		for n := count + 7*i + 6; n >= count+7*i; n-- {
			text[n] = byte('0' + size%10)
			size /= 10
		}
	}
	all := string(text)
	if letters = all[:count]; same {
		letters = all[:min(count, 1)]
	}
	return letters, all[count:]
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func late(pub *bridge.Publication, now time.Time) bool {
	return !pub.Expires.IsZero() && !now.Before(pub.Expires)
}

// published takes the script's answer.
func (p *publishing) published(reply any, err error) {
	letters, first, repeats, bad := publishReply(reply, err, p.token, len(p.sent))
	if bad != nil {
		p.bridge.log.Error("redis: a batch was refused", "err", bad)
		for i, o := range p.ops {
			for j := range p.results[i] {
				p.results[i][j] = bridge.Published{Err: errServer}
			}
			o.publish.done(p.results[i])
		}
		return
	}
	next, kept := first, uint64(0)
	var bytes, sizes int64
	for i, s := range p.sent {
		result := &p.results[s.op][s.at]
		switch letters[min(i, len(letters)-1)] {
		case 'b':
			*result = bridge.Published{EID: s.eid, Position: next}
			next.Offset++
			kept++
			t := &p.ops[s.op].publish.texts[s.at]
			bytes, sizes = bytes+int64(len(t.text)), sizes+int64(t.size)
		case 'p':
			*result = bridge.Published{EID: s.eid}
		case 'f':
			result.Err = errOffsets
		case 'd':
			*result = repeatOf(repeats[0])
			repeats = repeats[1:]
		default:
			result.Err = s.refusal
		}
	}
	if kept > 0 {
		next.Offset--
		p.bridge.budget.added(p.topic, p.ops[0].publish.retention, next, int(kept), bytes, sizes, time.Now())
		p.bridge.listenerOf(p.at.channel).learn(p.topic, next)
	}
	p.answer()
}

// publishReply takes the answer apart; letters are as many as were sent, or one for all.
func publishReply(reply any, err error, token string, sent int) (letters string, first codec.Position, repeats []string, bad error) {
	if err != nil {
		return "", first, nil, err
	}
	text, ok := reply.(string)
	if !ok {
		list, err := stringsOf(reply)
		if err != nil || len(list) == 0 {
			return "", first, nil, errReply
		}
		text, repeats = list[0], list[1:]
	}
	_, rest, _ := strings.Cut(text, " ") // when it was
	got, rest, _ := strings.Cut(rest, " ")
	epoch, rest, _ := strings.Cut(rest, " ")
	offset, letters, _ := strings.Cut(rest, " ")
	if got != token || len(letters) != sent && len(letters) != 1 || strings.Count(letters, "d") != len(repeats) {
		return "", first, nil, errReply
	}
	first, err = position(epoch, offset)
	return letters, first, repeats, err
}

var errReply = errors.New("redis: an answer that no script gives")

func stringsOf(reply any) ([]string, error) {
	list, ok := reply.([]any)
	if !ok {
		return nil, errReply
	}
	texts := make([]string, len(list))
	for i, v := range list {
		if texts[i], ok = v.(string); !ok {
			return nil, errReply
		}
	}
	return texts, nil
}

// repeatOf is the first result of a dedup key: "epoch offset eid".
func repeatOf(first string) bridge.Published {
	epoch, rest, _ := strings.Cut(first, " ")
	offset, eid, ok := strings.Cut(rest, " ")
	if !ok {
		return bridge.Published{Err: errServer} // forgotten while the batch was repeated
	}
	if epoch == none {
		return bridge.Published{EID: eid, Duplicate: true}
	}
	at, err := position(epoch, offset)
	if err != nil {
		return bridge.Published{Err: errServer}
	}
	return bridge.Published{EID: eid, Position: at, Duplicate: true}
}

// coded is err as a refusal.
func coded(err error) *codec.Error {
	var e *codec.Error
	if errors.As(err, &e) {
		return e
	}
	return codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, fmt.Sprintf("the bridge failed: %T", err))
}
