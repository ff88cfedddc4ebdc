package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
)

func TestLeases(t *testing.T) {
	bridgetest.TestLeases(t, func(_ *testing.T, o bridgetest.Options) bridgetest.LeaseTrial {
		store := memory.NewLeaseStore(o.Clock.Now)
		return bridgetest.LeaseTrial{A: memory.NewLeases("a", store), B: memory.NewLeases("b", store), Lose: store.Lose}
	})
}

// What has ended leaves the store, though nobody asks for it.
func TestLeasesThatEndedAreSwept(t *testing.T) {
	clock := &stepped{now: time.Unix(0, 0)}
	store := memory.NewLeaseStore(clock.Now)
	l := memory.NewLeases("a", store)
	defer l.Close()
	renew := func(session string) {
		l.Renew([]bridge.Lease{{Tenant: session, Session: session, Generation: 1}}, time.Minute, func(err *codec.Error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	for round := range 10 {
		for i := range 100 {
			renew(fmt.Sprint(round, "-", i))
		}
		clock.pass(50 * time.Second)
	}
	if n := store.Records(); n > 300 {
		t.Errorf("%d records", n)
	}
	clock.pass(time.Hour)
	renew("last")
	if n := store.Records(); n != 1 {
		t.Errorf("%d records, one has not ended", n)
	}
}

// Source: derived from the rule that timers are monotonic. Go's clock cannot be
// stepped by a test, so what is shown is that the store counts by a reading that
// has the monotonic part, which steps of the wall clock do not move.
func TestB150_LeasesCountByTheMonotonicClock(t *testing.T) {
	store := memory.NewLeaseStore(nil)
	if began := store.Began(); began == began.Round(0) {
		t.Errorf("no monotonic reading: %v", began)
	}
	if now := store.Now(); now == now.Round(0) {
		t.Errorf("no monotonic reading: %v", now)
	}
}
