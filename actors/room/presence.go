package room

import (
	"slices"
	"strings"
	"time"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/supervision"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

const (
	// presenceData is the largest data of a member, in bytes.
	presenceData = 1 << 10
	// presencePatience is how long a join waits for what it is to be told of the
	// other members. Then it is answered without, and told later.
	presencePatience = time.Second
)

var (
	errPresenceData  = codec.NewError(codec.CodeTooLarge, "data of a member larger than 1 KiB")
	errPresenceQuota = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeTenant, time.Second, "no budget left for members")
)

// presence is what a room of a kind with presence knows of who is in it: the
// roster of this node, which the bridge is told of, and the view over all nodes,
// which members are told of.
//
//	joins, leaves ─▶ roster ─▶ report ─▶ bridge ─▶ changes ─▶ view ─▶ log ─▶ frames
//	                                       └────▶ pages ──────┘
//
// One report and one page are on their way at most; what comes meanwhile is
// gathered for the next. Owned by the room's actor.
type presence struct {
	room     *Room            // immutable
	source   bridge.Presence  // immutable
	arrivals presenceArrivals // shared with the bridge's goroutines
	timer    scheduler.Timer
	armed    int64 // when the timer fires; 0: never, or for nothing

	roster  *roster
	booked  int64       // of roster.bytes, in the tenant's ledger
	flying  *report     // nil: none
	whole   bool        // the next report is of everybody
	sent    bool        // there was one, so that at the end there is one more
	ack     bridge.Mark // of the last that landed
	retryAt int64       // when the next may go, after one that failed; 0: at once
	failed  supervision.Backoff

	view       *view
	listing    *reading // whose page is on its way; nil: none is
	relistAt   int64    // as retryAt
	listFailed supervision.Backoff

	waiting []*member // whose join waits to see itself, in order
	busy    bool      // the room may not end, as of the last flush

	telling
}

// sight is what a member who asked to see the others has been told.
type sight struct {
	informed bool        // its own join has been seen
	need     bridge.Mark // at which it is
	until    int64       // how long its join waits
	in       bool        // it is told
	place    int         // in telling.askers
	seq      uint64      // the mark that it knows
	stale    bool        // it knows none
	pass     uint32      // the last that has served it
}

func newPresence(r *Room) *presence {
	p := &presence{
		room: r, source: r.cfg.Presence, roster: newRoster(), failed: readBackoff(), listFailed: readBackoff(),
	}
	p.view = newView(r.cfg.Policy.PresenceLimit, r.cfg.MaxSnapshot, func(subject string) bool { return p.roster.has(subject) })
	p.arrivals.room = r.mb
	p.arrivals.signal.InitWork(&p.arrivals)
	p.timer.Init(func() { r.mb.Raise(&p.arrivals.signal, presenceTimed) })
	return p
}

// enter makes a member whose join is being handled present. wait: what it is to
// be told is not known yet, and its join goes on later.
func (p *presence) enter(m *member) (wait bool, err *codec.Error) {
	data := m.info.Data
	if data.Len() > presenceData {
		return false, errPresenceData
	}
	cost := int64(entryCost + data.Len())
	if !p.room.cfg.Present.Charge(cost) {
		return false, errPresenceQuota
	}
	p.booked += cost
	p.roster.join(m, data)
	p.book()
	if !m.Presence || p.informed(m) {
		return false, nil
	}
	if m.leaving {
		return false, errLeft
	}
	m.sight.until = p.room.turn.Now() + int64(presencePatience)
	m.become(joining)
	p.waiting = append(p.waiting, m)
	return true, nil
}

// leave is the end of a membership. lost: of its connection alone.
func (p *presence) leave(m *member, lost bool) {
	if lost && p.room.cfg.Grace > 0 && p.room.phase != ended {
		p.roster.lose(m, p.room.turn.Now()+int64(p.room.cfg.Grace))
	} else {
		p.roster.leave(m)
	}
	p.book()
	p.remove(m)
}

// book keeps the ledger.
func (p *presence) book() {
	if n := p.roster.bytes - p.booked; n > 0 {
		p.room.cfg.Present.Force(n)
	} else {
		p.room.cfg.Present.Release(-n)
	}
	p.booked = p.roster.bytes
	p.list = nil // the numbers of sessions are in it
}

// away: the bridge does not answer at present, so that nobody waits for it.
func (p *presence) away() bool { return p.retryAt != 0 || p.relistAt != 0 }

// informed: the view shows the member itself, and once it did it always does.
func (p *presence) informed(m *member) bool {
	s := &m.sight
	if !s.informed && p.roster.settled(m.Subject) {
		if s.need.Epoch != p.ack.Epoch {
			s.need = p.ack // the first, or what the bridge has lost and taken again
		}
		s.informed = p.view.reached(s.need)
	}
	return s.informed && p.view.whole
}

// signalled takes what the bridge has brought.
func (p *presence) signalled(bits uint32) {
	if bits&presenceTimed != 0 {
		p.armed = 0
	}
	if bits&presenceLanded != 0 {
		p.landed()
	}
	if bits&presenceListed != 0 {
		p.listed()
	}
	if bits&presenceArrived != 0 {
		anew, changes := p.arrivals.take()
		if anew {
			p.view.anew()
		}
		for _, c := range changes {
			p.moved(p.view.changed(c))
		}
	}
}

// landed takes the answer to a report.
func (p *presence) landed() {
	rep, a := p.flying, p.arrivals.landed
	p.flying = nil
	if a.err == nil {
		p.roster.landed(*rep)
		p.ack, p.retryAt, p.failed = a.v, 0, readBackoff()
		return
	}
	p.roster.failed(*rep)
	p.whole = p.whole || rep.Whole
	p.retryAt = p.after(&p.failed)
}

