package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everybody is whoever the token says.
type everybody struct{}

func (everybody) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	return &auth.Identity{Tenant: "acme", Subject: c.Token, Grants: auth.AllowAll()}, nil
}

// clumsy is a game that panics at one of its events, in Publish, or in Apply.
type clumsy struct {
	game
	publish, apply *atomic.Int64 // the cell whose move it panics at, once; -1: none
}

func (c *clumsy) Publish(ctx *room.Context, e *room.Event) error {
	var cell int64
	if e.Data.Unmarshal(&cell) == nil && c.publish.CompareAndSwap(cell, -1) {
		panic("clumsy")
	}
	return c.game.Publish(ctx, e)
}

func (c *clumsy) Apply(ctx *room.Context, e *room.Applied) {
	c.game.Apply(ctx, e)
	var cell int64
	if e.Data.Unmarshal(&cell) == nil && c.apply.CompareAndSwap(cell, -1) {
		panic("clumsy")
	}
}

// table is an engine with the game, reached over real sockets.
type table struct {
	ctx            context.Context
	url            string
	publish, apply atomic.Int64
}

func newTable(t *testing.T, away time.Duration, save func(context.Context, round) error, change ...func(*engine.Config)) *table {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tb := &table{ctx: ctx}
	tb.publish.Store(-1)
	tb.apply.Store(-1)
	k := kind(away, save)
	k.New = func() room.Handler {
		return &clumsy{game: game{away: away, save: save}, publish: &tb.publish, apply: &tb.apply}
	}
	cfg := engine.Config{Authenticator: everybody{}, Kinds: []room.Kind{k}}
	for _, f := range change {
		f(&cfg)
	}
	e, err := engine.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e.Handler())
	tb.url = server.URL + "/v1/ws"
	t.Cleanup(func() {
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
		server.Close()
		cancel()
	})
	return tb
}

// seat is a client of one room.
type seat struct {
	t    *testing.T
	tb   *table
	conn *websocket.Conn
	hold []frame
	id   int
	// of the last event, and what the room looks like with it
	Epoch  string
	Offset int
	round  round
}

type frame struct {
	T      string
	ID     int
	Event  string
	From   string
	Data   json.RawMessage
	Epoch  string
	Offset int
	OK     json.RawMessage
	Err    *struct{ Code string }
	Rooms  []struct{ OK join }
}

type join struct {
	Epoch     string
	Offset    int
	Recovered bool
	Data      *round
	Members   []struct{ Subject string }
}

// sit joins as a client that knows nothing.
func (tb *table) sit(t *testing.T, name string) (*seat, join) {
	t.Helper()
	s := &seat{t: t, tb: tb}
	joined := s.dial(name, `{"room":"game:1","presence":true}`)
	s.round = *joined.Data
	s.Epoch, s.Offset = joined.Epoch, joined.Offset
	return s, joined
}

func (s *seat) dial(name, room string) join {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.tb.ctx, s.tb.url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.CloseNow() })
	s.conn = conn
	s.say(`{"t":"hello","token":%q,"rooms":[%s]}`, name, room)
	return s.hear(func(f frame) bool { return f.T == "welcome" }).Rooms[0].OK
}

func (s *seat) say(format string, args ...any) {
	s.t.Helper()
	if err := s.conn.Write(s.tb.ctx, websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		s.t.Fatal(err)
	}
}

