package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// audit follows what one client is sent, over all its connections, and holds it
// against the protocol's rules of order: no event before the join's reply or
// after the end of the membership, each buffered event once, ascending, without a
// hole but where a reset says so, one reply for each request.
type audit struct {
	t     *testing.T
	e     *Engine
	token string
	in    codec.Codec
	o     memory.Options
	c     *client

	session, ticket string // of the last welcome
	resumed         bool   // it said so
	left            map[string]int

	rooms  map[string]*membership // that are open, as the client knows
	ending map[string]bool        // rooms of which it may hear until it is told that it has left
	asked  map[string]question    // by id; not answered
	id     int
	as     int // memberships and connections begun or ended: a publisher's order holds within one
	events int
	resets map[string]int // by reason
	joins  int
	failed bool
	lately []string // what was sent and received
}

// question is a request that waits for its reply.
type question struct {
	t, room string
	hasPos  bool
	pos     codec.Position
	sees    bool // it asked to see who else is there
}

// membership is what the client knows of a room that it is in.
type membership struct {
	pos  codec.Position
	last map[string]int64 // of each event and of each publisher's membership: the last number
	sees bool
	who  sight // if it sees
}

func newAudit(t *testing.T, e *Engine, token string, in codec.Codec, o memory.Options) *audit {
	return &audit{
		t: t, e: e, token: token, in: in, o: o,
		rooms: map[string]*membership{}, ending: map[string]bool{}, asked: map[string]question{}, resets: map[string]int{}, left: map[string]int{},
	}
}

func (a *audit) fault(format string, args ...any) {
	a.t.Errorf("%s: %s; lately:\n%s", a.token, fmt.Sprintf(format, args...), strings.Join(a.lately, "\n"))
	a.failed = true
}

// subject is who it is.
func (a *audit) subject() string { return strings.Split(a.token, "/")[1] }

func (a *audit) note(format string, args ...any) {
	if len(a.lately) == 150 {
		a.lately = append(a.lately[:0], a.lately[1:]...)
	}
	a.lately = append(a.lately, fmt.Sprintf(format, args...))
}

func (a *audit) send(doc string) {
	a.note("> %.120s", doc)
	a.c.send(doc)
}

// dial connects, anew after a cut, and joins rooms with the hello: those that it
// was in from where it stands. What was not answered before never will be.
func (a *audit) dial(rooms ...string) {
	a.c = &client{t: a.t, conn: memory.Dial(a.e, protocol(a.in), a.o), in: a.in}
	clear(a.asked)
	clear(a.ending)
	was := a.rooms
	a.rooms = map[string]*membership{}
	var list []string
	var asked []question
	for name, m := range was {
		list = append(list, fmt.Sprintf(`{"room":%q,"epoch":%q,"offset":%d,"presence":%t}`, name, m.pos.Epoch, m.pos.Offset, m.sees))
		asked = append(asked, question{"join", name, true, m.pos, m.sees})
	}
	for _, name := range rooms {
		list = append(list, fmt.Sprintf(`{"room":%q}`, name))
		asked = append(asked, question{t: "join", room: name})
	}
	resume := ""
	if a.ticket != "" {
		resume = fmt.Sprintf(`,"resume":%q`, a.ticket)
	}
	a.send(fmt.Sprintf(`{"t":"hello","token":%q,"rooms":[%s]%s}`, a.token, strings.Join(list, ","), resume))
	f, ok := a.recv()
	if !ok {
		return
	}
	if f.t() != "welcome" {
		a.fault("no welcome but %v", f)
		return
	}
	a.as++ // what the connection before had sent may still be on its way
	a.session, _ = f["session"].(string)
	a.ticket, _ = f["resume"].(string)
	a.resumed, _ = f["resumed"].(bool)
	results, _ := f["rooms"].([]any)
	if len(results) != len(asked) {
		a.fault("asked for %d rooms: %v", len(asked), f)
		return
	}
	for i, r := range results {
		a.joined(asked[i], frame(r.(map[string]any)))
	}
}

// cut breaks the connection off.
func (a *audit) cut() {
	a.c.conn.Cut()
	<-a.c.conn.Done()
}

// ask sends a request and does not wait.
func (a *audit) ask(t, room, rest string) {
	a.id++
	a.asked[fmt.Sprint(a.id)] = question{t: t, room: room}
	a.send(fmt.Sprintf(`{"t":%q,"id":%d,"room":%q%s}`, t, a.id, room, rest))
	if t != "publish" {
		a.as++
	}
}

func (a *audit) resume(room string, p codec.Position) {
	a.ask("join", room, fmt.Sprintf(`,"epoch":%q,"offset":%d`, p.Epoch, p.Offset))
	a.asked[fmt.Sprint(a.id)] = question{"join", room, true, p, false}
}

func (a *audit) recv() (frame, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	f, err := a.c.recv(ctx)
	if err != nil {
		a.fault("recv: %v; open %d, not answered %v", err, len(a.rooms), a.asked)
		return nil, false
	}
	q := a.asked[fmt.Sprint(f["id"])]
	a.note("< %s %v %s %s %v %v %v %v %v", f.t(), f["id"], q.t, q.room, f["room"], f["event"], f["offset"], f.at("ok.offset"), f.at("err.code"))
	return f, true
}

