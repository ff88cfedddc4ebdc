package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

func virtual(t *testing.T, test func(*testing.T)) { synctest.Test(t, test) }

const sees = `,"presence":true`

// B139, soketi/soketi#19, beyondcode/laravel-websockets#297: a second tab was
// another join, and closing one tab a leave. Three connections of one subject,
// opened and closed in every order.
func TestB139_TabsAreOneMember(t *testing.T) {
	overCodecs(t, func(t *testing.T, in codec.Codec) {
		e := withPresence(t, nil)
		other := watch(t, e, in, "acme/other", sees)
		for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			var tabs [3]*onlooker
			for i := range tabs {
				fields := `,"data":"same"`
				if i == 1 {
					fields += sees
				}
				tabs[i] = watch(t, e, in, "acme/a", fields)
				other.expect(fmt.Sprint("tab ", i, " opens"), []string{"+a", "", ""}[i])
			}
			if n := other.answer(`{"t":"presence","room":"seen:1"}`).at("ok.members.0.sessions"); fmt.Sprint(n) != "3" {
				t.Errorf("%v sessions are listed", n)
			}
			for i, tab := range order {
				tabs[tab].closeWith(1000)
				other.expect(fmt.Sprint("tab ", tab, " closes, ", i), []string{"", "", "-a"}[i])
			}
		}
	})
}

// B142, sockudo/sockudo#75: no leave was sent for a connection that broke off,
// because its socket still counted itself.
func TestB142_CutConnectionLeavesOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		grace time.Duration
		end   func(*client)
		after time.Duration // from the end on
	}{
		{"cut, with a grace", 5 * time.Second, func(c *client) { c.conn.Cut() }, 5 * time.Second},
		{"cut, without a grace", -1, func(c *client) { c.conn.Cut() }, 0},
		{"silent, without a grace", -1, func(*client) {}, 1900 * time.Millisecond}, // ping 2 s after its last word, pong within 1
		{"silent, with a grace", 5 * time.Second, func(*client) {}, 6900 * time.Millisecond},
		{"closed, whatever the grace", 5 * time.Second, func(c *client) { c.conn.Close(1001) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				e := withPresence(t, func(cfg *Config) {
					cfg.Limits.PresenceGrace = c.grace
					cfg.Limits.Ping, cfg.Limits.PongTimeout = 2*time.Second, time.Second
				})
				other := watch(t, e, codec.JSON, "acme/other", sees)
				lost := dial(t, e, codec.JSON, memory.Options{})
				lost.hello("acme/lost", `{"room":"seen:1"}`)
				other.expect("it is there", "+lost")
				began := time.Now()
				c.end(lost)
				var at time.Time
				for at.IsZero() && time.Since(began) < time.Minute {
					time.Sleep(10 * time.Millisecond)
					other.mu.Lock()
					if slices.Contains(other.told, "-lost") {
						at = other.at[len(other.at)-1]
					}
					other.mu.Unlock()
				}
				if took := at.Sub(began) - c.after; at.IsZero() || took < 0 || took > 300*time.Millisecond {
					t.Errorf("left after %v, want %v", at.Sub(began), c.after)
				}
				time.Sleep(20 * time.Second)
				if told := other.look(); strings.Count(told, "lost") > 2 {
					t.Errorf("told %q", told)
				}
			})
		})
	}
}

// A session that comes back within the grace, perhaps while its old connection is
// still there, announces nothing; one that comes back later joins anew.
func TestPresenceOverAResume(t *testing.T) {
	overCodecs(t, func(t *testing.T, in codec.Codec) {
		e := withPresence(t, func(c *Config) { c.Limits.PresenceGrace = 5 * time.Second })
		other := watch(t, e, in, "acme/other", sees)
		c := dial(t, e, in, memory.Options{})
		w := c.hello("acme/a", `{"room":"seen:1","data":1}`)
		other.expect("a joins", "+a")
		for _, cut := range []bool{true, false, true} {
			if cut {
				c.conn.Cut()
				time.Sleep(4 * time.Second)
			}
			old := c
			c, w = resume(t, e, in, "acme/a", w["resume"], `{"room":"seen:1","data":1}`)
			if w["resumed"] != true {
				t.Fatalf("not resumed: %v", w)
			}
			<-old.conn.Done()
			time.Sleep(10 * time.Second)
			other.expect("a is back", "")
		}
		c.conn.Cut()
		time.Sleep(4 * time.Second)
		c, w = resume(t, e, in, "acme/a", w["resume"], `{"room":"seen:1","data":2}`)
		other.expect("a is back with other data", "~a")
		old := c
		c, _ = resume(t, e, in, "acme/a", w["resume"])
		old.closed()
		time.Sleep(4 * time.Second)
		other.expect("it resumed without the room, and the grace goes on", "")
		other.expect("until it ends", "-a")
		c.send(`{"id":1,"t":"join","room":"seen:1"}`)
		other.expect("a joins anew", "+a")
	})
}