// hear is the first frame that fits and was not heard yet.
func (s *seat) hear(fits func(frame) bool) frame {
	s.t.Helper()
	for i, f := range s.hold {
		if fits(f) {
			s.hold = append(s.hold[:i], s.hold[i+1:]...)
			return f
		}
	}
	for {
		_, text, err := s.conn.Read(s.tb.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		var f frame
		if err := json.Unmarshal(text, &f); err != nil {
			s.t.Fatalf("%s: %v", text, err)
		}
		if fits(f) {
			return f
		}
		s.hold = append(s.hold, f)
	}
}

// ask makes a request and returns its result, or the code of its refusal.
func (s *seat) ask(request string) (json.RawMessage, string) {
	s.t.Helper()
	s.id++
	s.say(`{"id":%d,"room":"game:1",%s}`, s.id, request)
	f := s.hear(func(f frame) bool { return f.T == "reply" && f.ID == s.id })
	if f.Err != nil {
		return nil, f.Err.Code
	}
	return f.OK, ""
}

func (s *seat) move(cell int) (refused string) {
	s.t.Helper()
	_, refused = s.ask(fmt.Sprintf(`"t":"publish","event":"move","data":%d`, cell))
	return refused
}

// follow takes the next event, as a client does: it knows the rules too.
func (s *seat) follow() frame {
	s.t.Helper()
	f := s.hear(func(f frame) bool { return f.T == "event" })
	if f.Offset != s.Offset+1 || f.Epoch != s.Epoch {
		s.t.Fatalf("event %d of %s after %d of %s", f.Offset, f.Epoch, s.Offset, s.Epoch)
	}
	s.Offset = f.Offset
	var cell int
	if f.Event == "move" && json.Unmarshal(f.Data, &cell) == nil {
		_ = s.round.move(f.From, cell) // one that lost a race changes nothing
	}
	return f
}

func (s *seat) command(name string, into any) (refused string) {
	s.t.Helper()
	ok, refused := s.ask(fmt.Sprintf(`"t":"command","name":%q`, name))
	if refused == "" {
		if err := json.Unmarshal(ok, &struct{ Data any }{into}); err != nil {
			s.t.Fatal(err)
		}
	}
	return refused
}

// sees checks that the room has the state that s has followed.
func (s *seat) sees() {
	s.t.Helper()
	var board round
	if refused := s.command("board", &board); refused != "" || !reflect.DeepEqual(board, s.round) {
		s.t.Errorf("%s\nthe room has %+v\nits clients %+v", refused, board, s.round)
	}
}

func TestARoundWithLostConnectionsAndAClumsyHandler(t *testing.T) {
	tb := newTable(t, time.Minute, nil)
	ann, _ := tb.sit(t, "ann")
	ben, joined := tb.sit(t, "ben")
	if len(joined.Members) != 2 {
		t.Errorf("here are %v", joined.Members)
	}

	if refused := ann.move(0); refused != "" {
		t.Fatal(refused)
	}
	if refused := ann.move(1); refused != "conflict" {
		t.Errorf("twice in a row: %q", refused)
	}
	ben.follow()

	// A panic costs the request that caused it, and nothing else.
	tb.publish.Store(4)
	if refused := ben.move(4); refused != "internal" {
		t.Errorf("a panic: %q", refused)
	}
	if refused := ben.move(4); refused != "" {
		t.Errorf("and again: %q", refused)
	}
	ben.follow()
	ben.sees()

	// Ben's connection is lost. He comes back with the position that he has.
	ben.conn.CloseNow()
	if refused := ann.move(1); refused != "" {
		t.Fatal(refused)
	}
	again := ben.dial("ben", fmt.Sprintf(`{"room":"game:1","epoch":%q,"offset":%d}`, ben.Epoch, ben.Offset))
	if !again.Recovered {
		t.Errorf("joined again: %+v", again)
	}
	ben.follow()
	if ben.round.Moves != 3 {
		t.Errorf("ben sees %+v", ben.round)
	}

	// A panic in Apply costs nobody an event. It has the handler begin anew, from
	// its snapshot and what has happened since, without the guilty event.
	tb.apply.Store(5)
	if refused := ben.move(5); refused != "" {
		t.Fatal(refused)
	}
	for range 4 {
		ann.follow()
	}
	if ann.Offset != 4 {
		t.Errorf("ann is at %d", ann.Offset)
	}
	var board round
	if refused := ann.command("board", &board); refused != "" || board.Moves != 3 {
		t.Errorf("%s: %+v, want it without the move that could not be applied", refused, board)
	}
	eve, _ := tb.sit(t, "eve")
	if !reflect.DeepEqual(eve.round, board) {
		t.Errorf("who joins late is given %+v", eve.round)
	}
}

func TestWhoStaysAwayForfeits(t *testing.T) {
	tb := newTable(t, 20*time.Millisecond, nil)
	ann, _ := tb.sit(t, "ann")
	ben, _ := tb.sit(t, "ben")
	eve, _ := tb.sit(t, "eve")
	ann.move(0)
	ben.move(1)
	eve.conn.CloseNow() // who watches forfeits nothing
	ben.conn.CloseNow()
	ann.follow()
	ann.follow()
	if f := ann.follow(); f.Event != "forfeit" || string(f.Data) != `"ben"` || f.From != "" {
		t.Errorf("%+v", f)
	}
	var board round
	if refused := ann.command("board", &board); refused != "" || board.Winner != "ann" {
		t.Errorf("%s: %+v", refused, board)
	}
	if _, refused := ann.ask(`"t":"publish","event":"forfeit","data":"ann"`); refused != "bad_request" {
		t.Errorf("a player says so: %q", refused)
	}
}

func TestSavingDoesNotHoldTheRoomUp(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	tb := newTable(t, time.Minute, func(context.Context, round) error {
		close(begun)
		<-goOn
		return nil
	})
	ann, _ := tb.sit(t, "ann")
	ann.move(0)
	ann.say(`{"t":"command","id":100,"room":"game:1","name":"save"}`)
	<-begun
	ben, _ := tb.sit(t, "ben")
	if refused := ben.move(1); refused != "" {
		t.Errorf("a move while it is saved: %q", refused)
	}
	close(goOn)
	f := ann.hear(func(f frame) bool { return f.T == "reply" && f.ID == 100 })
	if string(f.OK) != `{"data":1}` {
		t.Errorf("%s %+v", f.OK, f.Err)
	}
	if refused := ann.command("dance", nil); refused != "not_found" {
		t.Errorf("an unknown command: %q", refused)
	}
}
