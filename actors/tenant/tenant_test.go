package tenant

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
)

var roomy = Limits{Weight: 1, MaxSessions: 10, MaxRooms: 10}

func TestRoomIsMadeByItsFirstMessageAndFoundByTheNext(t *testing.T) {
	play(t, roomy, func(w *world) {
		w.post("a", "1")
		w.post("a", "2")
		w.want("two messages", "room a starts", "room a gets 1", "room a gets 2")
		w.post("a", "3")
		w.want("a third", "room a gets 3")
		if n := w.tenant.Rooms(); n != 1 {
			t.Errorf("%d rooms", n)
		}
	})
}

func TestRoomIsMadeOnceHoweverManyAskAtOnce(t *testing.T) {
	play(t, roomy, func(w *world) {
		var wg sync.WaitGroup
		var took atomic.Int64
		for i := range 32 {
			wg.Go(func() {
				for {
					mb, err := w.room("a")
					if err != nil {
						t.Error(err)
						return
					}
					if mb.Post(backpressure.Interactive, mailbox.Item{Msg: fmt.Sprint(i)}).Took() {
						took.Add(1)
						return
					}
				}
			})
		}
		wg.Wait()
		starts, gets := 0, 0
		for _, what := range w.said() {
			if what == "room a starts" {
				starts++
			} else {
				gets++
			}
		}
		if starts != 1 || gets != 32 {
			t.Errorf("%d starts, %d messages", starts, gets)
		}
	})
}

func TestRoomThatEndedIsMadeAnew(t *testing.T) {
	play(t, roomy, func(w *world) {
		w.post("a", "1")
		w.said()
		old, _ := w.room("a")
		w.rooms["a"].leaveOff()
		w.want("it leaves off", "room a ends")
		if o := old.Post(backpressure.Interactive, mailbox.Item{Msg: "late"}); o != backpressure.Closed {
			t.Errorf("a post to the old one: %v", o)
		}
		w.tenant.Forget("a", old) // too late to say, and so of no effect
		w.post("a", "2")
		w.want("the next", "room a starts", "room a gets 2")
		fresh, _ := w.room("a")
		w.tenant.Forget("a", old)
		if again, _ := w.room("a"); again != fresh || fresh == old {
			t.Error("forgetting an old room has forgotten the new one")
		}
	})
}

// Who finds a room's mailbox closed before its tenant has heard of the end makes
// the room anew at once.
func TestClosedRoomIsForgottenByWhoeverFindsItSo(t *testing.T) {
	play(t, roomy, func(w *world) {
		w.post("a", "1")
		w.said()
		first := w.rooms["a"]
		first.over = func() {} // the tenant is not told
		first.leaveOff()
		synctest.Wait()
		old, _ := w.room("a")
		if o := w.post("a", "2"); o != backpressure.Closed {
			t.Fatalf("posted: %v", o)
		}
		w.tenant.Forget("a", old)
		w.post("a", "3")
		w.want("made anew", "room a starts", "room a gets 3")
	})
}

func TestMaxRooms(t *testing.T) {
	limits := roomy
	limits.MaxRooms = 2
	play(t, limits, func(w *world) {
		w.post("a", "1")
		w.post("b", "1")
		if _, err := w.room("c"); err == nil || err.Code != codec.CodeQuotaExceeded || err.RetryAfterMS() == 0 {
			t.Errorf("a third: %v", err)
		}
		w.post("a", "2") // who is there already is found
		synctest.Wait()
		w.rooms["a"].leaveOff()
		synctest.Wait()
		if _, err := w.room("c"); err != nil {
			t.Errorf("in the place of one that ended: %v", err)
		}
	})
}

func TestMaxSessions(t *testing.T) {
	limits := roomy
	limits.MaxSessions = 2
	play(t, limits, func(w *world) {
		a, err := w.attach("a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.attach("b"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.attach("c"); err == nil || err.Code != codec.CodeQuotaExceeded {
			t.Errorf("a third: %v", err)
		}
		a.context.Self().Stop()
		synctest.Wait()
		if _, err := w.attach("c"); err != nil {
			t.Errorf("in the place of one that ended: %v", err)
		}
	})
}