// data is that of the most recent join still there; one session's second join
// replaces its first.
func TestPresenceDataIsTheMostRecentJoins(t *testing.T) {
	overCodecs(t, func(t *testing.T, in codec.Codec) {
		e := withPresence(t, nil)
		other := watch(t, e, in, "acme/other", sees)
		first := watch(t, e, in, "acme/a", `,"data":1`)
		other.expect("the first", "+a")
		second := watch(t, e, in, "acme/a", sees+`,"data":2`)
		if got := second.data("a"); got != "2" {
			t.Errorf("its own join shows data %v", got)
		}
		other.expect("the second, with other data", "~a")
		first.answer(`{"t":"join","room":"seen:1","data":3}`)
		other.expect("the first again", "~a")
		if got := other.data("a") + second.data("a"); got != "33" {
			t.Errorf("data %v", got)
		}
		first.answer(`{"t":"leave","room":"seen:1"}`)
		other.expect("the first leaves", "~a")
		if got := other.data("a"); got != "2" {
			t.Errorf("data %v", got)
		}
		second.closeWith(1000)
		other.expect("the second leaves", "-a")
	})
}

func TestPresenceDataIsBoundedAndTheHandlersWord(t *testing.T) {
	virtual(t, func(t *testing.T) {
		large, small := `"`+strings.Repeat("x", 1023)+`"`, `"`+strings.Repeat("x", 1022)+`"`
		asked := 0
		e := start(t, func(c *Config) {
			handled := kind("handled", one(&puppet{join: func(_ *room.Context, m *room.Member) error {
				asked++
				switch m.Subject {
				case "large":
					m.Data, _ = codec.NewData(strings.Repeat("x", 2000))
				case "small":
					m.Data, _ = codec.NewData("from the handler")
				}
				return nil
			}}))
			handled.Presence = true
			c.Kinds = []room.Kind{seenKind, handled, kind("blind", nil)}
		})
		c := join(t, e, "acme/a")
		for _, q := range []struct{ room, data, want string }{
			{"seen:1", large, "too_large"},
			{"seen:1", small, ""},
			{"blind:1", large, ""},
			{"handled:1", large, "too_large"},
		} {
			r, _ := c.ask(`{"t":"join","room":"` + q.room + `","data":` + q.data + `}`)
			if code, _ := r.at("err.code").(string); code != q.want {
				t.Errorf("%s with %d bytes: %v", q.room, len(q.data), r)
			}
		}
		if asked != 0 {
			t.Error("the handler was asked about data that is too large")
		}
		if r, _ := join(t, e, "acme/large").ask(`{"t":"join","room":"handled:1"}`); r.at("err.code") != "too_large" {
			t.Errorf("what the handler made of it is too large: %v", r)
		}
		r, _ := join(t, e, "acme/small").ask(`{"t":"join","room":"handled:1","presence":true,"data":1}`)
		if r.at("ok.members.0.data") != "from the handler" {
			t.Errorf("members: %v", r)
		}
	})
}

