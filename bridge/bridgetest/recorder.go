package bridgetest

import (
	"slices"
	"sync"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

// recorder writes down the calls that a sink gets, as they come.
type recorder struct {
	subscribed chan codec.Position
	refused    chan *codec.Error

	mu sync.Mutex
	// guarded by mu
	arrivals []*codec.Event
}

func newRecorder() *recorder {
	return &recorder{subscribed: make(chan codec.Position, 16), refused: make(chan *codec.Error, 16)}
}

func (r *recorder) Subscribed(head codec.Position, err *codec.Error) {
	if err != nil {
		r.refused <- err
		return
	}
	r.subscribed <- head
}

func (r *recorder) Arrived(b bridge.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrivals = append(r.arrivals, b.Events...)
}

func (r *recorder) Gap(codec.Position) {}

func (r *recorder) got() []*codec.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.arrivals)
}
