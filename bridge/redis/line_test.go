package redis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
)

func testOp(n int, at time.Time) *op {
	return &op{since: at, size: 100, repeat: true, publish: &publish{batch: make([]bridge.Publication, n)}}
}

// Whatever comes and goes: a strand keeps its order and has one batch under way, what is
// charged is what is there, and nothing is left behind.
func TestLineAgainstNaiveStrands(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		l := newLine(OutageQueue{Items: 60, Bytes: 1 << 20})
		naive := map[string][]*op{} // what waits or is under way, in order
		var under []*batch
		now := time.Unix(0, 0)
		for range 400 {
			now = now.Add(time.Second)
			switch random.IntN(5) {
			case 0, 1:
				tenant := fmt.Sprint("t", random.IntN(3))
				name := tenant + fmt.Sprint(":r", random.IntN(4))
				o := testOp(1+random.IntN(3), now)
				if l.put(tenant, name, o) == nil {
					naive[name] = append(naive[name], o)
				}
			case 2:
				for _, b := range l.take(1+random.IntN(40), 1+random.IntN(8)) {
					for _, other := range under {
						if other.strand == b.strand {
							t.Fatalf("seed %d: two batches of %s under way", seed, b.strand.name)
						}
					}
					for i, o := range b.ops {
						if naive[b.strand.name][i] != o {
							t.Fatalf("seed %d: %s out of order", seed, b.strand.name)
						}
					}
					under = append(under, b)
				}
			case 3:
				if len(under) > 0 {
					i := random.IntN(len(under))
					b := under[i]
					under = append(under[:i], under[i+1:]...)
					if random.IntN(3) == 0 {
						l.back(b)
						l.enlist(b.strand)
					} else {
						l.done(b)
						naive[b.strand.name] = naive[b.strand.name][len(b.ops):]
					}
				}
			case 4:
				expired := l.expire(now.Add(-time.Duration(random.IntN(60)) * time.Second))
				for _, o := range expired {
					found := false
					for name, list := range naive {
						for i := range list {
							if list[i] == o {
								naive[name] = append(append([]*op(nil), list[:i]...), list[i+1:]...)
								found = true
								break
							}
						}
					}
					if !found {
						t.Fatalf("seed %d: what is not there expired", seed)
					}
				}
			}
			items := 0
			for _, list := range naive {
				items += len(list)
			}
			if l.items != items || l.bytes != int64(100*items) {
				t.Fatalf("seed %d: %d items and %d bytes are charged, %d are there", seed, l.items, l.bytes, items)
			}
		}
		for len(under) > 0 || l.items > 0 {
			for _, b := range under {
				l.done(b)
			}
			if under = l.take(1<<20, pipelineCalls); len(under) == 0 && l.items > 0 {
				t.Fatalf("seed %d: %d items are never taken", seed, l.items)
			}
		}
		l.take(1, pipelineCalls)
		if len(l.strands) != 0 || len(l.shares) != 0 || l.queued != 0 {
			t.Fatalf("seed %d: %d strands and %d shares are left, %d are queued", seed, len(l.strands), len(l.shares), l.queued)
		}
	}
}

// One tenant has a quarter, and turns are taken by tenant.
func TestLineIsFair(t *testing.T) {
	l := newLine(OutageQueue{Items: 1000, Bytes: 1 << 20})
	var loud int
	for i := range 1000 {
		if l.put("loud", fmt.Sprint("loud:", i), testOp(1, time.Time{})) == nil {
			loud++
		}
	}
	if loud != 250 {
		t.Errorf("one tenant has %d of 1000", loud)
	}
	if err := l.put("quiet", "quiet:1", testOp(1, time.Time{})); err != nil {
		t.Fatal(err)
	}
	taken := l.take(turnEvents+1, pipelineCalls)
	if len(taken) != turnEvents+1 || taken[turnEvents].strand.name != "quiet:1" {
		t.Errorf("the quiet tenant is not in the first %d of %d", turnEvents+1, len(taken))
	}
}

// A batch carries what one call may; what is larger goes alone.
func TestLineBatches(t *testing.T) {
	l := newLine(OutageQueue{Items: 1000, Bytes: 1 << 30})
	for range 40 {
		if err := l.put("a", "a:1", testOp(3, time.Time{})); err != nil {
			t.Fatal(err)
		}
	}
	b := l.take(1<<20, pipelineCalls)[0]
	if b.events != 63 || len(b.ops) != 21 {
		t.Errorf("%d events of %d ops", b.events, len(b.ops))
	}
	large := testOp(1, time.Time{})
	large.size = 4 << 20
	if err := l.put("b", "b:1", large); err != nil {
		t.Fatal(err)
	}
	if err := l.put("b", "b:1", testOp(1, time.Time{})); err != nil {
		t.Fatal(err)
	}
	for _, got := range l.take(1<<20, pipelineCalls) {
		if got.strand.name == "b:1" && len(got.ops) != 1 {
			t.Errorf("the large one goes with %d others", len(got.ops)-1)
		}
	}
}

// What many strands wait with is shared by two pipelines where a second caller has nothing
// to do; what few wait with, and all of it where none is free, goes at once.
func TestManyStrandsAreSharedByTwoPipelines(t *testing.T) {
	for _, c := range []struct{ strands, idle, first int }{
		{16, 1, 8}, {9, 1, 5}, {7, 1, 7}, {16, 0, 16},
	} {
		caller := newCaller(t.Context(), nil, OutageQueue{Items: 100, Bytes: 1 << 20})
		caller.idle = c.idle
		for i := range c.strands {
			caller.put("acme", fmt.Sprint("r", i), testOp(1, time.Now()))
		}
		first, _ := caller.take()
		caller.idle = 0
		if len(first) != c.first {
			t.Errorf("of %d strands with %d callers idle the first pipeline has %d, want %d", c.strands, c.idle, len(first), c.first)
		}
		if len(first) == c.strands {
			continue
		}
		if second, _ := caller.take(); len(first)+len(second) != c.strands {
			t.Errorf("of %d strands %d and %d were taken", c.strands, len(first), len(second))
		}
	}
}

// One publication takes one piece of memory on its way, besides its text and its names.
func TestOnePublicationIsOnePieceOfMemory(t *testing.T) {
	var o *op
	if n := testing.AllocsPerRun(100, func() { o = newPublish(1) }); n != 1 || len(o.publish.batch) != 1 || len(o.publish.texts) != 1 {
		t.Errorf("%v pieces, room for %d", n, len(o.publish.batch))
	}
}
