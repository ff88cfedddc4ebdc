package session

import (
	"math/rand/v2"
	"testing"
	"time"
)

func (d due) String() string { return [...]string{"nothing", "ping", "give up"}[d] }

// Ping after 100 of silence either way, pong within 30.
func TestLiveness(t *testing.T) {
	type look struct {
		now, in, out int64
		want         due
		again        time.Duration
	}
	for _, c := range []struct {
		name  string
		looks []look
	}{
		{"looks again when the first silence could be long enough", []look{{40, 30, 20, nothing, 80}}},
		{"nothing was received", []look{{100, 0, 90, sendPing, 30}}},
		{"nothing was sent", []look{{100, 90, 0, sendPing, 30}}},
		{"both spoke", []look{{100, 60, 70, nothing, 60}}},
		{"one tick before", []look{{99, 0, 99, nothing, 1}}},
		{"no pong", []look{{100, 0, 0, sendPing, 30}, {120, 0, 100, nothing, 10}, {130, 0, 100, giveUp, 0}}},
		{"a timer that comes late gives no more time", []look{{100, 0, 0, sendPing, 30}, {500, 0, 100, giveUp, 0}}},
		{"anything received is a pong", []look{{100, 0, 0, sendPing, 30}, {130, 110, 100, nothing, 70}}},
		{"at the very instant of the ping", []look{{100, 0, 0, sendPing, 30}, {130, 100, 100, nothing, 70}}},
		{"what was received before the ping is none", []look{{100, 0, 0, sendPing, 30}, {130, 99, 100, giveUp, 0}}},
		{"a client that only reads is pinged again and again", []look{
			{100, 0, 100, sendPing, 30}, {130, 105, 100, nothing, 70}, {200, 105, 100, sendPing, 30}, {230, 205, 200, nothing, 70}}},
		{"a client that only writes too, since the server has been silent", []look{
			{100, 99, 0, sendPing, 30}, {130, 129, 100, nothing, 70}, {200, 199, 100, sendPing, 30}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l liveness
			limits := Limits{Ping: 100, Pong: 30}
			for i, k := range c.looks {
				what, again := l.check(&limits, k.now, k.in, k.out)
				if what != k.want || again != k.again {
					t.Fatalf("look %d at %d: %v, again in %d; want %v, %d", i, k.now, what, again, k.want, k.again)
				}
			}
		})
	}
}

// However the connection behaves: a client that answers is never given up, one
// that does not is, between ping and ping + pong + one look after its last word.
func TestLivenessAgainstRandomClients(t *testing.T) {
	const ping, pong = 100, 30
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 6))
		var l liveness
		limits := Limits{Ping: ping, Pong: pong}
		var now, in, out, dies int64
		dies = int64(random.IntN(2000))
		for {
			what, again := l.check(&limits, now, in, out)
			if what == giveUp {
				if now-in < pong {
					t.Fatalf("seed %d: given up %d after its last word", seed, now-in)
				}
				if dies > now {
					t.Fatalf("seed %d: given up at %d, answers until %d", seed, now, dies)
				}
				break
			}
			if now > dies+2*ping+2*pong {
				t.Fatalf("seed %d: silent since %d, still there at %d", seed, in, now)
			}
			if again <= 0 {
				t.Fatalf("seed %d: looks again in %d", seed, again)
			}
			next := now + int64(again)
			if what == sendPing {
				out = now
				if answer := now + int64(random.IntN(pong)); answer < dies {
					in = max(in, answer)
				}
			}
			if at := now + int64(random.IntN(int(again)+1)); at < dies && random.IntN(2) == 0 {
				in = max(in, at)
			}
			if at := now + int64(random.IntN(int(again)+1)); random.IntN(2) == 0 {
				out = max(out, at)
			}
			now = next
		}
	}
}
