package redis

import (
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// What a node learns of a topic before it knows where to begin is missed like
// anything that does not come.
func TestWhatWasLearnedBeforeTheBeginningIsMissed(t *testing.T) {
	at := func(offset uint64) codec.Position { return codec.Position{Epoch: "e", Offset: offset} }
	h := &head{known: at(12)}
	tp := &topic{head: h}
	h.topic = tp
	l := &listener{}
	l.brought(tp, at(10))
	now := time.Now()
	if list, _ := l.missing(now); len(list) != 0 {
		t.Error("missed at once")
	}
	if list, known := l.missing(now.Add(2 * patience)); len(list) != 1 || list[0] != h || known[0] != at(12) {
		t.Errorf("missed %v, up to %v", list, known)
	}
	l.brought(tp, at(11))
	l.brought(tp, at(12))
	if list, _ := l.missing(time.Now().Add(2 * patience)); len(list) != 0 {
		t.Error("what has come is missed")
	}
}
