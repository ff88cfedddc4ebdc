package ws

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestOutboxOrder(t *testing.T) {
	var o outbox
	if !o.claim() || o.claim() {
		t.Fatal("not exactly one owner")
	}
	o.close = closeFrame(1000, "")
	o.ping = true
	o.pong = []byte("older")
	o.pong = []byte("newest")
	o.write = []byte("write")
	for i, want := range []string{"write", "\x8A\x06newest", "\x89\x00", "\x88\x02\x03\xE8"} {
		p, ok := o.take()
		if !ok || string(p.b) != want || (p.kind == kindWrite) != (i == 0) {
			t.Fatalf("piece %d: %q (%v), want %q", i, p.b, p.kind, want)
		}
	}
	o.ping, o.pong = true, []byte("after the close")
	if p, ok := o.take(); ok || o.owned {
		t.Fatalf("%q after the close, owned %v", p.b, o.owned)
	}
}

func TestDeadOutboxHasNoOwner(t *testing.T) {
	o := outbox{dead: true, write: []byte("x")}
	if o.claim() {
		t.Error("claimed")
	}
	if _, ok := o.take(); ok {
		t.Error("taken from")
	}
}

// Whatever is left in whatever order: an owner takes all of it before it stops
// being one, and nothing remains that nobody would write.
func TestOutboxForgetsNothing(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var o outbox
		var log []string
		left := map[string]bool{}
		for range 100 {
			switch rnd.IntN(5) {
			case 0:
				if o.write == nil {
					o.write, left["write"] = []byte("w"), true
				}
			case 1:
				o.pong, left["pong"] = []byte{}, true
			case 2:
				o.ping, left["ping"] = true, true
			case 3:
				o.records, left["records"] = true, true
			}
			if o.claim() || rnd.IntN(2) == 0 {
				p, ok := o.take()
				log = append(log, fmt.Sprintf("%q", p.b))
				switch {
				case !ok && len(left) > 0:
					t.Fatalf("seed %d: %v was left without an owner after %v", seed, left, log)
				case !ok:
				case p.kind == kindWrite:
					delete(left, "write")
				case len(p.b) == 0:
					delete(left, "records")
				case p.b[0] == bitFin|opPong:
					delete(left, "pong")
				default:
					delete(left, "ping")
				}
			}
			if !o.owned && len(left) > 0 {
				t.Fatalf("seed %d: no owner for %v", seed, left)
			}
		}
	}
}
