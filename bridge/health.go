package bridge

import (
	"sync"
	"time"
)

// State says how far a bridge reaches.
type State uint8

const (
	Connecting State = iota // not yet up for the first time
	Up                      // whole
	Degraded                // delivery is whole, something else is not: Health.Why
	Down                    // this node is alone; or the bridge is closed
)

var stateNames = [...]string{Connecting: "connecting", Up: "up", Degraded: "degraded", Down: "down"}

// String is a bounded metric label.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Live tells whether events come in time from the other nodes, and reach them. A
// bridge whose delivery lags must say Down and not Degraded, since clients are told
// by this alone.
func (s State) Live() bool { return s == Up || s == Degraded }

// Health is a bridge's state at one moment.
type Health struct {
	State State
	Why   string    // for operators, fixed text; empty when Up
	Since time.Time // when State began
}

// Condition is the Health of a bridge and those who watch it: what an
// implementation needs for Health and Watch. The zero value is Connecting, since
// the zero time.
type Condition struct {
	mu sync.Mutex
	// guarded by mu
	health   Health
	changes  uint64 // of health so far
	watchers map[*watcher]struct{}
}

// watcher hears of health, in one call at a time.
type watcher struct {
	changed func(Health) // immutable

	// guarded by the Condition's mu
	told    uint64 // changes that it knows of
	calling bool
}

// Health is the present one.
func (c *Condition) Health() Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// Set changes the health, and tells the watchers before it returns, or has whoever
// is telling one of them do so.
func (c *Condition) Set(h Health) {
	c.mu.Lock()
	c.health = h
	c.changes++
	list := make([]*watcher, 0, len(c.watchers))
	for w := range c.watchers {
		list = append(list, w)
	}
	c.mu.Unlock()
	for _, w := range list {
		c.tell(w)
	}
}

// Watch is Broker.Watch.
func (c *Condition) Watch(changed func(Health)) (stop func()) {
	w := &watcher{changed: changed}
	c.mu.Lock()
	if c.watchers == nil {
		c.watchers = make(map[*watcher]struct{})
	}
	c.watchers[w] = struct{}{}
	c.changes++ // so that w has something to be told
	c.mu.Unlock()
	c.tell(w)
	return func() {
		c.mu.Lock()
		delete(c.watchers, w)
		c.mu.Unlock()
	}
}

// tell calls w until it knows the latest, unless somebody does already.
func (c *Condition) tell(w *watcher) {
	for {
		c.mu.Lock()
		_, there := c.watchers[w]
		if !there || w.calling || w.told == c.changes {
			c.mu.Unlock()
			return
		}
		w.calling, w.told = true, c.changes
		h := c.health
		c.mu.Unlock()
		w.changed(h)
		c.mu.Lock()
		w.calling = false
		c.mu.Unlock()
	}
}
