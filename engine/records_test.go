package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/session"
	"github.com/yaza-dev/pulse/bridge"
)

func recordOf(tenant, id string, generation uint64) *record {
	return &record{lease: bridge.Lease{Tenant: tenant, Session: id, Generation: generation, Nonce: generation}}
}

func ids(list []*record) (ids []string) {
	for _, r := range list {
		ids = append(ids, r.lease.Session)
	}
	return ids
}

// renewNow renews what is due and says what that was.
func (rs *records) renewNow(now int64, most int) []string {
	batch := rs.toRenew(nil, now, most)
	rs.renewed(batch, true, now)
	return ids(batch)
}

func wantIDs(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestRecordsAreRenewedAtAThirdOfTheirLife(t *testing.T) {
	rs := newRecords(30, 10)
	rs.add(recordOf("t", "a", 1), 0)
	acquired := recordOf("t", "b", 2)
	acquired.written = true
	rs.add(acquired, 0)
	wantIDs(t, "at once", rs.renewNow(1, 10), "a")
	wantIDs(t, "before their time", rs.renewNow(9, 10))
	wantIDs(t, "the one that was acquired", rs.renewNow(10, 10), "b")
	wantIDs(t, "the one that was renewed at 1", rs.renewNow(11, 10), "a")
	for i := range 5 {
		rs.add(recordOf("t", fmt.Sprint(i), 1), 12)
	}
	wantIDs(t, "a full batch", rs.renewNow(12, 3), "0", "1", "2")
	wantIDs(t, "the rest of it", rs.renewNow(12, 3), "3", "4")
}

func TestRecordsThatAreNotRenewedWait(t *testing.T) {
	rs := newRecords(30, 10)
	a, b, c := recordOf("t", "a", 1), recordOf("t", "b", 1), recordOf("t", "c", 1)
	for _, r := range []*record{a, b, c} {
		rs.add(r, 0)
	}
	batch := rs.toRenew(nil, 0, 10)
	rs.detach(b, 0, 10)
	rs.end(c)
	rs.renewed(batch, false, 0)
	wantIDs(t, "to be renewed again, each once", rs.renewNow(0, 10), "b", "a")
	wantIDs(t, "to be released", ids(rs.toRelease()), "c")
	rs.detach(a, 1, 10)
	rs.expire(31)
	if len(rs.urgent)+len(rs.byID)+len(rs.detached) != 0 {
		t.Errorf("kept for a store that is away: %d, %d, %d", len(rs.urgent), len(rs.byID), len(rs.detached))
	}
}

// What the store cannot know yet is decided here.
func TestRecordsClaim(t *testing.T) {
	rs := newRecords(30, 10)
	r := recordOf("t", "a", 1)
	rs.add(r, 0)
	claim := func(tenant string, generation, nonce uint64) string {
		a, decided := rs.claim(bridge.Lease{Tenant: tenant, Session: "a", Generation: generation, Nonce: nonce})
		return fmt.Sprint(a.Verdict, " ", a.Lease.Generation, " ", decided)
	}
	for _, c := range []struct {
		what, got, want string
	}{
		{"another tenant", claim("u", 1, 7), " 0 false"},
		{"not written", claim("t", 1, 7), "taken 2 true"},
		{"the same again", claim("t", 1, 8), "outdated 0 true"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
	if r.lease.Generation != 2 || r.lease.Nonce != 7 {
		t.Errorf("lease after a claim: %v", r.lease)
	}
	rs.renewNow(0, 10)
	if got := claim("t", 2, 9); got != " 0 false" {
		t.Errorf("written: %s", got)
	}
	rs.end(r)
	if got := claim("t", 2, 9); got != "ended 0 true" {
		t.Errorf("ended: %s", got)
	}
	rs.toRelease()
	if got := claim("t", 2, 9); got != " 0 false" {
		t.Errorf("released: %s", got)
	}
}

// Detached sessions are bounded for the node too; who has most gives first.
func TestRecordsDetachedOfTheNode(t *testing.T) {
	rs := newRecords(30, 4)
	detach := func(tenant, id string) {
		r := recordOf(tenant, id, 1)
		rs.add(r, 0)
		rs.detach(r, 0, 10)
	}
	for _, id := range []string{"a1", "a2", "a3"} {
		detach("a", id)
	}
	detach("b", "b1")
	wantIDs(t, "within the bound", ids(rs.toRelease()))
	detach("b", "b2")
	wantIDs(t, "one too many", ids(rs.toRelease()), "a1")
	detach("c", "c1")
	if got := ids(rs.toRelease()); len(got) != 1 || got[0] == "c1" {
		t.Errorf("another: %q", got)
	}
}

// The records against a naive model: random beginnings, ends, takeovers, losses and
// failures of the store, over which every live session is renewed in time, what has
// ended is released once, and nothing is left at the end.
func TestRecordsModel(t *testing.T) {
	const ttl, most, max = 300, 5, 12
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rs := newRecords(ttl, max)
		type known struct {
			*record
			renewed, ended int64 // -1: it has not
			over           bool  // taken over or lost
		}
		var all []*known
		released := map[*record]int{}
		var flying []*record
		var since int64 // when they took off
		landing := func(now int64, ok bool) {
			for _, r := range flying {
				if i := slices.IndexFunc(all, func(k *known) bool { return k.record == r }); ok {
					all[i].renewed = now
				}
			}
			rs.renewed(flying, ok, now)
			flying = nil
		}
		flush := func(now int64, ok bool) {
			for _, r := range rs.toRelease() {
				released[r]++
			}
			for flying == nil {
				if flying, since = rs.toRenew(nil, now, 16), now; len(flying) == 0 {
					flying = nil
					return
				}
				for _, r := range flying {
					if r.state == recordOver {
						t.Fatalf("seed %d: one that is over is renewed", seed)
					}
				}
				if rng.IntN(8) == 0 {
					return // the answer comes later
				}
				if landing(now, ok); !ok {
					return
				}
			}
		}
		now, away := int64(0), int64(-1)
		for range 400 {
			now += int64(rng.IntN(10))
			switch pick := rng.IntN(10); {
			case pick < 3:
				tenant := fmt.Sprint(rng.IntN(3))
				k := &known{recordOf(tenant, fmt.Sprint(len(all)), 1), now, -1, false}
				k.record.session = new(session.Session)
				rs.add(k.record, now)
				all = append(all, k)
			case len(all) == 0:
			case pick < 5:
				k := all[rng.IntN(len(all))]
				if k.state == recordLive {
					k.ended = now
				}
				rs.detach(k.record, now, most)
			case pick < 6:
				rs.end(all[rng.IntN(len(all))].record)
			case pick < 7:
				k := all[rng.IntN(len(all))]
				if k.state == recordOver {
					break
				}
				next := &known{recordOf(k.lease.Tenant, k.lease.Session, k.lease.Generation+1), now, -1, false}
				next.written, next.session = true, new(session.Session)
				if live := k.state == recordLive; (rs.add(next.record, now) != nil) != live {
					t.Fatalf("seed %d: a takeover of a live session: %v", seed, live)
				}
				k.over = true
				all = append(all, next)
			case pick < 8:
				k := all[rng.IntN(len(all))]
				live := k.state == recordLive
				k.over = k.over || k.state != recordOver
				if (rs.lose(k.lease) != nil) != live {
					t.Fatalf("seed %d: a loss of a live lease: %v", seed, live)
				}
			case flying != nil:
				landing(now, now >= away)
			case now > away+100 && rng.IntN(5) == 0:
				away = now + 40
			}
			if flying != nil && now-since > 30 {
				landing(now, now >= away)
			}
			rs.expire(now)
			flush(now, now >= away)

			count := map[string]int{}
			for _, k := range all {
				switch k.state {
				case recordLive:
					if now-k.renewed > ttl-60 {
						t.Fatalf("seed %d: not renewed for %d", seed, now-k.renewed)
					}
				case recordDetached:
					count[k.lease.Tenant]++
					if now-k.ended > ttl {
						t.Fatalf("seed %d: kept for %d", seed, now-k.ended)
					}
				}
				if released[k.record] > 1 {
					t.Fatalf("seed %d: released %d times", seed, released[k.record])
				}
			}
			for r := rs.live.first(); r != nil && r != rs.live.head; r = r.next {
				if r.state != recordLive {
					t.Fatalf("seed %d: in the list of the live: %v", seed, r.state)
				}
			}
			apart := 0
			for tenant, n := range count {
				d, listed := rs.detached[tenant], 0
				for r := d.first(); r != d.head; r = r.next {
					listed++
				}
				if apart += n; n > most || d.n != n || listed != n {
					t.Fatalf("seed %d: %d detached of tenant %s", seed, n, tenant)
				}
			}
			if apart != rs.apart || apart > max {
				t.Fatalf("seed %d: %d detached, %d counted", seed, apart, rs.apart)
			}
		}
		for _, k := range all {
			rs.end(k.record)
		}
		landing(now, true)
		flush(now, true)
		for _, k := range all {
			// Whoever was taken over or lost is not released, whoever ran out need not be.
			if ran := k.ended >= 0 && now-k.ended >= ttl; k.over != (released[k.record] == 0) && !ran {
				t.Fatalf("seed %d: %v: taken over %v, released %d times", seed, k.lease, k.over, released[k.record])
			}
		}
		rs.expire(now)
		if flush(now, true); len(rs.byID)+len(rs.detached)+len(rs.urgent)+rs.apart != 0 || rs.live.first() != nil {
			t.Fatalf("seed %d: left: %d, %d, %d, %d", seed, len(rs.byID), len(rs.detached), len(rs.urgent), rs.apart)
		}
	}
}

// Source: derived from the rule that timers are monotonic: see the test of its name
// in bridge/memory.
func TestB150_SessionsCountByTheMonotonicClock(t *testing.T) {
	e := start(t, nil)
	if began := e.leases.began; began == began.Round(0) {
		t.Errorf("no monotonic reading: %v", began)
	}
	before := time.Now()
	if now := e.leases.now(); now > int64(time.Since(before.Add(-time.Hour))) {
		t.Errorf("now is %d", now)
	}
}

// Where the node has too many detached sessions it is the tenant with most of them that
// loses its oldest, however few the others have and however old theirs are.
func TestTooManyDetachedSessionsAreTheLargestTenants(t *testing.T) {
	const others, large = 20, 5
	rs := newRecords(time.Minute, others+large-1)
	detach := func(tenant, id string) *record {
		r := recordOf(tenant, id, 1)
		rs.add(r, 0)
		rs.detach(r, 0, 100)
		return r
	}
	var all []*record
	for i := range others {
		all = append(all, detach(fmt.Sprint("t", i), fmt.Sprint("s", i)))
	}
	oldest := detach("large", "l0")
	for i := range large - 1 {
		all = append(all, detach("large", fmt.Sprint("l", i+1)))
	}
	for _, r := range all {
		if r.state != recordDetached {
			t.Errorf("%+v is ended", r.lease)
		}
	}
	if oldest.state != recordOver {
		t.Error("the oldest of the largest is not ended")
	}
}
