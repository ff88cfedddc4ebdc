package engine

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
)

// heapParts are what an idle session holds on the heap, as BenchmarkIdleActor counts
// it: by the calls on the stack of each allocation that is still in use, the first
// part with such a call. The actor is the first four of them.
var heapParts = []struct {
	name  string
	calls []string
	actor bool
}{
	{"membership", []string{"actors/session.(*Session).join"}, false}, // one for each room; the room refers to it
	{"mailbox", []string{"actors/mailbox.New"}, true},
	{"session", []string{"actors/session.New", "actors/session.(*Session)"}, true},
	{"protoactor", []string{"asynkron/protoactor-go/actor.init", "asynkron/protoactor-go/actor.(*actorContext).SpawnNamed"}, true},
	{"vocabulary", []string{"pulse/actors.(*System)", "pulse/actors.(*Context)"}, true},
	{"tenant", []string{"actors/tenant."}, false}, // its entry among the tenant's sessions
	{"room", []string{"actors/room."}, false},     // the member
	{"lease", []string{"engine.(*sessions)", "engine.(*records)", "bridge/memory.(*LeaseStore)"}, false},
	{"connection", []string{"engine."}, false}, // the socket's side, what the benchmark holds, and the credentials
}

// idleActor is what each of n sessions in one room keeps on the heap, by part, in
// bytes as the allocator counts them. Descriptors are replaced.
func idleActor(tb testing.TB, n int) (parts map[string]float64, actor float64) {
	e, err := Start(context.Background(), Config{Kinds: []room.Kind{openKind}, Authenticator: asTold{}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close(context.Background()) })
	var writes atomic.Int64
	members(tb, e, 1, "chat:1", &writes) // what the room and its tenant are made of
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	defer func() { runtime.MemProfileRate = rate }()
	before := heapInUse()
	writes.Store(0)
	members(tb, e, n, "chat:1", &writes)
	after := heapInUse()
	parts = make(map[string]float64)
	for _, p := range heapParts {
		parts[p.name] = (after[p.name] - before[p.name]) / float64(n)
		if p.actor {
			actor += parts[p.name]
		}
	}
	return parts, actor
}

// heapInUse are the bytes in use of each part.
func heapInUse() map[string]float64 {
	runtime.GC() // a profile is of the cycle before the last
	runtime.GC()
	var records []runtime.MemProfileRecord
	for n, ok := runtime.MemProfile(nil, false); !ok; n, ok = runtime.MemProfile(records, false) {
		records = make([]runtime.MemProfileRecord, n+64)
	}
	parts := make(map[string]float64)
	for i := range records {
		parts[partOf(records[i].Stack())] += float64(records[i].InUseBytes())
	}
	return parts
}

func partOf(stack []uintptr) string {
	var calls []string
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		calls = append(calls, f.Function)
		if !more {
			break
		}
	}
	for _, p := range heapParts {
		for _, call := range p.calls {
			if slices.ContainsFunc(calls, func(c string) bool { return strings.Contains(c, call) }) {
				return p.name
			}
		}
	}
	return ""
}

// An idle session's actor is promised to be at most 1 KB: all that protoactor holds for
// it, the vocabulary, the mailbox and the session, in a room.
func TestAnIdleSessionsActorIsSmall(t *testing.T) {
	parts, actor := idleActor(t, 1000)
	t.Log(actor, parts)
	if actor > 1000 {
		t.Errorf("%.0f bytes, promised 1000: %v", actor, parts)
	}
}

// BenchmarkIdleActor is the heap of an idle session's actor, by part, and what else
// a session has there.
func BenchmarkIdleActor(b *testing.B) {
	parts, actor := idleActor(b, 10_000)
	b.ReportMetric(actor, "actor-B")
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		b.ReportMetric(parts[name], fmt.Sprint(name, "-B"))
	}
	b.ReportMetric(0, "ns/op")
}
