package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

func try(b *memory.Broker, topic codec.Topic, key string, done func(bridge.Attempted)) (now *bridge.Attempted) {
	b.Attempt(topic, bridge.Attempt{Subject: "alice", Key: key, Hold: time.Minute}, func(a bridge.Attempted) {
		now = &a
		if done != nil {
			done(a)
		}
	})
	return now
}

func settle(b *memory.Broker, topic codec.Topic, key string, token uint64, result string) {
	d, _ := codec.NewData(result)
	b.Settle(topic, bridge.Settlement{Subject: "alice", Key: key, Token: token, Window: 2 * time.Minute, Result: d})
}

// What is being done and what was done is charged for as long as it is there, and
// holds its record.
func TestAttemptsAreCharged(t *testing.T) {
	b, clock := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	first := try(b, topic, "k", nil)
	open := b.Used()
	settle(b, topic, "k", first.Token, strings.Repeat("x", 1000))
	if got := b.Used() - open; got < 1000 || got > 1100 {
		t.Errorf("a result of 1,000 bytes is charged %d", got)
	}
	dead := try(b, topic, "dead", nil)
	failed := try(b, topic, "failed", nil)
	b.Settle(topic, bridge.Settlement{Subject: "alice", Key: "failed", Token: failed.Token, Err: codec.NewError(codec.CodeConflict, "no")})
	clock.pass(2*time.Minute - 1)
	b.Sweep()
	if used := b.Used(); used < open+1000 || used > open+1100 {
		t.Errorf("%d bytes before the window's end, %d when it began", used, open)
	}
	clock.pass(2 * time.Hour)
	b.Sweep()
	if n, tenants := b.Records(); n != 0 || tenants != 0 || b.Used() != 0 {
		t.Errorf("%d records, %d tenants, %d bytes in the end", n, tenants, b.Used())
	}
	settle(b, topic, "dead", dead.Token, "late")
	if n, _ := b.Records(); n != 0 {
		t.Error("what is late made a record")
	}
}

// Who waits for a command that does not end is answered by the sweeper at the
// latest.
func TestAttemptsThatLapseAreSwept(t *testing.T) {
	b, clock := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	try(b, topic, "k", nil)
	var told []bridge.Attempted
	if now := try(b, topic, "k", func(a bridge.Attempted) { told = append(told, a) }); now != nil {
		t.Fatalf("it does not wait: %+v", now)
	}
	clock.pass(time.Minute - 1)
	b.Sweep()
	if len(told) != 0 {
		t.Fatalf("before its time: %+v", told)
	}
	clock.pass(1)
	b.Sweep()
	if len(told) != 1 || told[0].Err == nil || told[0].Err.Code != codec.CodeUnavailable {
		t.Fatalf("%+v", told)
	}
	if next := try(b, topic, "k", nil); next.Token == 0 {
		t.Fatalf("the next: %+v", next)
	}
}

// Without budget nothing new is begun; a result that does not fit is not
// forgotten to have been.
func TestAttemptsWithoutBudget(t *testing.T) {
	b, _ := start(t, memory.Config{TenantHistoryBytes: budget(4 << 10)})
	topic := topicOf("acme", "chat:1")
	first := try(b, topic, "k", nil)
	settle(b, topic, "k", first.Token, strings.Repeat("x", 8000))
	if again := try(b, topic, "k", nil); again.Token != 0 || again.Err == nil || again.Err.Code != codec.CodeTooLarge {
		t.Errorf("the repeat: %+v", again)
	}
	for i := range 100 {
		if a := try(b, topic, fmt.Sprint(i), nil); a.Err != nil {
			if a.Err.Code != codec.CodeQuotaExceeded || a.Err.Scope != codec.ScopeTenant || i < 5 {
				t.Errorf("attempt %d: %+v", i, a.Err)
			}
			return
		}
	}
	t.Error("100 keys in 4 KiB")
}

func TestWhoWaitsIsBounded(t *testing.T) {
	b, _ := start(t, memory.Config{})
	topic := topicOf("acme", "chat:1")
	first := try(b, topic, "k", nil)
	told := 0
	for range memory.MaxWaiting {
		try(b, topic, "k", func(bridge.Attempted) { told++ })
	}
	if a := try(b, topic, "k", nil); a == nil || a.Err == nil || a.Err.Code != codec.CodeBackpressured {
		t.Fatalf("one too many: %+v", a)
	}
	settle(b, topic, "k", first.Token, "done")
	if told != memory.MaxWaiting {
		t.Errorf("%d of %d were told", told, memory.MaxWaiting)
	}
	second := try(b, topic, "l", nil)
	if now := try(b, topic, "l", nil); second.Token == 0 || now != nil {
		t.Errorf("there is place again: %+v", now)
	}
}
