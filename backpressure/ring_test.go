package backpressure

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Against a slice.
func TestRingModel(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var r Ring[int]
		var want []int
		bias := 4
		for i := range 5000 {
			if i%500 == 0 {
				bias = 2 + rnd.IntN(6) // fills, then empties
			}
			switch op := rnd.IntN(10); {
			case op < bias:
				r.Push(i)
				want = append(want, i)
			case op == 8:
				r.PushFront(i)
				want = slices.Insert(want, 0, i)
			case op == 9 && len(want) > 0:
				k := rnd.IntN(len(want))
				r.Set(k, -i)
				want[k] = -i
			default:
				v, ok := r.Pop()
				if ok != (len(want) > 0) || ok && v != want[0] {
					t.Fatalf("seed %d: Pop %d, %v; want %v", seed, v, ok, want)
				}
				if ok {
					want = want[1:]
				}
			}
			if r.Len() != len(want) {
				t.Fatalf("seed %d: Len %d, want %d", seed, r.Len(), len(want))
			}
			if front := r.Front(); (front != nil) != (len(want) > 0) || front != nil && *front != want[0] {
				t.Fatalf("seed %d: Front %v, want the first of %v", seed, front, want)
			}
			if len(want) > 0 {
				if k := rnd.IntN(len(want)); r.At(k) != want[k] {
					t.Fatalf("seed %d: At(%d) = %d, want %d", seed, k, r.At(k), want[k])
				}
			}
			if len(r.buf) > max(ringKeep, 4*max(len(want), 1)) && len(want) == 0 {
				t.Fatalf("seed %d: an empty ring keeps %d slots", seed, len(r.buf))
			}
		}
	}
}

func TestRingMemory(t *testing.T) {
	var r Ring[*int]
	if r.buf != nil {
		t.Error("memory before the first Push")
	}
	for range ringKeep + 1 {
		r.Push(new(int))
	}
	for r.Len() > 0 {
		r.Pop()
	}
	if r.buf != nil {
		t.Errorf("grown large and empty, it keeps %d slots", len(r.buf))
	}
	for range ringKeep {
		r.Push(new(int))
	}
	for r.Len() > 0 {
		r.Pop()
	}
	if len(r.buf) != ringKeep {
		t.Errorf("%d slots after one batch, want %d kept", len(r.buf), ringKeep)
	}
	for _, p := range r.buf {
		if p != nil {
			t.Fatal("a popped element is still held")
		}
	}
}

func TestRingIndexOutOfRangePanics(t *testing.T) {
	var r Ring[int]
	r.Push(1)
	for _, i := range []int{-1, 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("At(%d) did not panic", i)
				}
			}()
			r.At(i)
		}()
	}
}

func BenchmarkRing(b *testing.B) {
	var r Ring[int]
	b.ReportAllocs()
	for b.Loop() {
		r.Push(1)
		r.Push(2)
		r.Pop()
		r.Pop()
	}
}

// BenchmarkRingReference is the same through a buffered channel.
func BenchmarkRingReference(b *testing.B) {
	c := make(chan int, 4)
	b.ReportAllocs()
	for b.Loop() {
		c <- 1
		c <- 2
		<-c
		<-c
	}
}