// Who may see, and ask: the right, then existence, then whether the kind has it.
func TestPresenceRights(t *testing.T) {
	e := start(t, func(c *Config) { c.Kinds = []room.Kind{seenKind, kind("blind", nil)} })
	all := `[{"rooms":"*","allow":["join","presence"]}]`
	for _, c := range []struct{ name, grants, request, want string }{
		{"join without the right to see", `[{"rooms":"*","allow":["join"]}]`, `{"t":"join","room":"seen:1","presence":true}`, "forbidden"},
		{"join without wanting to see", `[{"rooms":"*","allow":["join"]}]`, `{"t":"join","room":"seen:1"}`, ""},
		{"join in a kind without", all, `{"t":"join","room":"blind:1","presence":true}`, "unsupported"},
		{"join of no kind, without the right", `[{"rooms":"*","allow":["join"]}]`, `{"t":"join","room":"none:1","presence":true}`, "forbidden"},
		{"join", all, `{"t":"join","room":"seen:1","presence":true}`, ""},
		{"ask without the right", `[{"rooms":"*","allow":["join"]}]`, `{"t":"presence","room":"seen:1"}`, "forbidden"},
		{"ask about another room than granted", `[{"rooms":"seen:2","allow":["presence"]}]`, `{"t":"presence","room":"seen:1"}`, "forbidden"},
		{"ask about no kind, without the right", `[{"rooms":"seen:*","allow":["presence"]}]`, `{"t":"presence","room":"none:1"}`, "forbidden"},
		{"ask about no kind", all, `{"t":"presence","room":"none:1"}`, "not_found"},
		{"ask in a kind without", all, `{"t":"presence","room":"blind:1"}`, "unsupported"},
		{"ask, without being there", `[{"rooms":"*","allow":["presence"]}]`, `{"t":"presence","room":"seen:1"}`, ""},
	} {
		r, _ := join(t, e, "acme/a/"+c.grants).ask(c.request)
		if code, _ := r.at("err.code").(string); code != c.want {
			t.Errorf("%s: %v, want %q", c.name, r, c.want)
		}
	}
}

// The lists of several rooms are left out of a welcome that they do not fit
// together.
func TestWelcomeIsNoLargerThanAFrame(t *testing.T) {
	overCodecs(t, func(t *testing.T, in codec.Codec) {
		e := withPresence(t, func(c *Config) { c.Limits.MaxMessageBytes, c.Limits.MaxFrameBytes = 1<<10, 10<<10 })
		for i := range 10 {
			c := dial(t, e, in, memory.Options{})
			data := `,"data":"` + strings.Repeat("x", 300) + `"}`
			c.hello(fmt.Sprint("acme/m", i), `{"room":"seen:1"`+data, `{"room":"seen:2"`+data, `{"room":"seen:3"`+data, `{"room":"seen:4"`+data)
		}
		look := func(n int) frame {
			var rooms []string
			for i := range n {
				rooms = append(rooms, fmt.Sprintf(`{"room":"seen:%d","presence":true}`, i+1))
			}
			return dial(t, e, in, memory.Options{}).hello("acme/a", rooms...)
		}
		if list, _ := look(1).at("rooms.0.ok.members").([]any); len(list) != 11 {
			t.Errorf("one room: %d members", len(list))
		}
		w := look(4)
		for i := range 4 {
			ok, _ := w.at(fmt.Sprint("rooms.", i, ".ok")).(map[string]any)
			if ok["members"] != nil || fmt.Sprint(ok["count"]) != "11" || ok["seq"] == nil {
				t.Errorf("room %d of four: %v", i, ok)
			}
		}
	})
}

// What a page shows is comparable with what frames have told.
func TestPresencePageIsOfTheSameEpochAndNotOlder(t *testing.T) {
	virtual(t, func(t *testing.T) {
		e := withPresence(t, nil)
		a := watch(t, e, codec.JSON, "acme/a", sees)
		for i := range 5 {
			watch(t, e, codec.JSON, fmt.Sprint("acme/b", i), "")
			a.look()
			r := a.answer(`{"t":"presence","room":"seen:1"}`)
			if a.mu.Lock(); fmt.Sprint(r.at("ok.pe")) != a.pe || fmt.Sprint(r.at("ok.seq")) != a.seq {
				t.Errorf("page at %v %v, frames at %s %s", r.at("ok.pe"), r.at("ok.seq"), a.pe, a.seq)
			}
			a.mu.Unlock()
		}
	})
}