// listed takes the answer to a List.
func (p *presence) listed() {
	r, a := p.listing, p.arrivals.listed
	p.listing, p.arrivals.listed = nil, answered[bridge.MemberPage]{}
	if a.err == nil {
		p.relistAt, p.listFailed = 0, readBackoff()
		p.moved(p.view.page(r, a.v))
		return
	}
	p.view.failed(r)
	p.relistAt = p.after(&p.listFailed)
}

func (p *presence) after(b *supervision.Backoff) int64 {
	delay, _ := b.Next(time.Now())
	return p.room.turn.Now() + int64(delay)
}

// moved is what a move of the view leads to.
func (p *presence) moved(s step, moved bool, back []string) {
	for _, subject := range back {
		p.roster.again(subject)
	}
	if moved {
		p.note(s)
	}
}

// flush does what the batch has led to.
func (p *presence) flush() {
	now := p.room.turn.Now()
	if p.roster.expire(now) {
		p.book()
	}
	p.report(now)
	p.ask(now)
	p.release(now)
	p.tell(now)
	p.arm(now)
	busy := !p.roster.empty() || p.flying != nil || p.listing != nil
	if p.busy && !busy {
		p.room.rest()
	}
	p.busy = busy
}

// report tells the bridge who is here.
func (p *presence) report(now int64) {
	if p.view.broken {
		p.view.broken, p.whole = false, true
	}
	p.whole = p.roster.forget() || p.whole
	if p.flying != nil || p.retryAt > now || len(p.roster.dirty) == 0 && !(p.whole && (p.sent || !p.roster.empty())) {
		return
	}
	rep := p.roster.report(p.whole)
	p.flying, p.whole, p.sent = &rep, false, true
	p.source.Change(p.room.cfg.Topic, p.room.cfg.Generation(), rep.PresenceUpdate, p.arrivals.land)
}

// ask reads the list that the view wants.
func (p *presence) ask(now int64) {
	if p.listing != nil || p.relistAt > now {
		return
	}
	if p.listing = p.view.wants(); p.listing != nil {
		p.source.List(p.room.cfg.Topic, p.listing.after, viewPage, p.arrivals.list)
	}
}

// release goes on with the joins that need not wait any more. Each stays in the
// list until it is answered: a handler may not return on the way.
func (p *presence) release(now int64) {
	r := p.room
	if r.phase != open || r.handler != nil && !r.handler.ready(r.seq.pos) {
		return
	}
	for i, served := 0, 0; i < len(p.waiting); {
		if served == scheduler.Slice {
			r.mb.Raise(&p.arrivals.signal, presenceTimed)
			return
		}
		m := p.waiting[i]
		if m.state == joining && !p.informed(m) && !p.away() && now < m.sight.until {
			i++
			continue
		}
		if m.state == joining {
			served++
			r.admit(m)
		}
		if i >= len(p.waiting) || p.waiting[i] != m {
			return // the room has ended
		}
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// show puts what a member sees of the others into the answer to its join.
func (p *presence) show(m *member, ok *codec.JoinResult) {
	if !m.Presence {
		return
	}
	p.add(m)
	if !p.informed(m) {
		m.sight.stale = true
		p.news = true
		return
	}
	v := p.view
	m.sight.seq = v.mark.Seq
	ok.PE, ok.Seq, ok.Count = v.mark.Epoch, v.mark.Seq, v.number()
	switch {
	case !v.listed:
	case v.bytes+ok.Data.Len() <= v.most:
		ok.Members = p.members()
	default:
		m.sight.stale = true // the list, which does not fit beside the snapshot
		p.news = true
	}
}

// members are the view's, in order of subject, with at least the sessions that
// are on this node. The list is shared.
func (p *presence) members() []codec.Member {
	if p.list == nil {
		p.list = make([]codec.Member, 0, len(p.view.members))
		for _, m := range p.view.members {
			m := m.Member
			m.Sessions = max(m.Sessions, p.roster.sessions(m.Subject))
			p.list = append(p.list, m)
		}
		slices.SortFunc(p.list, func(a, b codec.Member) int { return strings.Compare(a.Subject, b.Subject) })
	}
	return p.list
}

// arm sets the timer to what is due next.
func (p *presence) arm(now int64) {
	var next int64
	earlier := func(at int64) { // what is past waits for something else
		if at > now && (next == 0 || at < next) {
			next = at
		}
	}
	earlier(p.roster.deadline())
	earlier(p.retryAt)
	earlier(p.relistAt)
	earlier(p.due)
	if len(p.waiting) > 0 {
		earlier(p.waiting[0].sight.until)
	}
	if next != 0 && next != p.armed {
		p.room.cfg.Wheel.Set(&p.timer, max(time.Duration(next-now), scheduler.Tick))
	}
	p.armed = next
}

// refuse answers the joins that wait: the room has ended.
func (p *presence) refuse() {
	waiting := p.waiting
	p.waiting = nil
	for _, m := range waiting {
		if m.state == joining {
			p.room.refuseJoin(m, message.Unavailable(codec.ScopeRoom))
		}
	}
}

// shut makes everybody leave.
func (p *presence) shut() {
	p.source.Unwatch(p.room.cfg.Topic, &p.arrivals)
	if p.sent {
		p.sent = false
		gone := bridge.PresenceUpdate{Whole: true}
		p.source.Change(p.room.cfg.Topic, p.room.cfg.Generation(), gone, func(bridge.Mark, *codec.Error) {})
	}
	p.room.cfg.Wheel.Clear(&p.timer)
	p.roster = newRoster()
	p.book()
}