// A session that takes the place of one of this tenant is not one more, whether the
// earlier has ended already or not, and however often it happens.
func TestTakeoverDoesNotCountTwice(t *testing.T) {
	limits := roomy
	limits.MaxSessions = 2
	play(t, limits, func(w *world) {
		a, _ := w.attach("a")
		if _, err := w.attach("b"); err != nil {
			t.Fatal(err)
		}
		first := a
		for range 3 {
			next, err := w.replace("a", a)
			if err != nil {
				t.Fatal(err)
			}
			a = next
		}
		if _, err := w.attach("c"); err == nil || err.Code != codec.CodeQuotaExceeded {
			t.Errorf("a third: %v", err)
		}
		synctest.Wait()             // all have started
		first.context.Self().Stop() // it was taken over: its end makes no place
		synctest.Wait()
		if _, err := w.attach("c"); err == nil {
			t.Error("the end of one that did not count has made a place")
		}
		if _, err := w.replace("a", first); err == nil { // which has ended: one more
			t.Error("a takeover of one that has ended does not count")
		}
		w.said()
		done := make(chan int, 1)
		w.tenant.Disconnect(&message.Disconnect{Cause: codec.CauseNormal, Done: func(n int) { done <- n }})
		if n := <-done; n != 2 {
			t.Errorf("disconnected %d, of 2 that count", n)
		}
		a.context.Self().Stop()
		synctest.Wait()
		if _, err := w.attach("c"); err != nil {
			t.Errorf("in the place of one that counted: %v", err)
		}
	})
}

// The tenant waits for those that were taken over, as for any session.
func TestCloseWaitsForWhoWasTakenOver(t *testing.T) {
	play(t, roomy, func(w *world) {
		a, _ := w.attach("a")
		b, _ := w.replace("a", a)
		w.tenant.Close()
		b.context.Self().Stop()
		w.said()
		select {
		case <-w.tenant.Ending():
			t.Error("the tenant does not wait for the one that was taken over")
		default:
		}
		a.context.Self().Stop()
		<-w.tenant.Ending()
	})
}

func TestDisconnectBySubject(t *testing.T) {
	play(t, roomy, func(w *world) {
		for _, subject := range []string{"alice", "alice", "bob"} {
			if _, err := w.attach(subject); err != nil {
				t.Fatal(err)
			}
		}
		w.said()
		for _, c := range []struct {
			subject string
			n       int
		}{{"alice", 2}, {"carol", 0}, {"", 3}} {
			done := make(chan int, 1)
			w.tenant.Disconnect(&message.Disconnect{Subject: c.subject, Cause: codec.CauseNormal, Done: func(n int) { done <- n }})
			if n := <-done; n != c.n || len(w.said()) != c.n {
				t.Errorf("%q: %d", c.subject, n)
			}
		}
	})
}

// Close: sessions first, then rooms, then the tenant. What comes meanwhile is
// refused, or answered.
func TestCloseEndsSessionsThenRoomsThenTheTenant(t *testing.T) {
	play(t, roomy, func(w *world) {
		s, err := w.attach("alice")
		if err != nil {
			t.Fatal(err)
		}
		w.post("a", "1")
		w.said()
		w.tenant.Close()
		w.want("close", "session alice is kicked: restart")
		if _, err := w.attach("late"); err == nil || err.Code != codec.CodeDraining {
			t.Errorf("a session that comes late: %v", err)
		}
		w.post("a", "2")
		w.want("the room goes on", "room a gets 2")
		if _, err := w.room("b"); err == nil || err.Code != codec.CodeUnavailable {
			t.Errorf("a new room: %v", err)
		}
		select {
		case <-w.tenant.Ending():
			t.Error("the tenant does not wait for its session")
		default:
		}
		s.context.Self().Stop()
		<-w.tenant.Ending()
		w.want("the session ends", "session alice ends", "room a ends")
		if w.hasEnded() == 0 || w.system.Live() != 0 {
			t.Errorf("ended %d times, %d actors", w.hasEnded(), w.system.Live())
		}
	})
}

func TestCloseWithoutSessionsIsImmediate(t *testing.T) {
	play(t, roomy, func(w *world) {
		w.post("a", "1")
		w.said()
		w.tenant.Close()
		<-w.tenant.Ending()
		w.want("close", "room a ends")
		w.tenant.Close()
		w.tenant.Cut()
		if o := w.tenant.Attach(&message.Attach{}); o != backpressure.Closed {
			t.Errorf("attach afterwards: %v", o)
		}
	})
}

func TestCutStopsSessionsThatDoNotEnd(t *testing.T) {
	play(t, roomy, func(w *world) {
		if _, err := w.attach("alice"); err != nil {
			t.Fatal(err)
		}
		w.tenant.Close()
		w.said()
		w.tenant.Cut()
		<-w.tenant.Ending()
		w.want("cut", "session alice ends")
	})
}

