package memory

import (
	"container/heap"
	"slices"
)

// oldest finds the topic of a tenant that keeps the tenant's oldest event. Keys
// are lower bounds: trims do not touch it, and a key is put right when its topic
// comes to the top. So it costs nothing until budget is short.
type oldest []*topic

// add enters a topic that keeps something.
func (o *oldest) add(t *topic) {
	if t.rank < 0 {
		t.rankKey = t.history.run.At(0).at
		heap.Push(o, t)
	}
}

func (o *oldest) remove(t *topic) {
	if t.rank >= 0 {
		heap.Remove(o, t.rank)
	}
}

// find returns nil when no topic keeps anything.
func (o *oldest) find() *topic {
	for len(*o) > 0 {
		top := (*o)[0]
		switch {
		case top.history.run.Len() == 0:
			heap.Pop(o)
		case top.history.run.At(0).at != top.rankKey:
			top.rankKey = top.history.run.At(0).at
			heap.Fix(o, 0)
		default:
			return top
		}
	}
	return nil
}

// compact gives back the room of a larger past, as table does.
func (o *oldest) compact() {
	if cap(*o) > 64 && len(*o) < cap(*o)/4 {
		*o = slices.Clone(*o)
	}
}

// heap.Interface, for container/heap alone.

func (o oldest) Len() int           { return len(o) }
func (o oldest) Less(i, j int) bool { return o[i].rankKey < o[j].rankKey }
func (o oldest) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].rank, o[j].rank = i, j
}

func (o *oldest) Push(x any) {
	t := x.(*topic)
	t.rank = len(*o)
	*o = append(*o, t)
}

func (o *oldest) Pop() any {
	last := len(*o) - 1
	t := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	t.rank = -1
	return t
}
