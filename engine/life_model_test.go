package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// crowded is a handler that panics when it is told to, and says who is there.
type crowded struct{ *census }

func (c crowded) Publish(ctx *room.Context, e *room.Event) error {
	if e.Name == "panic" {
		panic("told to")
	}
	return c.census.Publish(ctx, e)
}

func (crowded) Join(_ *room.Context, m *room.Member) error {
	if text, _ := m.Data.Field("panic"); text == "true" {
		panic("told to")
	}
	return nil
}

// lives are clients who come, go, break off, come back, take each other over,
// renew their credentials and make handlers panic, at random. What each client
// was told is the model; when everything has settled the node must agree with it.
type lives struct {
	t      *testing.T
	e      *Engine
	random *rand.Rand
	rooms  []string
	census *census
	up     []*audit             // connected
	down   []*audit             // broken off
	lost   map[*audit]time.Time // when the connection ended, last
	done   map[string]int
}

func TestLivesOfSessionsAgainstAModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				census := &census{rooms: map[string][]string{}}
				kind := kind("crowd", func() room.Handler { return crowded{census} })
				kind.Presence = true
				e := start(t, func(c *Config) { c.Kinds = []room.Kind{kind} })
				l := &lives{
					t: t, e: e, random: rand.New(rand.NewPCG(seed, 1)), census: census,
					rooms: []string{"crowd:1", "crowd:2", "crowd:3"}, done: map[string]int{}, lost: map[*audit]time.Time{},
				}
				for range 25 {
					for range 1 + l.random.IntN(12) {
						l.act()
					}
					l.settle()
				}
				for _, a := range l.up {
					a.cut()
				}
				t.Log(l.done)
			})
		})
	}
}

// act is one step of somebody.
func (l *lives) act() {
	l.alive()
	n := l.random.IntN(100)
	switch {
	case len(l.up) == 0 || n < 12 && len(l.up)+len(l.down) < 14:
		l.step("begin")
		a := newAudit(l.t, l.e, fmt.Sprintf("acme/s%d", l.random.IntN(5)), codec.Codec(l.random.IntN(2)), memory.Options{})
		a.dial(l.some()...)
		l.up = append(l.up, a)
	case n < 24 && len(l.down) > 0:
		l.step("resume")
		i := l.random.IntN(len(l.down))
		a := l.down[i]
		l.down = slices.Delete(l.down, i, i+1)
		l.back(a)
		l.up = append(l.up, a)
	case n < 34:
		l.step("take over")
		a := l.any()
		old := a.c
		l.lost[a] = time.Now()
		l.back(a)
		if code := old.closed(); code != 4409 {
			a.fault("the older connection was closed %d", code)
		}
		<-old.conn.Done()
	case n < 46:
		l.step("break off")
		a := l.any()
		a.cut()
		l.lost[a] = time.Now()
		l.remove(a)
		l.down = append(l.down, a)
	case n < 52:
		l.step("end")
		a := l.any()
		a.c.conn.Close(1000)
		a.c.closed()
		<-a.c.conn.Done()
		l.remove(a)
	case n < 68:
		l.step("join")
		l.join(l.any(), "")
	case n < 78:
		l.step("leave")
		l.any().ask("leave", l.room(), "")
	case n < 88:
		l.step("publish")
		l.any().ask("publish", l.room(), `,"event":"message","data":1`)
	case n < 91:
		l.step("panic in publish")
		l.any().ask("publish", l.room(), `,"event":"panic","data":1`)
	case n < 93:
		l.step("panic in join")
		l.join(l.any(), `,"data":{"panic":true}`)
	default:
		l.step("renew")
		l.renew(l.any())
	}
}

func (l *lives) step(what string) { l.done[what]++ }

// alive drops those whose connection the node has closed by itself.
func (l *lives) alive() {
	l.up = slices.DeleteFunc(l.up, func(a *audit) bool { return a.failed })
}

func (l *lives) any() *audit { return l.up[l.random.IntN(len(l.up))] }
func (l *lives) remove(a *audit) {
	l.up = slices.DeleteFunc(l.up, func(b *audit) bool { return a == b })
}
func (l *lives) room() string       { return l.rooms[l.random.IntN(len(l.rooms))] }
func (l *lives) some() (s []string) { return l.rooms[:l.random.IntN(len(l.rooms)+1)] }

