package redis

import (
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// head is how far a topic is known to be, by whatever means, beside how far its
// sinks were brought. It is guarded by its listener's mu.
type head struct {
	topic     *topic
	known     codec.Position
	delivered codec.Position // zero: nothing yet, from nowhere
	since     time.Time      // when known went beyond delivered
	listed    bool           // in suspects
	owed      bool           // the link was made anew, and what was missed has yet to be read
}

func beyond(known, delivered codec.Position) bool {
	return known.Epoch != delivered.Epoch || known.Offset > delivered.Offset
}

// knows reports whether the node has interest in a topic.
func (l *listener) knows(name codec.Topic) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heads[name] != nil
}

// learn notes that a topic has got as far as p. What is not brought in time
// afterwards is missing.
func (l *listener) learn(name codec.Topic, p codec.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.heads[name]
	if h == nil || h.known.Epoch == p.Epoch && h.known.Offset >= p.Offset {
		return
	}
	h.known = p
	l.suspect(h)
}

// suspect sees to it that what is known of a topic and was not brought is missed in
// time. Under mu.
func (l *listener) suspect(h *head) {
	if !h.listed && !h.delivered.IsZero() && beyond(h.known, h.delivered) {
		h.listed, h.since = true, time.Now()
		l.suspects = append(l.suspects, h)
	}
}

// readToTheEnd: a sink, or another reader, has what a topic had missed.
func (l *listener) readToTheEnd(name codec.Topic) {
	l.mu.Lock()
	h := l.heads[name]
	owed := h != nil && h.owed
	l.mu.Unlock()
	if owed {
		l.post(true, h.topic.filled)
	}
}

// claim is the highest position that this node has seen of a topic in which it has
// interest: a server that has less has lost something.
func (l *listener) claim(name codec.Topic) codec.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.heads[name]; h != nil {
		return h.known
	}
	return codec.Position{}
}

// brought notes that the sinks have everything up to p, or know that they have not.
func (l *listener) brought(t *topic, p codec.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := t.head
	h.delivered = p
	if h.known.Epoch != p.Epoch || h.known.Offset < p.Offset {
		h.known = p
	}
	l.suspect(h) // more may have been learned before there was a place to begin from
}

// missing takes out what was learned too long ago and has not come.
func (l *listener) missing(now time.Time) (list []*head, known []codec.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	still := l.suspects[:0]
	for _, h := range l.suspects {
		switch {
		case !beyond(h.known, h.delivered):
			h.listed = false
		case now.Sub(h.since) < patience:
			still = append(still, h)
		default:
			h.listed = false
			list, known = append(list, h), append(known, h.known)
		}
	}
	clear(l.suspects[len(still):])
	l.suspects = still
	return list, known
}