// Above the limit the number alone is told, at most once a second; below nine
// tenths of it a full comes first.
func TestPresenceAboveItsLimit(t *testing.T) {
	overCodecs(t, func(t *testing.T, in codec.Codec) {
		e := withPresence(t, func(c *Config) {
			seen := seenKind
			seen.PresenceLimit = 20
			c.Kinds = []room.Kind{seen}
		})
		first := watch(t, e, in, "acme/m00", sees)
		all := []*onlooker{first}
		for i := 1; i < 20; i++ {
			all = append(all, watch(t, e, in, fmt.Sprintf("acme/m%02d", i), sees))
		}
		first.look()
		if n := len(strings.Fields(first.sees())); n != 20 {
			t.Fatalf("sees %d", n)
		}
		last := watch(t, e, in, "acme/m20", sees)
		if _, listed := last.knows(); listed || last.sees() != "21" {
			t.Errorf("joined above the limit: sees %s", last.sees())
		}
		first.expect("one too many", "count 21")
		last.expect("whose join it was", "")
		began := time.Now()
		for range 30 { // comes and goes
			last.answer(`{"t":"leave","room":"seen:1"}`)
			time.Sleep(50 * time.Millisecond)
			last.answer(`{"t":"join","room":"seen:1","presence":true}`)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(1100 * time.Millisecond)
		first.mu.Lock()
		if n, most := len(first.at), int(time.Since(began)/time.Second)+1; n == 0 || n > most {
			t.Errorf("%d frames in %v", n, time.Since(began))
		}
		first.mu.Unlock()
		first.look()
		all = append(all, last)
		for n := 20; n >= 18; n-- {
			all[n].closeWith(1000)
			first.expect("one leaves", fmt.Sprint("count ", n))
		}
		all[17].closeWith(1000)
		first.expect("below nine tenths", "full 17")
		all[16].closeWith(1000)
		first.expect("and on", "-m16")
	})
}

// A member whose queue has no place for a frame is given one full once it has.
func TestPresenceOfAMemberThatDoesNotRead(t *testing.T) {
	virtual(t, func(t *testing.T) {
		e := withPresence(t, func(c *Config) { c.Limits.SessionQueueItems, c.Limits.Ping = 8, time.Hour })
		c := dial(t, e, codec.JSON, memory.Options{Window: 1, WriteTimeout: time.Hour})
		w := c.hello("acme/slow", `{"room":"seen:1"`+sees+`}`)
		for i := range 40 { // each is a frame
			o := watch(t, e, codec.JSON, fmt.Sprint("acme/m", i), "")
			time.Sleep(time.Second)
			if i%2 == 0 {
				o.closeWith(1000)
				time.Sleep(time.Second)
			}
		}
		slow := follow(c, w)
		told := slow.look() + " " + slow.look()
		if n := strings.Count(told, "full"); n != 1 {
			t.Errorf("told %q", told)
		}
		if n := len(strings.Fields(slow.sees())); n != 21 {
			t.Errorf("sees %s", slow.sees())
		}
		watch(t, e, codec.JSON, "acme/later", "")
		slow.expect("and then it is told changes again", "+later")
	})
}

// However members join, leave, drop and come back, in several rooms' worth of
// tabs, each that looks is told a sequence that a client can follow, and ends up
// with who is there.
func TestPresenceAgainstWhatIsTrue(t *testing.T) {
	for seed := range uint64(8) {
		virtual(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			own := newPuppetPresence()
			e := withPresence(t, func(c *Config) {
				c.Presence = own
				c.Limits.PresenceGrace = 3 * time.Second
				if seed%2 == 1 {
					seen := seenKind
					seen.PresenceLimit = 5
					c.Kinds = []room.Kind{seen}
				}
			})
			var open []*onlooker
			in := map[*onlooker]string{} // "", or how it joined
			for range 250 {
				if random.IntN(3) == 0 {
					time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
				}
				if seed%4 >= 2 && random.IntN(20) == 0 {
					own.forget()
				}
				if seed%4 == 3 && random.IntN(10) == 0 {
					own.set(random.IntN(3) == 0, random.IntN(3) == 0)
				}
				fields := fmt.Sprintf(`,"data":%d`, random.IntN(2)) + []string{"", sees, sees}[random.IntN(3)]
				if len(open) == 0 || len(open) < 14 && random.IntN(3) == 0 {
					o := watch(t, e, codec.Codec(random.IntN(2)), fmt.Sprint("acme/u", random.IntN(8)), fields)
					open = append(open, o)
					in[o] = fields
					continue
				}
				i := random.IntN(len(open))
				o := open[i]
				switch k := random.IntN(8); {
				case k < 2:
					o.closeWith(1000)
				case k == 2:
					o.conn.Cut()
					<-o.conn.Done()
				case in[o] != "" && k < 5:
					o.request(`{"t":"leave","room":"seen:1"}`)
					in[o] = ""
					continue
				default:
					o.request(`{"t":"join","room":"seen:1"` + fields + `}`)
					in[o] = fields
					continue
				}
				delete(in, o)
				open = slices.Delete(open, i, i+1)
			}
			own.set(false, false)
			time.Sleep(20 * time.Second)
			there := map[string]bool{}
			for o, how := range in {
				if how != "" {
					there[o.subject] = true
				}
			}
			for o, how := range in {
				told, listed := o.knows()
				if wants := strings.HasSuffix(how, sees); !wants || !told {
					if wants || told && how != "" {
						t.Errorf("seed %d: %s joined with %q, and was told of others: %v", seed, o.subject, how, told)
					}
					continue
				}
				want := fmt.Sprint(len(there))
				if listed {
					want = ""
					for i := range 8 {
						if s := fmt.Sprint("u", i); there[s] {
							want += " " + s
						}
					}
				}
				if !listed && seed%2 == 0 {
					t.Errorf("seed %d: without a list, far from the limit", seed)
				}
				if got := o.sees(); got != strings.TrimSpace(want) {
					t.Errorf("seed %d: %s sees %q, there is %q", seed, o.subject, got, want)
				}
			}
		})
	}
}

