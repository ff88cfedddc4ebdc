package redis

import (
	"slices"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// tick looks for what has not come.
func (l *listener) tick(now time.Time) {
	heads, known := l.missing(now)
	for i, h := range heads {
		if t := h.topic; !t.gone && t.whole && beyond(known[i], t.delivered) {
			t.delivered = known[i]
			l.brought(t, known[i])
			t.gap(known[i])
		}
	}
	for t, since := range l.owing {
		if now.Sub(since) >= fillTime {
			t.filled()
		}
	}
	for t := range l.joining {
		for _, j := range slices.Clone(t.joins) {
			switch {
			case now.Sub(j.since) >= max(l.bridge.config.Outage.Wait, time.Second) && !j.reading:
				t.answer(j, codec.Position{}, errLost)
			case j.placed || t.attached:
				t.advance(j)
			}
		}
		t.maybeEnd()
	}
	for n := 0; n < checkRate && l.quiet.Len() > 0; n++ {
		t := l.quiet.At(0)
		if !t.gone && now.Sub(t.checked) < l.bridge.config.Check {
			break
		}
		l.quiet.Drop()
		if !t.gone {
			t.checked = now
			l.quiet.Push(t)
			t.wait()
		}
	}
	l.check()
}

// wait has the topic compared with the server's position, when it is its turn.
func (t *topic) wait() {
	if !t.waiting && !t.reading {
		t.waiting = true
		t.listener.checks.Push(t)
		t.listener.check()
	}
}

// check compares as many topics as may be under way.
func (l *listener) check() {
	for l.checking < maxChecks && l.checks.Len() > 0 {
		t, _ := l.checks.Pop()
		t.waiting = false
		if t.gone || !t.attached {
			continue
		}
		l.checking++
		t.reading = true
		links := t.links
		l.bridge.read(t.name, bridge.ReadRequest{Since: t.delivered, HasSince: true}, true, func(page bridge.Page, err *codec.Error) {
			l.post(true, func() {
				l.checking--
				t.reading = false
				t.compare(page, err, links)
				l.check()
			})
		})
	}
}

// compare takes the answer of a check that was begun when the channel had been
// confirmed so many times.
func (t *topic) compare(page bridge.Page, err *codec.Error, links int) {
	switch {
	case t.gone || !t.attached:
	case links != t.links:
		t.wait()
	case err != nil:
		// Nothing says where the topic is. The tick comes back to it.
		if !t.whole {
			t.waiting = true
			t.listener.checks.Push(t)
		}
	case t.whole:
		// What was published just now may be on its way.
		t.listener.learn(t.name, page.Head)
	default:
		lost := beyond(page.Head, t.delivered)
		if !lost {
			page.Head = t.delivered
		}
		if lost && len(t.sinks) > 0 {
			t.owe()
		}
		t.place(page.Head)
		if lost {
			t.gap(page.Head)
		}
		for _, j := range slices.Clone(t.joins) {
			t.advance(j)
		}
	}
}
