package scheduler

import "math/bits"

const (
	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
	wheelLevels = 6 // 64 to the power of 6 ticks of 10 ms: 21 years of one process
	wheelEnd    = 1<<(wheelBits*wheelLevels) - 1
)

// wheel is a hierarchy of wheels of 64 slots: a timer lies on the level of the highest group of 6 bits in which its tick differs from the
// current one, and moves down when its slot comes; at most five times. It is pure: time is the tick given to pop.
//
// Invariant: every occupied slot lies ahead of elapsed on its level, so the lowest occupied level has the earliest one.
type wheel struct {
	elapsed uint64 // all ticks up to here are done
	armed   int    // timers that are set
	levels  [wheelLevels]struct {
		occupied uint64 // bit per slot
		slots    [wheelSlots]*Timer
	}
	due *Timer // expired, not popped yet
}

// set arms t for a tick: at the earliest the next one, at the latest wheelEnd.
func (w *wheel) set(t *Timer, tick uint64) {
	w.clear(t)
	w.armed++
	t.tick = min(max(tick, w.elapsed+1), wheelEnd)
	w.place(t)
}

// clear disarms t; nothing if it is not set.
func (w *wheel) clear(t *Timer) {
	if t.at != nil {
		w.armed--
		w.unlink(t)
	}
}

// pop disarms and returns one timer that has expired at tick now; nil: no more.
func (w *wheel) pop(now uint64) *Timer {
	for w.due == nil {
		level, slot, start, ok := w.earliest()
		if !ok || start > now {
			w.elapsed = max(w.elapsed, now)
			return nil
		}
		w.elapsed = start
		list := &w.levels[level].slots[slot]
		for *list != nil {
			t := *list
			w.unlink(t)
			w.place(t)
		}
	}
	t := w.due
	w.armed--
	w.unlink(t)
	return t
}

// next is the tick at which something is to be done; false: never.
func (w *wheel) next() (uint64, bool) {
	if w.due != nil {
		return w.elapsed, true
	}
	_, _, start, ok := w.earliest()
	return start, ok
}

// earliest finds the first occupied slot, and the tick at which it begins.
func (w *wheel) earliest() (level, slot int, start uint64, ok bool) {
	for level := range w.levels {
		if occupied := w.levels[level].occupied; occupied != 0 {
			slot := bits.TrailingZeros64(occupied)
			shift := level * wheelBits
			base := w.elapsed &^ (1<<(shift+wheelBits) - 1)
			return level, slot, base + uint64(slot)<<shift, true
		}
	}
	return 0, 0, 0, false
}

// place links t where its tick belongs, seen from elapsed.
func (w *wheel) place(t *Timer) {
	if t.tick <= w.elapsed {
		t.link(&w.due)
		return
	}
	level := (bits.Len64(t.tick^w.elapsed) - 1) / wheelBits
	slot := t.tick >> (level * wheelBits) % wheelSlots
	t.level, t.slot = uint8(level), uint8(slot)
	w.levels[level].occupied |= 1 << slot
	t.link(&w.levels[level].slots[slot])
}

func (w *wheel) unlink(t *Timer) {
	list := t.at
	t.unlink()
	if *list == nil && list != &w.due {
		w.levels[t.level].occupied &^= 1 << t.slot
	}
}