// back connects anew with the token that the client has; what it had not read is
// lost with the connection, and what it asked is not answered.
func (l *lives) back(a *audit) {
	session := a.session
	for name := range a.rooms {
		if l.random.IntN(4) == 0 {
			delete(a.rooms, name) // it does not name it again
		}
	}
	a.token = "acme/" + a.subject()
	a.dial()
	if expected := time.Since(l.lost[a]) < l.e.cfg.Limits.ResumeTTL; a.resumed != expected || (a.session == session) != expected {
		a.fault("resumed %t as %q, was %q", a.resumed, a.session, session)
	}
}

func (l *lives) join(a *audit, rest string) {
	name := l.room()
	sees := l.random.IntN(4) > 0
	data := ""
	if rest == "" && l.random.IntN(2) == 0 {
		data = fmt.Sprintf(`,"data":{"n":%d}`, l.random.IntN(3))
	}
	a.ask("join", name, fmt.Sprintf(`,"presence":%t%s%s`, sees, rest, data))
	a.asked[fmt.Sprint(a.id)] = question{t: "join", room: name, sees: sees}
}

// renew asks for credentials that cover some of the rooms.
func (l *lives) renew(a *audit) {
	type grant struct {
		Rooms string   `json:"rooms"`
		Allow []string `json:"allow"`
	}
	var grants []grant
	for _, name := range l.rooms {
		if l.random.IntN(3) > 0 {
			grants = append(grants, grant{name, []string{"join", "publish", "presence"}})
		}
	}
	text, _ := json.Marshal(grants)
	a.token = "acme/" + a.subject() + "/" + string(text)
	a.id++
	a.asked[fmt.Sprint(a.id)] = question{t: "token"}
	a.send(fmt.Sprintf(`{"t":"token","id":%d,"token":%q}`, a.id, a.token))
}

// settle lets everything come to rest and compares.
func (l *lives) settle() {
	l.t.Helper()
	synctest.Wait()
	time.Sleep(2 * l.e.cfg.Limits.PresenceGrace)
	synctest.Wait()
	want := map[string]map[string]int{} // sessions by subject by room
	for _, name := range l.rooms {
		want[name] = map[string]int{}
	}
	for _, a := range l.up {
		a.read(0) // all replies
		a.read(0) // and what was told since: up to a pong
		for name := range a.rooms {
			want[name][a.subject()]++
		}
	}
	for _, name := range l.rooms {
		for _, a := range l.up {
			m := a.rooms[name]
			if m == nil || !m.sees {
				continue
			}
			if got := slices.Sorted(maps.Keys(m.who.there)); !slices.Equal(got, slices.Sorted(maps.Keys(want[name]))) {
				a.fault("%s: sees %v, there are %v", name, got, want[name])
			}
		}
		if got := l.listed(name); fmt.Sprint(got) != fmt.Sprint(want[name]) {
			l.t.Errorf("%s: %v are listed, %v are there", name, got, want[name])
		}
	}
	for _, name := range l.rooms {
		l.e.publish(l.t, "acme", name, "who", nil)
		l.census.mu.Lock()
		got := l.census.rooms[name]
		l.census.mu.Unlock()
		var members []string
		for subject, sessions := range want[name] {
			members = append(members, slices.Repeat([]string{subject}, sessions)...)
		}
		slices.Sort(members)
		if !slices.Equal(got, members) {
			l.t.Errorf("%s: the handler has %v, the members are %v", name, got, members)
		}
	}
	if l.t.Failed() {
		for _, a := range l.up {
			a.cut()
		}
		l.t.FailNow()
	}
}

// listed is what the presence request says, a page of two at a time.
func (l *lives) listed(name string) map[string]int {
	watcher := join(l.t, l.e, "acme/watcher")
	defer func() { watcher.conn.Cut(); <-watcher.conn.Done() }()
	got := map[string]int{}
	after := ""
	for {
		f, _ := watcher.ask(fmt.Sprintf(`{"t":"presence","room":%q,"limit":2%s}`, name, after))
		members, ok := f.at("ok.members").([]any)
		if !ok {
			l.t.Fatalf("no page of members: %v", f)
		}
		for _, m := range members {
			f := frame(m.(map[string]any))
			got[f["subject"].(string)] = int(whole(f["sessions"]))
		}
		next, more := f.at("ok.after").(string)
		if !more {
			return got
		}
		after = fmt.Sprintf(`,"after":%q`, next)
	}
}
