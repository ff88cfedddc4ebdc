package backpressure

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type entry = Entry[int]

// naiveQueue is the queue by scanning a slice. keyed marks entries that a newer one may replace.
type naiveQueue struct {
	entries []entry
	keyed   []bool
	items   int
	limit   int
}

func (n *naiveQueue) bytes() (sum int) {
	for _, e := range n.entries {
		sum += e.Size
	}
	return sum
}

// find is the place of the entry that coalesces with key, or -1.
func (n *naiveQueue) find(key uint64) int {
	for i, e := range n.entries {
		if key != 0 && n.keyed[i] && e.Key == key {
			return i
		}
	}
	return -1
}

func (n *naiveQueue) pop() entry {
	e := n.entries[0]
	n.entries, n.keyed = n.entries[1:], n.keyed[1:]
	return e
}

func (n *naiveQueue) push(e entry, p Policy) (o Outcome, removed []entry) {
	if e.Size > n.limit {
		return TooLarge, nil
	}
	keyed := p == CoalesceLatest && e.Key != 0
	if keyed {
		if i := n.find(e.Key); i >= 0 {
			old := n.entries[i]
			if n.bytes()-old.Size+e.Size > n.limit {
				return Backpressured, nil
			}
			n.entries[i] = e
			return Coalesced, []entry{old}
		}
	}
	full := func() bool { return len(n.entries) >= n.items || n.bytes()+e.Size > n.limit }
	for p == DropOldest && len(n.entries) > 0 && full() {
		removed = append(removed, n.pop())
	}
	if full() {
		return Backpressured, removed
	}
	n.entries, n.keyed = append(n.entries, e), append(n.keyed, keyed)
	return Accepted, removed
}

func TestQueueModel(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		n := naiveQueue{items: 1 + rnd.IntN(100), limit: 1 + rnd.IntN(1000)}
		q := NewQueue[int](n.items, n.limit)
		q.popped = uint32(1<<32 - 500) // numbers wrap on the way
		for i := range 4000 {
			e := entry{Item: i, Size: rnd.IntN(40), Key: uint64(rnd.IntN(12)), Expires: int64(rnd.IntN(3) * rnd.IntN(4000))}
			switch rnd.IntN(14) {
			case 0, 1, 2, 3, 4:
				p := Policy(rnd.IntN(Policies))
				o, removed := q.Push(e, p, nil)
				wantO, wantRemoved := n.push(e, p)
				if o != wantO || !slices.Equal(removed, wantRemoved) {
					t.Fatalf("seed %d: %v %v: %v, removed %v; want %v, %v", seed, p, e, o, removed, wantO, wantRemoved)
				}
			case 5: // who reserves looks for an older one first
				grow := rnd.IntN(30)
				old, found, done := q.Replace(e, grow)
				at := n.find(e.Key)
				if found != (at >= 0) || done != (at >= 0 && e.Size-n.entries[at].Size <= grow) {
					t.Fatalf("seed %d: Replace %v by %d: found %v, done %v, of %v", seed, e, grow, found, done, n.entries)
				}
				switch {
				case done && old != n.entries[at]:
					t.Fatalf("seed %d: replaced %v, want %v", seed, old, n.entries[at])
				case done:
					n.entries[at] = e
				case !found:
					q.PushReserved(e)
					n.entries, n.keyed = append(n.entries, e), append(n.keyed, e.Key != 0)
				}
			case 6, 7:
				e.Key = 0
				slot, o := q.Offer(e.Size)
				if slot != nil {
					if *slot != (entry{Size: e.Size}) {
						t.Fatalf("seed %d: a place with %v in it", seed, *slot)
					}
					*slot = e
				}
				if want, _ := n.push(e, Reject); o != want || o.Took() != (slot != nil) {
					t.Fatalf("seed %d: Offer of %d: %v, want %v", seed, e.Size, o, want)
				}
			case 8:
				q.PushFront(e)
				n.entries, n.keyed = slices.Insert(n.entries, 0, e), slices.Insert(n.keyed, 0, false)
			default:
				front := q.Front()
				if (front != nil) != (len(n.entries) > 0) {
					t.Fatalf("seed %d: Front %v with %d waiting", seed, front, len(n.entries))
				}
				if front != nil {
					want := n.pop()
					if expired := want.Expires != 0 && want.Expires <= int64(i); *front != want || front.Expired(int64(i)) != expired {
						t.Fatalf("seed %d: Front %v, want %v, expired %v", seed, *front, want, expired)
					}
					q.Drop()
				}
			}
			if q.Len() != len(n.entries) || q.bytes != n.bytes() {
				t.Fatalf("seed %d: %d items %d bytes, want %d, %d", seed, q.Len(), q.bytes, len(n.entries), n.bytes())
			}
			if front := q.Front(); front != nil && *front != n.entries[0] {
				t.Fatalf("seed %d: Front %v, want %v", seed, front, n.entries[0])
			}
			if len(q.index) > q.Len() {
				t.Fatalf("seed %d: %d keys for %d entries", seed, len(q.index), q.Len())
			}
		}
	}
}

