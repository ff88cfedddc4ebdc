package engine

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/auth"
	membridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// A resumed session keeps its id, each welcome brings the token for the next time,
// and it is in exactly the rooms that its hello names.
func TestResumeKeepsTheSession(t *testing.T) {
	for _, in := range bothCodecs {
		synctest.Test(t, func(t *testing.T) { keepsTheSession(t, in) })
	}
}

func keepsTheSession(t *testing.T, in codec.Codec) {
	d := deploy(t)
	e := d.node(t, "one", &faults{}, nil)
	c := dial(t, e, in, memory.Options{})
	w := c.hello("acme/alice", "chat:1", "chat:2")
	if w["resumed"] != false || fmt.Sprint(w["resume_ttl_ms"]) != "300000" {
		t.Fatalf("%v: first welcome: %v", in, w)
	}
	id, epoch := w["session"], w.at("rooms.0.ok.epoch")
	tokens := map[any]bool{w["resume"]: true}
	for generation := uint64(2); generation < 6; generation++ {
		c.cut()
		e.publish(t, "acme", "chat:1", "message", generation)
		e.publish(t, "acme", "chat:2", "message", generation)
		c, w = resume(t, e, in, "acme/alice", w["resume"],
			fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":%d}`, epoch, generation-2))
		if w["resumed"] != true || w["session"] != id || w.at("rooms.0.ok.recovered") != true {
			t.Fatalf("%v: welcome: %v", in, w)
		}
		if w["resume"] == nil || tokens[w["resume"]] {
			t.Errorf("%v: the same token again", in)
		}
		tokens[w["resume"]] = true
		synctest.Wait()
		if o, found := d.holder("acme", fmt.Sprint(id)); !found || o.Node != "one" || o.Generation != generation {
			t.Errorf("%v: held by %v %v, want generation %d", in, o, found, generation)
		}
		if f := c.next(); f["room"] != "chat:1" || f.offset() != generation-1 {
			t.Errorf("%v: after the welcome: %v", in, f)
		}
		if r, before := c.ask(`{"t":"leave","room":"chat:2"}`); r.at("err.code") != "not_joined" || len(before) > 0 {
			t.Errorf("%v: in a room that was not named: %v, before it %v", in, r, before)
		}
	}
}

// Source: derived from PROTOCOL.md 7; nothing that a thief tries changes anything for the
// owner, and nothing in the answers tells what was wrong.
func TestResumeTokenThatIsNotTakenTouchesNothing(t *testing.T) {
	foreignKey, err := auth.NewSealer([][]byte{[]byte(strings.Repeat("x", 32))})
	if err != nil {
		t.Fatal(err)
	}
	var answers []string
	for _, c := range []struct {
		name, token string
		resume      func(replayed, own, session string) string
		cause       string
	}{
		{"replayed", "acme/alice", func(replayed, _, _ string) string { return replayed }, "outdated"},
		{"stolen by another subject", "acme/mallory", func(_, own, _ string) string { return own }, "subject"},
		{"stolen by another tenant", "evil/alice", func(_, own, _ string) string { return own }, "tenant"},
		{"forged", "acme/alice", func(_, _, session string) string {
			return foreignKey.Seal(auth.Resume{Tenant: "acme", Subject: "alice", Session: session, Generation: 2}, time.Now())
		}, "invalid"},
		{"truncated", "acme/alice", func(_, own, _ string) string { return own[:len(own)-1] }, "invalid"},
		{"altered", "acme/alice", func(_, own, _ string) string {
			last := byte('A')
			if own[20] == last {
				last = 'B'
			}
			return own[:20] + string(last) + own[21:]
		}, "invalid"},
		{"expired", "acme/alice", func(_, _, session string) string {
			return sealed(t, deploymentKey, session, 2, -25*time.Hour)
		}, "invalid"},
		{"of a session that there is not", "acme/alice", func(string, string, string) string {
			return sealed(t, deploymentKey, "nobody", 2, 0)
		}, "ended"},
		{"made up", "acme/alice", func(string, string, string) string { return "gibberish" }, "invalid"},
		{"huge", "acme/alice", func(string, string, string) string { return strings.Repeat("A", 50<<10) }, "invalid"},
	} {
		attempt := func(t *testing.T, in codec.Codec) {
			d := deploy(t)
			log := &journal{}
			e := d.node(t, "one", &faults{}, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
			owner := dial(t, e, in, memory.Options{})
			w := owner.hello("acme/alice")
			replayed, session := fmt.Sprint(w["resume"]), fmt.Sprint(w["session"])
			owner.cut()
			owner, w = resume(t, e, in, "acme/alice", replayed, `{"room":"chat:1"}`)
			own := fmt.Sprint(w["resume"])

			tried := c.resume(replayed, own, session)
			thief, got := resume(t, e, in, c.token, tried, `{"room":"chat:1"}`)
			if got["resumed"] != false || got["session"] == session {
				t.Errorf("%s: welcome: %v", c.name, got)
			}
			answers = append(answers, fmt.Sprint(slices.Sorted(maps.Keys(got)), got["resumed"], len(fmt.Sprint(got["session"]))))
			if text := log.String(); !strings.Contains(text, "cause="+c.cause) || strings.Contains(text, tried) {
				t.Errorf("%s: logged: %s", c.name, text)
			}
			e.publish(t, "acme", "chat:1", "message", 1)
			if f := owner.next(); f.t() != "event" || f.offset() != 1 {
				t.Errorf("%s: the owner gets %v", c.name, f)
			}
			synctest.Wait()
			if o, _ := d.holder("acme", session); o.Generation != 2 {
				t.Errorf("%s: generation %d", c.name, o.Generation)
			}
			// The thief's own new session is one like any other.
			thief.cut()
			if _, again := resume(t, e, in, c.token, got["resume"]); again["resumed"] != true {
				t.Errorf("%s: the new session is not resumed: %v", c.name, again)
			}
			owner.cut()
			if _, again := resume(t, e, in, "acme/alice", own); again["resumed"] != true || again["session"] != session {
				t.Errorf("%s: the owner does not get back: %v", c.name, again)
			}
		}
		for _, in := range bothCodecs {
			synctest.Test(t, func(t *testing.T) { attempt(t, in) })
		}
	}
	if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
		t.Errorf("answers differ: %q", answers)
	}
}

const deploymentKey = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"

func sealed(t *testing.T, key, session string, generation uint64, at time.Duration) string {
	t.Helper()
	s, err := auth.NewSealer([][]byte{[]byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	return s.Seal(auth.Resume{Tenant: "acme", Subject: "alice", Session: session, Generation: generation}, time.Now().Add(at))
}

type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// Positions are the client's, whatever becomes of its session.
func TestPositionsOfASessionThatIsNotResumedAreHonoured(t *testing.T) {
	e := start(t, nil)
	c := dial(t, e, codec.JSON, memory.Options{})
	epoch := c.hello("acme/alice", "chat:1").at("rooms.0.ok.epoch")
	c.cut()
	e.publish(t, "acme", "chat:1", "message", 1)
	c, w := resume(t, e, codec.JSON, "acme/alice", "gibberish", fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":0}`, epoch))
	if w["resumed"] != false || w.at("rooms.0.ok.recovered") != true {
		t.Fatalf("welcome: %v", w)
	}
	if f := c.next(); f.offset() != 1 {
		t.Errorf("after it: %v", f)
	}
}

// A resume token is no authorisation: every room is authorised anew, by the
// credentials of the new connection.
func TestResumedSessionHasTheRightsOfItsNewCredentials(t *testing.T) {
	e := start(t, nil)
	c := dial(t, e, codec.JSON, memory.Options{})
	w := c.hello("acme/alice", "chat:1", "chat:2")
	c.cut()
	c, w = resume(t, e, codec.JSON, `acme/alice/[{"rooms":"chat:1","allow":["join"]}]`, w["resume"], `{"room":"chat:1"}`, `{"room":"chat:2"}`)
	if w["resumed"] != true || w.at("rooms.0.ok") == nil || w.at("rooms.1.err.code") != "forbidden" {
		t.Errorf("welcome: %v", w)
	}
	if r, _ := c.ask(`{"t":"publish","room":"chat:1","event":"message","data":1}`); r.at("err.code") != "forbidden" {
		t.Errorf("publish: %v", r)
	}
	c = dial(t, e, codec.JSON, memory.Options{})
	c.send(fmt.Sprintf(`{"t":"hello","token":"bad","resume":%q}`, w["resume"]))
	if code := c.closed(); code != 4401 {
		t.Errorf("with bad credentials: %d", code)
	}
}

// Source: https://github.com/socketio/socket.io-redis-streams-adapter/issues/48
func TestB044_ResumeTTLCountsFromTheEndOfTheConnection(t *testing.T) {
	for _, c := range []struct {
		away    time.Duration
		resumed bool
	}{{5 * time.Second, true}, {119 * time.Second, true}, {121 * time.Second, false}} {
		t.Run(c.away.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := deploy(t)
				e := d.node(t, "one", &faults{}, func(c *Config) { c.Limits.ResumeTTL = 2 * time.Minute })
				owner := dial(t, e, codec.JSON, memory.Options{})
				w := owner.hello("acme/alice", "chat:1")
				for range 100 {
					time.Sleep(6*time.Second + 7*time.Millisecond)
					if _, held := d.holder("acme", fmt.Sprint(w["session"])); !held {
						t.Fatal("a session that is connected is not held")
					}
				}
				owner.cut()
				time.Sleep(c.away)
				if _, again := resume(t, e, codec.JSON, "acme/alice", w["resume"]); again["resumed"] != c.resumed {
					t.Errorf("welcome: %v", again)
				}
				time.Sleep(3 * time.Minute) // what has ended is forgotten
				e.leases.mu.Lock()
				defer e.leases.mu.Unlock()
				if rs := &e.leases.records; len(rs.byID) != 1 || rs.apart != 0 || len(rs.detached) != 0 || len(rs.urgent) != 0 {
					t.Errorf("%d records, %d detached, %d urgent", len(rs.byID), rs.apart, len(rs.urgent))
				}
			})
		})
	}
}

// How a connection ends decides whether its session does.
func TestWhatEndsASession(t *testing.T) {
	for _, c := range []struct {
		name    string
		end     func(t *testing.T, e *Engine, c *client)
		resumed bool
	}{
		{"cut", func(_ *testing.T, _ *Engine, c *client) { c.conn.Cut() }, true},
		{"closed without a code", func(_ *testing.T, _ *Engine, c *client) { c.conn.Close(1005) }, true},
		{"closed by its client", func(_ *testing.T, _ *Engine, c *client) { c.conn.Close(1000) }, false},
		{"its page has gone", func(_ *testing.T, _ *Engine, c *client) { c.conn.Close(1001) }, false},
		{"closed with a code of the client's own", func(_ *testing.T, _ *Engine, c *client) { c.conn.Close(3000) }, true},
		{"disconnected", func(t *testing.T, e *Engine, c *client) {
			if n, err := e.Disconnect(t.Context(), "acme", "alice"); n != 1 || err != nil {
				t.Errorf("disconnect: %d, %v", n, err)
			}
			if code := c.closed(); code != 1000 {
				t.Errorf("closed %d", code)
			}
		}, false},
		{"malformed", func(t *testing.T, _ *Engine, c *client) {
			c.conn.SendKind([]byte{0xc1}, c.in == codec.Msgpack)
			if code := c.closed(); code != 4400 {
				t.Errorf("closed %d", code)
			}
		}, false},
		{"silent for too long", func(t *testing.T, _ *Engine, c *client) {
			time.Sleep(30 * time.Second)
			if code := c.closed(); code != 4500 {
				t.Errorf("closed %d", code)
			}
		}, true},
		{"credentials that ended", func(t *testing.T, _ *Engine, c *client) {
			r, _ := c.ask(`{"t":"token","token":"acme/alice/ends"}`)
			if r.at("ok") == nil {
				t.Errorf("token: %v", r)
			}
			time.Sleep(14 * time.Second)
			if code := c.closed(); code != 4401 {
				t.Errorf("closed %d", code)
			}
		}, true},
	} {
		for _, in := range bothCodecs {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := start(t, func(c *Config) { c.Authenticator = ending{} })
					owner := dial(t, e, in, memory.Options{})
					w := owner.hello("acme/alice", "chat:1")
					c.end(t, e, owner)
					<-owner.conn.Done()
					_, again := resume(t, e, in, "acme/alice", w["resume"])
					if again["resumed"] != c.resumed || (again["session"] == w["session"]) != c.resumed {
						t.Errorf("%v: welcome: %v", in, again)
					}
				})
			})
		}
	}
}

func TestDeploymentKeysAreChecked(t *testing.T) {
	leases := membridge.NewLeases("one", membridge.NewLeaseStore(nil))
	for _, c := range []struct {
		name string
		cfg  Config
		says string
	}{
		{"too short", Config{DeploymentKeys: [][]byte{make([]byte, 32), make([]byte, 31)}}, "key 2"},
		{"none, though others share the leases", Config{Leases: leases}, "no key"},
	} {
		c.cfg.Authenticator, c.cfg.Kinds = asTold{}, nil
		if _, err := Start(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
