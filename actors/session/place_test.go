package session

import (
	"sync"
	"testing"
)

func TestPlace(t *testing.T) {
	answered := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	for _, tt := range []struct {
		name     string
		do       func(p *place)
		answered bool
		asked    bool
	}{
		{"nothing", func(p *place) {}, false, true},
		{"place", func(p *place) { p.free() }, true, false},
		{"more place", func(p *place) { p.free(); p.free() }, true, false},
		{"the end", func(p *place) { p.close() }, true, false},
		{"place and the end", func(p *place) { p.free(); p.close(); p.close() }, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p place
			p.free() // before it asks: does not count
			c := p.ask()
			tt.do(&p)
			if got := answered(c); got != tt.answered || p.asked() != tt.asked {
				t.Errorf("answered %v, asked %v", got, p.asked())
			}
		})
	}
	var p place
	p.close()
	if !answered(p.ask()) {
		t.Error("asked after the end: not answered")
	}
}

// Whichever is first, the reader that waits hears of the end.
func TestPlaceEndsWhileTheReaderAsks(t *testing.T) {
	for range 2000 {
		var p place
		var both sync.WaitGroup
		both.Go(func() {
			for !p.closed() {
				<-p.ask()
			}
		})
		both.Go(p.free)
		both.Go(p.close)
		both.Wait()
	}
}
