package session

import (
	"testing"
	"time"

	"github.com/yaza-dev/pulse/backpressure"
)

func TestPace(t *testing.T) {
	const second = int64(time.Second)
	for name, test := range map[string]struct {
		every   time.Duration // a request of so often
		pauses  int64         // every so many seconds, for two; 0: never
		refused bool
		cut     bool
	}{
		"within its rate":              {every: 100 * time.Millisecond},
		"faster, and never pauses":     {every: 10 * time.Millisecond, refused: true, cut: true},
		"a little faster, all the day": {every: 90 * time.Millisecond, refused: true, cut: true},
		"faster, and pauses":           {every: 10 * time.Millisecond, pauses: 5, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := pace{session: backpressure.NewMeter(backpressure.Rate{Messages: 10})}
			refused, cut := false, int64(0)
			for now := second; now < 60*second && cut == 0; now += int64(test.every) {
				if test.pauses > 0 && now/second%test.pauses < 2 {
					continue
				}
				if wait, own := p.take(now, 1); wait > 0 {
					refused = true
					if !own {
						t.Fatal("refused for the tenant, which has no limit")
					}
					if p.heedless() {
						cut = now
					}
				}
			}
			if refused != test.refused || (cut > 0) != test.cut {
				t.Errorf("refused %t, cut at %v", refused, time.Duration(cut))
			}
			if cut > 0 && cut < int64(heedlessAfter) {
				t.Errorf("cut after %v only", time.Duration(cut))
			}
		})
	}
}
