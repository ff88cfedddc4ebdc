package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/actors/session"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// stopover are rooms on the way to which the next request may be held up.
type stopover struct {
	session.Rooms
	armed atomic.Bool
	held  chan struct{} // somebody is
	let   chan struct{} // closed: goes on
}

func (s *stopover) Room(name string, kind *message.Policy) (*mailbox.Mailbox, *codec.Error) {
	if s.armed.CompareAndSwap(true, false) {
		close(s.held)
		<-s.let
	}
	return s.Rooms.Room(name, kind)
}

// The last join of a connection may reach the room after the first of the next
// connection of its session. Its end then ends nobody's presence.
func TestJoinsOfATakenOverConnectionLeaveNoTraceInPresence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := openKind
		kind.Presence = true
		e := start(t, func(c *Config) { c.Limits.Workers, c.Limits.Ping, c.Kinds = 2, time.Hour, []room.Kind{kind} })
		n, err := e.tenant("acme")
		if err != nil {
			t.Fatal(err)
		}
		rooms := &stopover{Rooms: n.sessions.Rooms, held: make(chan struct{}), let: make(chan struct{})}
		n.sessions.Rooms = rooms // no session is there yet

		older := dial(t, e, codec.JSON, memory.Options{})
		w := older.hello("acme/alice", "chat:1")
		rooms.armed.Store(true)
		older.send(`{"t":"join","id":1,"room":"chat:1","data":{"n":1}}`)
		<-rooms.held
		newer, again := resume(t, e, codec.JSON, "acme/alice", w["resume"], `{"room":"chat:1"}`)
		if again["resumed"] != true || again.at("rooms.0.ok") == nil {
			t.Fatalf("%v", again)
		}
		close(rooms.let)
		<-older.conn.Done()
		time.Sleep(2 * e.cfg.Limits.PresenceGrace)
		synctest.Wait()
		f, _ := newer.ask(`{"t":"presence","room":"chat:1"}`)
		if f.at("ok.members.0.subject") != "alice" || f.at("ok.members.0.data") != nil {
			t.Errorf("who is there: %v", f)
		}
	})
}
