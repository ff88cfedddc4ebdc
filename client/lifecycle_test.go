package client

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// highest is the random source that always waits to the bound.
func highest(n int64) int64 { return n - 1 }

func at(s float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

// The table of close codes of the protocol, section 5.
func TestWhatAClientDoesAboutACloseCode(t *testing.T) {
	for _, c := range []struct {
		codes []int
		want  verdict
	}{
		{[]int{1000, 1002, 1003, 1007, 1008, 1009, 1010}, stayClosed},
		{[]int{4400, 4403, 4409}, stayClosed},
		{[]int{4402, 4404, 4450, 4499}, stayClosed},
		{[]int{4401}, renewToken},
		{[]int{0, 1001, 1005, 1006, 1011, 1012, 1013, 1014}, comeBack},
		{[]int{3000, 4000, 4399, 4600, 4999}, comeBack},
		{[]int{4500, 4529, 4501, 4599}, comeBack},
	} {
		for _, code := range c.codes {
			if got := (ending{code: code}).verdict(); got != c.want {
				t.Errorf("%d: %d, want %d", code, got, c.want)
			}
		}
	}
}

func TestBackoffDoublesToItsCapAndBeginsAnewAfterAStableConnection(t *testing.T) {
	l := newLifecycle(highest)
	wait := func(now time.Time) time.Duration { return l.ended(now, ending{}, false).wait }
	for _, want := range []float64{0.5, 1, 2, 4, 8, 16, 20, 20} {
		if got := wait(at(0)); got != time.Duration(want*float64(time.Second)) {
			t.Errorf("%v, want %v s", got, want)
		}
		l.attempt()
	}
	l.welcomed(at(0))
	if got := wait(at(9.9)); got != backoffCap {
		t.Errorf("after a short connection: %v", got)
	}
	l.attempt()
	l.welcomed(at(20))
	if got := wait(at(30)); got != backoffBase {
		t.Errorf("after ten seconds: %v", got)
	}
}

func TestBackoffIsFullJitter(t *testing.T) {
	lowest := backoff{random: func(int64) int64 { return 0 }}
	middle := backoff{random: func(n int64) int64 { return n / 2 }}
	for range 10 {
		if w := lowest.next(); w != 0 {
			t.Errorf("the lowest is %v", w)
		}
	}
	if w := middle.next(); w != backoffBase/2 {
		t.Errorf("the middle is %v", w)
	}
}

func TestAHintOfTheServerWins(t *testing.T) {
	restart := func(code websocket.StatusCode, reason string) ending {
		return endedBy(websocket.CloseError{Code: code, Reason: reason})
	}
	refused := func(status int, after string) ending {
		return refusedBy(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}}, errors.New("no upgrade"))
	}
	second := time.Second
	for _, c := range []struct {
		rule     string
		e        ending
		low, top time.Duration
	}{
		{"1012 with a range", restart(1012, "1000-5000"), second, 5 * second},
		{"1001 too", restart(1001, "1000-5000"), second, 5 * second},
		{"a range of one moment", restart(1012, "700-700"), 700 * time.Millisecond, 700 * time.Millisecond},
		{"a range the wrong way round", restart(1012, "5000-1000"), 0, backoffBase},
		{"no range", restart(1012, "bye"), 0, backoffBase},
		{"numbers that are none", restart(1012, "-5-10"), 0, backoffBase},
		{"numbers beyond measure", restart(1012, "1-99999999999999999999"), 0, backoffBase},
		{"a range of nothing", restart(1012, "0-0"), 0, backoffBase},
		{"a range with another code", restart(1011, "1000-5000"), 0, backoffBase},
		{"Retry-After", refused(503, "3"), 3 * second, 4500 * time.Millisecond},
		{"Retry-After that is a date", refused(503, "Mon, 30 Nov 2026 00:00:00 GMT"), 0, backoffBase},
		{"the moment of a drain is now", ending{soon: true}, 0, 0},
	} {
		low, top := newLifecycle(func(int64) int64 { return 0 }), newLifecycle(highest)
		if got := low.ended(at(0), c.e, false).wait; got != c.low {
			t.Errorf("%s: from %v, want %v", c.rule, got, c.low)
		}
		if got := top.ended(at(0), c.e, false).wait; got != c.top {
			t.Errorf("%s: up to %v, want %v", c.rule, got, c.top)
		}
	}
}

// A node that drains again and again does not make its clients spin.
func TestDrainsInARowAreBackedOff(t *testing.T) {
	l := newLifecycle(highest)
	l.ended(at(0), ending{soon: true}, false)
	l.attempt()
	l.welcomed(at(0))
	if got := l.ended(at(1), ending{soon: true}, false).wait; got != 2*backoffBase {
		t.Errorf("%v", got)
	}
}

func TestWhatIsRefusedBeforeTheUpgrade(t *testing.T) {
	for status, want := range map[int]verdict{
		400: stayClosed, 401: renewToken, 403: stayClosed,
		200: comeBack, 301: comeBack, 404: comeBack, 429: comeBack, 500: comeBack, 502: comeBack, 503: comeBack,
	} {
		if got := refusedBy(&http.Response{StatusCode: status}, errors.New("no upgrade")).verdict(); got != want {
			t.Errorf("%d: %d, want %d", status, got, want)
		}
	}
	if got := refusedBy(nil, errors.New("no connection")).verdict(); got != comeBack {
		t.Errorf("no answer at all: %d", got)
	}
}

func TestANewTokenIsAskedForOncePerWelcome(t *testing.T) {
	refused := ending{code: 4401}
	l := newLifecycle(highest)
	step := func(rule string, want plan) {
		t.Helper()
		got := l.ended(at(0), refused, true)
		if got.wait = 0; got != want {
			t.Errorf("%s: %+v", rule, got)
		}
	}
	step("the first refusal", plan{renew: true})
	l.attempt()
	l.welcomed(at(0))
	step("the first after a welcome", plan{renew: true})
	l.attempt()
	if p := l.ended(at(0), ending{code: 1011}, true); p.final || p.renew {
		t.Errorf("another end between: %+v", p)
	}
	l.attempt()
	step("the second without a welcome between", plan{final: true})
	if l.state != Closed {
		t.Errorf("state %v", l.state)
	}
	l = newLifecycle(highest)
	if p := l.ended(at(0), refused, false); !p.final {
		t.Errorf("without a callback: %+v", p)
	}
}

func TestImpossibleStepsPanic(t *testing.T) {
	for rule, step := range map[string]func(){
		"welcome twice":      func() { l := newLifecycle(highest); l.welcomed(at(0)); l.welcomed(at(0)) },
		"attempt in attempt": func() { l := newLifecycle(highest); l.attempt() },
		"after the end":      func() { l := newLifecycle(highest); l.close(); l.attempt() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", rule)
				}
			}()
			step()
		}()
	}
	l := newLifecycle(highest)
	l.close()
	l.close() // closing again is none
}
