package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

const (
	maxRepeats = 1 << 18 // keys that one topic remembers
	repeatCost = 256     // bytes charged for a key besides its EID: its places in table and order
)

// repeatKey stands for a subject and its dedup key. A digest keeps the message
// from which the key was cut from staying in memory for the window, and has one
// size; nobody can make two names meet in it.
type repeatKey [16]byte

// What a key is of.
type keyed byte

const (
	publication keyed = iota
	command
)

func newRepeatKey(of keyed, subject, key string) repeatKey {
	var scratch [576]byte
	name := binary.LittleEndian.AppendUint32(append(scratch[:0], byte(of)), uint32(len(subject)))
	name = append(name, subject...)
	name = append(name, key...)
	sum := sha256.Sum256(name)
	return repeatKey(sum[:16])
}

type repeat struct {
	eid      string // these two of a publication
	position codec.Position
	done     *bridge.Attempted // of a command
	until    int64             // the first instant at which it is forgotten
}

// repeats remembers the first result of each key of a topic for its window. The
// window runs from the acceptance and is never prolonged. It is pure.
type repeats struct {
	first table[repeatKey, repeat]
	order backpressure.Ring[ending] // by acceptance; one for each key charged
}

type ending struct {
	key   repeatKey
	until int64
	cost  int64
}

func (r *repeats) find(key repeatKey, now int64) (repeat, bool) {
	f, ok := r.first.get(key)
	return f, ok && now < f.until
}

func (r *repeats) full() bool { return r.order.Len() >= maxRepeats }

func (r *repeats) remember(key repeatKey, first repeat, now int64, window time.Duration, cost int64) {
	first.until = now + int64(window)
	r.first.put(key, first)
	r.order.Push(ending{key, first.until, cost})
}

// forget removes what has ended and returns what it was charged. Behind a longer
// window (the kind's was changed) an ended key waits, found by nobody.
func (r *repeats) forget(now int64) (cost int64) {
	for r.order.Len() > 0 && r.order.At(0).until <= now {
		e, _ := r.order.Pop()
		cost += e.cost
		// A key accepted again while its old ending waited belongs to the newer.
		if f, ok := r.first.get(e.key); ok && f.until == e.until {
			r.first.remove(e.key)
		}
	}
	return cost
}
