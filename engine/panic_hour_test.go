package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// faulty is a handler that panics in one of ten calls. It keeps the offsets of
// what it has applied; Apply panics at offsets of its own choice, always the same,
// so that the test knows which are missing.
type faulty struct {
	random *rand.Rand // of all instances: the room makes one call at a time
	state  []uint64
}

func (f *faulty) maybe() {
	if f.random.IntN(10) == 0 {
		panic("one of ten")
	}
}

func guilty(offset uint64) bool { return offset%13 == 7 }

func (f *faulty) Publish(*room.Context, *room.Event) error { f.maybe(); return nil }
func (f *faulty) Join(*room.Context, *room.Member) error   { f.maybe(); return nil }
func (f *faulty) Leave(*room.Context, *room.Member)        { f.maybe() }
func (f *faulty) Tick(*room.Context)                       { f.maybe() }

func (f *faulty) Command(*room.Context, *room.Command) (any, error) { f.maybe(); return "done", nil }

func (f *faulty) Snapshot() (any, error) {
	f.maybe()
	if f.random.IntN(20) == 0 {
		return nil, errors.New("one of twenty")
	}
	return slices.Clone(f.state), nil
}

func (f *faulty) Restore(state codec.Data, _ codec.Position) error {
	f.maybe()
	return state.Unmarshal(&f.state)
}

func (f *faulty) Apply(_ *room.Context, e *room.Applied) {
	if guilty(e.Position.Offset) {
		panic("guilty")
	}
	f.state = append(f.state, e.Position.Offset)
}

// An hour in which one of ten calls of a handler panics costs the requests that
// made it panic and nothing else: members miss no event, the epoch stays, and the
// state that is told is that of a handler that never panicked, without the guilty
// events.
func TestHandlerThatPanicsForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 7))
		k := kind("game", func() room.Handler { return &faulty{random: random} })
		k.History = room.History{Events: 256, Age: 2 * time.Hour, Bytes: 8 << 20}
		k.SnapshotEvery = 50
		k.Tick = time.Minute
		e := start(t, func(c *Config) { c.Kinds = []room.Kind{k} })
		const name = "game:1"
		members := make([]*audit, 3)
		for i := range members {
			a := newAudit(t, e, fmt.Sprintf("acme/m%d", i), codec.Codec(i%2), memory.Options{})
			for a.dial(); a.rooms[name] == nil; {
				a.ask("join", name, "")
				a.read(0)
			}
			members[i] = a
		}
		epoch := members[0].rooms[name].pos.Epoch
		panicked := map[string]int{}
		states := 0
		for began := time.Now(); time.Since(began) < time.Hour && !t.Failed(); {
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
			a := members[random.IntN(len(members))]
			what := "publish"
			switch random.IntN(12) {
			case 0:
				what = "command"
				a.ask("command", name, `,"name":"do"`)
			case 1: // somebody new is told the state, and goes
				what = "join"
				guest := join(t, e, "acme/guest")
				r, _ := guest.ask(fmt.Sprintf(`{"t":"join","room":%q}`, name))
				if r.at("err.code") == "internal" {
					panicked[what]++
				}
				if data, ok := r.at("ok.data").([]any); ok {
					states++
					checkState(t, data, uint64(whole(r.at("ok.offset"))))
				}
				guest.conn.Cut()
				<-guest.conn.Done()
			default:
				a.ask("publish", name, `,"event":"message","data":"."`)
			}
			before := a.codes["internal"]
			a.read(0)
			panicked[what] += a.codes["internal"] - before
		}
		head := e.accepted(t, name)
		for _, a := range members {
			a.readTo(map[string]codec.Position{name: head})
			if a.left["stopped"] > 0 || a.rooms[name] == nil || len(a.resets) > 0 {
				t.Errorf("%s: left %v, reset %v", a.token, a.left, a.resets)
			}
			a.cut()
		}
		if head.Epoch != epoch {
			t.Errorf("epoch %s, was %s", head.Epoch, epoch)
		}
		for _, what := range []string{"publish", "command", "join"} {
			if panicked[what] == 0 {
				t.Errorf("no %s panicked", what)
			}
		}
		if states < 100 {
			t.Errorf("the state was told %d times only", states)
		}
		t.Log(head.Offset, "events; the state was told", states, "times; panicked:", panicked)
	})
}

// accepted publishes until an event is accepted.
func (e *Engine) accepted(t *testing.T, name string) codec.Position {
	for range 100 {
		if r, err := e.Publish(t.Context(), Event{Tenant: "acme", Room: name, Name: "message"}); err == nil {
			return r.Position
		}
	}
	t.Fatal("nothing is accepted")
	return codec.Position{}
}

func checkState(t *testing.T, data []any, offset uint64) {
	t.Helper()
	var want []any
	for o := uint64(1); o <= offset; o++ {
		if !guilty(o) {
			want = append(want, o)
		}
	}
	if fmt.Sprint(data) != fmt.Sprint(want) {
		t.Errorf("the state at %d has %d events, %d are right", offset, len(data), len(want))
	}
}