// Many who look, so that a pass over them is in slices, with joins and leaves in
// between, and more marks than changes are told since.
func TestPresenceOfManyWhoLook(t *testing.T) {
	virtual(t, func(t *testing.T) {
		e := withPresence(t, nil)
		const n = 150
		var all [n]*onlooker
		for i := range all {
			all[i] = watch(t, e, codec.JSON, fmt.Sprintf("acme/m%03d", i), sees)
		}
		random := rand.New(rand.NewPCG(1, 5))
		fulls := 0
		for range 6 {
			time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			for _, i := range random.Perm(n)[:60] {
				all[i].request(`{"t":"leave","room":"seen:1"}`)
				all[i].request(`{"t":"join","room":"seen:1","presence":true,"data":` + fmt.Sprint(random.IntN(3)) + `}`)
			}
		}
		for _, o := range all {
			fulls += strings.Count(o.look(), "full")
			if n := len(strings.Fields(o.sees())); n != len(all) {
				t.Errorf("%s sees %d: %s", o.subject, n, o.sees())
			}
			for i := range all {
				subject := fmt.Sprintf("m%03d", i)
				if got, want := o.data(subject), all[i].data(subject); got != want {
					t.Fatalf("%s sees %s with %q, itself with %q", o.subject, subject, got, want)
				}
			}
		}
		t.Log(fulls, "whole lists")
	})
}

// A list says how many sessions a member has, also those that changed nothing else.
func TestPresenceListsHaveTheNumberOfSessions(t *testing.T) {
	virtual(t, func(t *testing.T) {
		e := withPresence(t, nil)
		for range 3 {
			watch(t, e, codec.JSON, "acme/a", "")
		}
		w := dial(t, e, codec.JSON, memory.Options{}).hello("acme/b", `{"room":"seen:1","presence":true}`)
		if n := w.at("rooms.0.ok.members.0.sessions"); fmt.Sprint(n) != "3" {
			t.Errorf("%v sessions: %v", n, w.at("rooms.0.ok"))
		}
	})
}

