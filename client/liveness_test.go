package client

import "testing"

// Source: vert-x3/vertx-eventbus-bridge-clients#51, butlerx/wetty#579. Timers that
// fire late do not make a client drop a connection that is alive: what came is still
// to be read, and gets a pong's time for it.
func TestB151_LateTimersDoNotDropALiveConnection(t *testing.T) {
	const ping, pong = 25, 10
	l := newLiveness(at(0), ping*1e9, pong*1e9)
	heard := 0.0
	for now := 60.0; now <= 600; now += 60 { // once a minute, a check that was due at 35 s
		if l.check(at(now), at(heard)) {
			t.Fatalf("dropped at %v s", now)
		}
		if l.due != at(now+pong) {
			t.Fatalf("at %v s: looks again at %v", now, l.due)
		}
		heard = now + 1 // the reader gets to it
		if l.check(at(now+pong), at(heard)) {
			t.Fatalf("dropped at %v s, though alive", now+pong)
		}
	}
}

func TestSilenceEndsAConnection(t *testing.T) {
	for _, c := range []struct {
		rule   string
		checks [][2]float64 // now, heard
		dead   bool         // after the last
		due    float64      // if not
	}{
		{"silent for ping and pong", [][2]float64{{35, 0}}, true, 0},
		{"something came", [][2]float64{{35, 20}}, false, 55},
		{"and then nothing", [][2]float64{{35, 20}, {55.5, 20}}, true, 0},
		{"a late check waits for a pong's time", [][2]float64{{90, 0}}, false, 100},
		{"once", [][2]float64{{90, 0}, {100, 0}}, true, 0},
		{"however late that is", [][2]float64{{90, 0}, {900, 0}}, true, 0},
		{"not less", [][2]float64{{90, 0}, {95, 0}}, false, 100},
		{"then it lives on as before", [][2]float64{{90, 0}, {100, 92}}, false, 127},
		{"and has another time to spare", [][2]float64{{90, 0}, {100, 92}, {200, 92}}, false, 210},
	} {
		l := newLiveness(at(0), 25e9, 10e9)
		dead := false
		for _, step := range c.checks {
			dead = l.check(at(step[0]), at(step[1]))
		}
		if dead != c.dead || !dead && l.due != at(c.due) {
			t.Errorf("%s: dead %v, due %v", c.rule, dead, l.due)
		}
	}
}