// A tenant that nobody uses ends after a while, and not a moment before; the one
// that takes its place is another.
func TestUnusedTenantEnds(t *testing.T) {
	play(t, roomy, func(w *world) {
		s, err := w.attach("alice")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * linger)
		w.post("a", "1")
		s.context.Self().Stop()
		time.Sleep(3 * linger)
		synctest.Wait()
		if w.hasEnded() != 0 {
			t.Fatal("it has ended with a room in it")
		}
		w.rooms["a"].leaveOff()
		time.Sleep(linger - time.Second)
		synctest.Wait()
		if w.hasEnded() != 0 {
			t.Error("it has ended at once")
		}
		time.Sleep(2 * time.Second)
		<-w.tenant.Ending()
		synctest.Wait()
		if w.hasEnded() == 0 || w.system.Live() != 0 || w.wheel.Armed() != 0 {
			t.Errorf("ended %d times, %d actors, %d timers", w.hasEnded(), w.system.Live(), w.wheel.Armed())
		}
		if _, err := w.room("b"); err == nil || err.Code != codec.CodeUnavailable {
			t.Errorf("a room of a tenant that has ended: %v", err)
		}
	})
}

// A room whose handler does not return is taken off the directory at once, so
// that the next is made; the tenant ends when it comes back.
func TestAbandonedRoomIsMadeAnew(t *testing.T) {
	play(t, roomy, func(w *world) {
		mb, _ := w.room("a")
		stuck := w.rooms["a"]
		stuck.held = make(chan struct{})
		w.post("a", "1")
		synctest.Wait()
		w.post("a", "2")
		w.want("it hangs", "room a starts", "room a gets 1")
		if w.tenant.Abandon(w.tenant.Mailbox().Task()) {
			t.Error("abandoned a room that there is not")
		}
		if !w.tenant.Abandon(mb.Task()) {
			t.Error("not abandoned")
		}
		w.want("what waited", "room a gives back 2")
		w.post("a", "3")
		w.want("the next", "room a starts", "room a gets 3")
		w.tenant.Close()
		w.want("the other ends", "room a ends")
		close(stuck.held)
		w.want("the old one comes back", "room a ends")
	})
}

// A room that is asked for while its tenant ends is told of it, or gives back what
// was posted to it, or has handled it.
func TestRoomAskedForWhileItsTenantEndsLosesNothing(t *testing.T) {
	for range 50 {
		play(t, roomy, func(w *world) {
			var took atomic.Int64
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					mb, err := w.room(fmt.Sprint("r", i))
					if err == nil && mb.Post(backpressure.Interactive, mailbox.Item{Msg: "1"}).Took() {
						took.Add(1)
					}
				})
			}
			w.tenant.Cut()
			wg.Wait()
			<-w.tenant.Ending()
			answered := 0
			for _, what := range w.said() {
				if strings.HasSuffix(what, " gets 1") || strings.HasSuffix(what, " gives back 1") {
					answered++
				}
			}
			if answered != int(took.Load()) {
				t.Errorf("%d were taken, %d answered", took.Load(), answered)
			}
		})
	}
}

// What was posted to a room that its tenant never came to start is given back.
func TestRoomThatIsNeverStartedGivesBackWhatWasPosted(t *testing.T) {
	play(t, roomy, func(w *world) {
		room := w.straw("room a")
		room.mb.Post(backpressure.Interactive, mailbox.Item{Msg: "1", Size: 1})
		removed(&mailbox.Raised{Owner: &entry{room: room}, Bits: wanted}, backpressure.Closed)
		w.want("given back", "room a gives back 1")
	})
}

// A session that was taken over keeps its tenant until it has ended.
func TestTenantOfOneThatWasTakenOverIsUsed(t *testing.T) {
	play(t, roomy, func(w *world) {
		old, err := w.attach("alice")
		if err != nil {
			t.Fatal(err)
		}
		next, err := w.replace("alice", old)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		next.context.Self().Stop()
		time.Sleep(3 * linger)
		synctest.Wait()
		if w.hasEnded() != 0 {
			t.Error("it has ended with a session in it")
		}
		old.context.Self().Stop()
		time.Sleep(2 * linger)
		synctest.Wait()
		if w.hasEnded() == 0 {
			t.Error("it goes on without one")
		}
	})
}