// A list that does not fit beside the room's snapshot comes after it.
func TestPresenceListThatDoesNotFitBesideTheSnapshot(t *testing.T) {
	virtual(t, func(t *testing.T) {
		large := strings.Repeat("x", 500<<10)
		k := kind("seen", one(&puppet{snapshot: func() (any, error) { return large, nil }}))
		k.Presence = true
		e := withPresence(t, func(c *Config) { c.Kinds = []room.Kind{k} })
		for i := range 12 {
			c := dial(t, e, codec.JSON, memory.Options{Window: 2 << 20})
			c.hello(fmt.Sprint("acme/m", i), `{"room":"seen:1","data":"`+strings.Repeat("x", 1000)+`"}`)
		}
		c := join(t, e, "acme/a")
		r, _ := c.ask(`{"t":"join","room":"seen:1","presence":true}`)
		if r.at("ok.data") != large || r.at("ok.members") != nil || fmt.Sprint(r.at("ok.count")) != "13" {
			t.Errorf("joined with %v members, count %v", r.at("ok.members"), r.at("ok.count"))
		}
		if f := c.until("presence"); f["full"] != true || len(f["members"].([]any)) != 13 {
			t.Errorf("then %v", f)
		}
	})
}

// Who comes and goes while changes are gathered is not told of, and nobody needs a
// whole list for it later.
func TestPresenceThatComesAndGoesIsNotTold(t *testing.T) {
	virtual(t, func(t *testing.T) {
		e := withPresence(t, nil)
		other := watch(t, e, codec.JSON, "acme/other", sees)
		for range 3 {
			watch(t, e, codec.JSON, "acme/brief", "").closeWith(1000)
			other.expect("it came and went", "")
		}
		watch(t, e, codec.JSON, "acme/a", "")
		other.expect("one stays", "+a")
	})
}

// While members are kept for the grace their room is; then nothing of it is left.
func TestRoomOutlivesItsLostMembers(t *testing.T) {
	virtual(t, func(t *testing.T) {
		own := newPuppetPresence()
		e := withPresence(t, func(c *Config) {
			c.Presence = own
			seen := seenKind
			seen.Linger = time.Second
			c.Kinds = []room.Kind{seen}
			c.Limits.PresenceGrace = 10 * time.Second
		})
		watch(t, e, codec.JSON, "acme/a", sees).conn.Cut()
		time.Sleep(5 * time.Second)
		if n := e.rooms(); n != 1 {
			t.Fatalf("%d rooms within the grace", n)
		}
		if r, _ := join(t, e, "acme/b").ask(`{"t":"presence","room":"seen:1"}`); fmt.Sprint(r.at("ok.count")) != "1" {
			t.Errorf("within the grace: %v", r)
		}
		time.Sleep(7 * time.Second)
		if n := e.rooms(); n != 0 || len(own.watchers) != 0 {
			t.Errorf("%d rooms and %d watchers after it", n, len(own.watchers))
		}
		if n := e.wheel.Armed(); n > 3 {
			t.Errorf("%d timers are set", n)
		}
	})
}

// A room that is stopped, or an engine that is closed, leaves nobody behind.
func TestPresenceEndsWithItsRoom(t *testing.T) {
	virtual(t, func(t *testing.T) {
		own := newPuppetPresence()
		fail := kind("frail", one(&puppet{publish: func(*room.Context, *room.Event) error { panic("handler") }}))
		fail.Presence = true
		e := withPresence(t, func(c *Config) {
			c.Presence = own
			c.Kinds = []room.Kind{seenKind, fail}
		})
		c := join(t, e, "acme/a", "frail:1", "seen:1")
		watch(t, e, codec.JSON, "acme/lost", "").conn.Cut()
		time.Sleep(time.Second)
		want := func(room string, n int) {
			t.Helper()
			if got := own.count(codec.Topic{Tenant: "acme", Room: room}); got != n {
				t.Errorf("%s: %d present, want %d", room, got, n)
			}
		}
		want("frail:1", 1)
		want("seen:1", 2)
		for stopped := false; !stopped; {
			r, _ := c.ask(`{"t":"publish","room":"frail:1","event":"message","data":1}`)
			stopped = r.at("err.code") != "internal"
		}
		time.Sleep(time.Second)
		want("frail:1", 0)
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		want("seen:1", 0)
	})
}