func TestQueuePolicies(t *testing.T) {
	type step struct {
		e       entry
		p       Policy
		want    Outcome
		removed []int
	}
	for _, tt := range []struct {
		name         string
		items, bytes int
		steps        []step
		left         []int
	}{
		{"reject at the bound in items", 2, 100, []step{
			{entry{Item: 1}, Reject, Accepted, nil},
			{entry{Item: 2}, Reject, Accepted, nil},
			{entry{Item: 3}, Reject, Backpressured, nil},
		}, []int{1, 2}},
		{"reject at the bound in bytes", 9, 10, []step{
			{entry{Item: 1, Size: 6}, Reject, Accepted, nil},
			{entry{Item: 2, Size: 5}, Reject, Backpressured, nil},
			{entry{Item: 3, Size: 4}, Reject, Accepted, nil},
		}, []int{1, 3}},
		{"drop oldest, as many as it takes", 9, 10, []step{
			{entry{Item: 1, Size: 3}, DropOldest, Accepted, nil},
			{entry{Item: 2, Size: 3}, DropOldest, Accepted, nil},
			{entry{Item: 3, Size: 3}, DropOldest, Accepted, nil},
			{entry{Item: 4, Size: 6}, DropOldest, Accepted, []int{1, 2}},
		}, []int{3, 4}},
		{"too large removes nothing", 9, 10, []step{
			{entry{Item: 1, Size: 3}, DropOldest, Accepted, nil},
			{entry{Item: 2, Size: 11}, DropOldest, TooLarge, nil},
		}, []int{1}},
		{"coalesce in the older one's place, full or not", 2, 100, []step{
			{entry{Item: 1, Key: 7}, CoalesceLatest, Accepted, nil},
			{entry{Item: 2, Key: 8}, CoalesceLatest, Accepted, nil},
			{entry{Item: 3, Key: 7}, CoalesceLatest, Coalesced, []int{1}},
			{entry{Item: 4, Key: 9}, CoalesceLatest, Backpressured, nil},
		}, []int{3, 2}},
		{"a larger one that does not fit leaves the older", 9, 10, []step{
			{entry{Item: 1, Size: 5, Key: 7}, CoalesceLatest, Accepted, nil},
			{entry{Item: 2, Size: 5}, Reject, Accepted, nil},
			{entry{Item: 3, Size: 6, Key: 7}, CoalesceLatest, Backpressured, nil},
		}, []int{1, 2}},
		{"no key, no coalescing", 9, 100, []step{
			{entry{Item: 1}, CoalesceLatest, Accepted, nil},
			{entry{Item: 2}, CoalesceLatest, Accepted, nil},
		}, []int{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := NewQueue[int](tt.items, tt.bytes)
			for i, s := range tt.steps {
				o, removed := q.Push(s.e, s.p, nil)
				var items []int
				for _, e := range removed {
					items = append(items, e.Item)
				}
				if o != s.want || !slices.Equal(items, s.removed) {
					t.Errorf("step %d: %v, removed %v; want %v, %v", i, o, items, s.want, s.removed)
				}
			}
			var left []int
			for ; q.Len() > 0; q.Drop() {
				left = append(left, q.Front().Item)
			}
			if !slices.Equal(left, tt.left) {
				t.Errorf("left %v, want %v", left, tt.left)
			}
		})
	}
}

// An empty lane that was once large holds nothing, its index included.
func TestQueueGivesMemoryBack(t *testing.T) {
	q := NewQueue[int](10_000, 1)
	for i := range 10_000 {
		q.Push(entry{Key: uint64(i + 1)}, CoalesceLatest, nil)
	}
	for range 10_000 {
		q.Drop()
	}
	if q.ring.buf != nil || q.index != nil {
		t.Errorf("%d slots, index %v", len(q.ring.buf), q.index != nil)
	}
}

func TestQueueAllocatesNothing(t *testing.T) {
	q := NewQueue[any](64, 1<<20)
	item := any("x")
	for _, p := range []Policy{Reject, DropOldest, CoalesceLatest} {
		var scratch [4]Entry[any]
		allocs := testing.AllocsPerRun(1000, func() {
			for range 70 { // past the bound
				q.Push(Entry[any]{Item: item, Size: 10, Key: 1}, p, scratch[:0])
			}
			for q.Len() > 0 {
				q.Drop()
			}
		})
		if allocs != 0 {
			t.Errorf("%v: %v allocations", p, allocs)
		}
	}
}

func BenchmarkQueue(b *testing.B) {
	for _, p := range []Policy{Reject, CoalesceLatest} {
		b.Run(p.String(), func(b *testing.B) {
			q := NewQueue[any](64, 1<<20)
			var scratch [4]Entry[any]
			b.ReportAllocs()
			for b.Loop() {
				q.Push(Entry[any]{Item: "x", Size: 10, Key: 1}, p, scratch[:0])
				q.Drop()
			}
		})
	}
}

// BenchmarkQueueReference is coalescing by scanning a slice of 64 for the key.
func BenchmarkQueueReference(b *testing.B) {
	for _, bench := range []struct {
		name string
		push func(entry) Outcome
	}{
		{"scan", func() func(entry) Outcome {
			n := naiveQueue{items: 64, limit: 1 << 20}
			return func(e entry) Outcome { o, _ := n.push(e, CoalesceLatest); return o }
		}()},
		{"index", func() func(entry) Outcome {
			q := NewQueue[int](64, 1<<20)
			var scratch [4]entry
			return func(e entry) Outcome { o, _ := q.Push(e, CoalesceLatest, scratch[:0]); return o }
		}()},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for i := range 64 {
				bench.push(entry{Key: uint64(i + 1)})
			}
			b.ReportAllocs()
			for b.Loop() {
				bench.push(entry{Key: 64})
			}
		})
	}
}
