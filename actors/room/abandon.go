package room

import "github.com/yaza-dev/pulse/backpressure"

// Abandon takes the room away from a handler that does not return, on the
// goroutine of whoever noticed: everything that the shell owns passes over in one
// atomic step, which only succeeds while the handler's code is what runs. The
// members are told, what waits is answered, and the goroutine that is stuck finds
// on its return that nothing of the room is its own any more. False: there was
// nothing to take.
func (r *Room) Abandon() bool {
	if r.handler == nil || !r.handler.abandon(r.takeOver) {
		return false
	}
	r.cfg.Logger.Error("handler does not return: room stopped", "tenant", r.cfg.Topic.Tenant, "room_kind", r.cfg.Policy.Name)
	return true
}

func (r *Room) takeOver() {
	r.turn = nil
	r.handler.handler = nil
	r.shut()
	r.removed(r.hand, backpressure.Closed)
	r.mb.Abandon()
}
