package redis

import (
	"time"

	"github.com/yaza-dev/pulse/bridge"
)

// probeEvery is how often each link is asked whether what is published arrives on
// it. One that has not been heard when the next is due is missed.
const probeEvery = 2 * time.Second

// How often each link's server is inspected, and if it is not known to be fit.
const (
	inspectEvery = 30 * time.Second
	inspectAgain = 500 * time.Millisecond
)

// machine is the state of the bridge: from what happens to links and commands it
// says how well events reach other nodes, and what to do about it. It is pure, and
// has one owner.
//
//	connecting ─ links settled and heard, servers fit ─▶ up ◀─▶ degraded
//	     ▲ never again                                   │ ▲
//	                                   any link is lost, │ │ all settled,
//	                                   any command fails ▼ │ all fit
//	                                                    down
type machine struct {
	links  map[string]*linkState // none before the servers are known
	latest uint64                // of the pipelines of which was told
	closed bool

	health  bridge.Health
	outages uint64 // times that delivery was lost
}

// linkState is one link, or the lack of one.
type linkState struct {
	generation uint64 // of the link, so that what was said of an earlier one is told apart
	why        string // there is none, and why
	unfit      string // why commands fail, or may fail; empty: its server was found fit
	advice     string // what is wrong with a server that is fit; empty: nothing
	settled    bool   // all channels are subscribed, all positions compared, and gaps filled
	heard      bool   // a probe has come on it
	probed     bool   // a probe is out
	next       time.Time
	look       time.Time // when to inspect its server
}

func newMachine(now time.Time) *machine {
	return &machine{links: make(map[string]*linkState), health: bridge.Health{State: bridge.Connecting, Why: "not connected yet", Since: now}}
}

// added: there is one more server to have a link with.
func (m *machine) added(link string, now time.Time) {
	m.links[link] = &linkState{why: "not connected yet"}
	m.judge(now)
}

// removed: and one less.
func (m *machine) removed(link string, now time.Time) {
	delete(m.links, link)
	m.judge(now)
}

// lost: the link is gone.
func (m *machine) lost(link string, why string, now time.Time) {
	if m.links[link] != nil {
		m.links[link] = &linkState{why: why}
		m.judge(now)
	}
}

// linked: a new link stands; nothing is subscribed on it yet. What it and its server are
// worth is known when it has brought a probe and that was inspected, which is due at once.
func (m *machine) linked(link string, generation uint64, now time.Time) {
	if m.links[link] != nil {
		m.links[link] = &linkState{generation: generation, unfit: "not connected yet", next: now, look: now}
		m.judge(now)
	}
}

// settled: what this node wants is subscribed, and what it had missed is read.
func (m *machine) settled(link string, generation uint64, now time.Time) {
	if l := m.links[link]; l != nil && l.generation == generation {
		l.settled = true
		m.judge(now)
	}
}

// called: the nth commands came back, with their worst fault. What is told late says
// nothing of how it is now. That others get through does not make a server fit: it may
// refuse whatever writes, or one command.
func (m *machine) called(f fault, n uint64, now time.Time) {
	if n <= m.latest {
		return
	}
	if m.latest = n; !f.ails() {
		return
	}
	for _, l := range m.links {
		if l.why == "" {
			l.unfit, l.look = why[f], now
		}
	}
	m.judge(now)
}

// inspected: a link's server is fit, or why it is not.
func (m *machine) inspected(link string, generation uint64, unfit, advice string, now time.Time) {
	if l := m.links[link]; l != nil && l.generation == generation {
		if l.unfit, l.advice = unfit, advice; unfit == "" {
			l.look = now.Add(inspectEvery)
		}
		m.judge(now)
	}
}

func (m *machine) close(now time.Time) {
	m.closed = true
	m.judge(now)
}

// due says what is to be done about a link at this instant: publish a probe, or
// replace it, since it has not brought the last one; and whether to inspect its server.
func (m *machine) due(link string, now time.Time) (probe, replace, inspect bool) {
	l := m.links[link]
	if l == nil || l.why != "" {
		return false, false, false
	}
	if inspect = !now.Before(l.look); inspect {
		l.look = now.Add(inspectAgain)
	}
	if now.Before(l.next) {
		return false, false, inspect
	}
	l.next = now.Add(probeEvery)
	if l.probed && l.unfit == "" {
		return false, true, inspect
	}
	l.probed = true
	return true, false, inspect
}

// heard: the probe has come.
func (m *machine) heard(link string, generation uint64, now time.Time) {
	if l := m.links[link]; l != nil && l.generation == generation {
		l.probed, l.heard = false, true
		m.judge(now)
	}
}

// unsent: the probe could not be published, which is not the link's fault.
func (m *machine) unsent(link string, generation uint64) {
	if l := m.links[link]; l != nil && l.generation == generation {
		l.probed = false
	}
}

// judge finds the state. Since changes with the state only.
func (m *machine) judge(now time.Time) {
	state, why := bridge.Up, ""
	advice := ""
	for _, l := range m.links {
		advice = max(advice, l.advice)
	}
	switch broken := m.broken(); {
	case m.closed:
		state, why = bridge.Down, "closed"
	case broken != "" && m.health.State == bridge.Connecting:
		state, why = bridge.Connecting, broken
	case broken != "":
		state, why = bridge.Down, broken
	case advice != "":
		state, why = bridge.Degraded, advice
	}
	if m.health.State.Live() && state == bridge.Down && !m.closed {
		m.outages++
	}
	if state != m.health.State {
		m.health.State, m.health.Since = state, now
	}
	m.health.Why = why
}

// broken says why events do not come, or do not reach others; empty: they do.
func (m *machine) broken() string {
	if len(m.links) == 0 {
		return "not connected yet"
	}
	reason := ""
	for _, l := range m.links {
		reason = max(reason, l.why, l.unfit) // which of several is told does not depend on the map
	}
	if reason != "" {
		return reason
	}
	for _, l := range m.links {
		if !l.settled {
			return "subscribing anew"
		}
		if !l.heard {
			reason = "what is published does not come back"
		}
	}
	return reason
}