// read takes frames until nothing is owed, at most n of them if n is not 0.
func (a *audit) read(n int) {
	if len(a.asked) == 0 {
		a.id++
		a.asked[fmt.Sprint(a.id)] = question{t: "ping"}
		a.c.send(fmt.Sprintf(`{"t":"ping","id":%d}`, a.id))
	}
	for i := 0; !a.failed && (i < n || n == 0) && len(a.asked) > 0; i++ {
		if f, ok := a.recv(); ok {
			a.frame(f)
		}
	}
}

// readTo reads until every room that it is in has got as far as its head.
func (a *audit) readTo(heads map[string]codec.Position) {
	behind := func() bool {
		for name, m := range a.rooms {
			if m.pos.Offset < heads[name].Offset {
				return true
			}
		}
		return false
	}
	for !a.failed && behind() {
		if f, ok := a.recv(); ok {
			a.frame(f)
		}
	}
	for name, m := range a.rooms { // what a client said before it broke off may still come
		if m.pos.Epoch != heads[name].Epoch && !a.failed {
			a.fault("%s: at %v, the head is %v", name, m.pos, heads[name])
		}
	}
}

func position(f frame) codec.Position {
	epoch, _ := f["epoch"].(string)
	return codec.Position{Epoch: epoch, Offset: f.offset()}
}

// frame takes one frame.
func (a *audit) frame(f frame) {
	if name, _ := f["room"].(string); a.ending[name] && a.rooms[name] == nil {
		a.ending[name] = f.t() != "left"
		return
	}
	switch f.t() {
	case "event":
		a.event(f)
	case "reply":
		a.reply(f)
	case "reset":
		name, _ := f["room"].(string)
		m := a.rooms[name]
		if m == nil {
			a.fault("reset outside of a membership: %v", f)
			return
		}
		m.pos = position(f)
		a.resets[fmt.Sprint(f["reason"])]++
	case "left":
		name, _ := f["room"].(string)
		if a.rooms[name] == nil {
			a.fault("left outside of a membership: %v", f)
		}
		delete(a.rooms, name)
		a.left[fmt.Sprint(f["reason"])]++
	case "presence":
		name, _ := f["room"].(string)
		if m := a.rooms[name]; m == nil || !m.sees {
			a.fault("presence outside of a membership that asked for it: %v", f)
		} else if err := m.who.change(f); err != nil {
			a.fault("%s: %v: %v", name, err, f)
		}
	case "ping":
	case "pong":
		delete(a.asked, fmt.Sprint(f["id"]))
	default:
		a.fault("not expected: %v", f)
	}
}

func (a *audit) event(f frame) {
	a.events++
	name, _ := f["room"].(string)
	m := a.rooms[name]
	if m == nil {
		a.fault("event outside of a membership: %v", f)
		return
	}
	if _, ok := f["offset"]; ok {
		if p := position(f); p.Epoch != m.pos.Epoch || p.Offset != m.pos.Offset+1 {
			a.fault("%s: %v after %v", name, p, m.pos)
		}
		m.pos = position(f)
	}
	if n, ok := f.at("data.n").(json.Number); ok {
		by := fmt.Sprint(f["event"], " by ", f["session"], " as ", f.at("data.as"))
		i, _ := n.Int64()
		if last, ok := m.last[by]; ok && i <= last {
			a.fault("%s: %s: %d after %d", name, by, i, last)
		}
		m.last[by] = i
	}
}

func (a *audit) reply(f frame) {
	id := fmt.Sprint(f["id"])
	r, ok := a.asked[id]
	if !ok {
		a.fault("a reply that nobody waits for: %v", f)
		return
	}
	delete(a.asked, id)
	switch r.t {
	case "join":
		a.joined(r, f)
	case "leave":
		if f["err"] == nil {
			delete(a.rooms, r.room)
		} else if f.at("err.code") != "not_joined" {
			a.fault("leave: %v", f)
		}
	case "publish":
		switch code := f.at("err.code"); code {
		case nil, "not_joined", "backpressured", "unavailable", "forbidden":
		case "internal": // the handler's own fault
		default:
			a.fault("publish: %v", f)
		}
	case "token":
		if f["err"] == nil {
			a.ticket, _ = f.at("ok.resume").(string)
		}
	}
}

// joined takes the result of a join.
func (a *audit) joined(r question, f frame) {
	// What came before is over in any case; but where the right was lost, the refusal may
	// overtake the end of it.
	a.ending[r.room] = (a.rooms[r.room] != nil || a.ending[r.room]) && f.at("err.code") == "forbidden"
	delete(a.rooms, r.room)
	if code := f.at("err.code"); code != nil {
		if code != "unavailable" && code != "backpressured" && code != "conflict" && code != "internal" && code != "forbidden" {
			a.fault("join: %v", f)
		}
		return
	}
	a.joins++
	ok := frame(f["ok"].(map[string]any))
	m := &membership{pos: position(ok), last: map[string]int64{}, sees: r.sees}
	if m.sees {
		m.who.begin(ok)
	}
	reset, _ := ok["reset"].(string)
	switch recovered := ok["recovered"] == true; {
	case recovered && (!r.hasPos || reset != "" || m.pos != r.pos):
		a.fault("recovered from %v: %v", r.pos, f)
	case !recovered && r.hasPos == (reset == ""):
		a.fault("position given %v: %v", r.hasPos, f)
	}
	if reset != "" {
		a.resets[reset]++
	}
	a.rooms[r.room] = m
}
