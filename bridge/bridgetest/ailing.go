package bridgetest

import "github.com/yaza-dev/pulse/bridge"

// Ailing is a Broker whose health is what a test says, and which works all the
// same. It owns the Broker in it.
type Ailing struct {
	bridge.Broker
	condition bridge.Condition
}

// NewAiling makes b one, that is up.
func NewAiling(b bridge.Broker) *Ailing {
	a := &Ailing{Broker: b}
	a.Set(bridge.Health{State: bridge.Up})
	return a
}

// Set changes the health, and tells whoever watches.
func (a *Ailing) Set(h bridge.Health) { a.condition.Set(h) }

// Health implements bridge.Broker.
func (a *Ailing) Health() bridge.Health { return a.condition.Health() }

// Watch implements bridge.Broker.
func (a *Ailing) Watch(changed func(bridge.Health)) (stop func()) { return a.condition.Watch(changed) }
