package bridgetest

import (
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

func testClose(t *testing.T, factory Factory) {
	room := topicOf("acme", "chat:1")

	t.Run("everything outstanding is completed, once", func(t *testing.T) {
		tr := begin(t, factory)
		const callers, calls = 4, 100
		done := newGate(callers * calls * 3)
		begun := newGate(callers)
		for range callers {
			go func() {
				begun.pass()
				for range calls {
					tr.Publish(room, plenty, []bridge.Publication{tr.buffered(room)}, func(p []bridge.Published) {
						if p[0].Err != nil && p[0].Err.Code != codec.CodeUnavailable {
							t.Errorf("publish: %v", p[0].Err)
						}
						done.pass()
					})
					tr.Read(room, bridge.ReadRequest{Limit: 3}, func(_ bridge.Page, err *codec.Error) {
						if err != nil && err.Code != codec.CodeUnavailable {
							t.Errorf("read: %v", err)
						}
						done.pass()
					})
					tr.Subscribe(room, &onlySubscribed{done})
				}
			}()
		}
		begun.wait(t)
		tr.Close()
		done.wait(t)
	})

	t.Run("later calls are unavailable", func(t *testing.T) {
		tr := begin(t, factory)
		tr.publish(room, plenty, tr.buffered(room))
		if h := tr.Health(); h.State != bridge.Up || h.Since.IsZero() {
			t.Errorf("health before: %+v", h)
		}
		var told []bridge.State
		tr.Watch(func(h bridge.Health) { told = append(told, h.State) })
		tr.Close()
		tr.Close()
		if want := []bridge.State{bridge.Up, bridge.Down}; !slices.Equal(told, want) {
			t.Errorf("who watches was told %v, want %v", told, want)
		}
		passing := bridge.Publication{Event: tr.event(room, 8)}
		for i, p := range tr.publish(room, plenty, tr.buffered(room), passing) {
			if p.Err == nil || p.Err.Code != codec.CodeUnavailable {
				t.Errorf("publication %d: %+v", i, p)
			}
		}
		refused := make(chan *codec.Error, 1)
		tr.Read(room, bridge.ReadRequest{Limit: 1}, func(_ bridge.Page, err *codec.Error) { refused <- err })
		if err := receive(t, refused, "a page"); err == nil || err.Code != codec.CodeUnavailable {
			t.Errorf("read: %v", err)
		}
		r := newRecorder()
		tr.Subscribe(room, r)
		if err := receive(t, r.refused, "Subscribed"); err.Code != codec.CodeUnavailable {
			t.Errorf("subscribe: %v", err)
		}
		tr.Unsubscribe(room, r)
		if h := tr.Health(); h.State != bridge.Down || h.Why == "" {
			t.Errorf("health after: %+v", h)
		}
	})
}

// onlySubscribed counts that Subscribed comes.
type onlySubscribed struct{ done *gate }

func (s *onlySubscribed) Subscribed(codec.Position, *codec.Error) { s.done.pass() }
func (s *onlySubscribed) Arrived(bridge.Batch)                    {}
func (s *onlySubscribed) Gap(codec.Position)                      {}
