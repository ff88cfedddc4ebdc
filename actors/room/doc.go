// Package room is the actor of one room on one node, and what an embedder needs
// to give a room its own code: Kind, Handler, Context.
//
// # Shell and handler
//
// The shell is the Room: members, positions, replies owed, recent events. The
// handler is the kind's own code, and may panic: then the request in hand is
// answered internal, a new handler is made from the last snapshot and the events
// since, and everything else stays. Over the limit of its backoff the room ends,
// and its members are told left: stopped.
//
// # The way of an event
//
//	publish ─▶ handler decides ─┬─▶ transient: fan-out
//	                            └─▶ buffered: Broker.Publish ─▶ done: reply
//	Broker ─▶ arrivals ─▶ sequencer ─▶ window ─▶ fan-out ─▶ members' queues
//	                                      └────▶ handler's Apply
//
// Only what comes back from the broker is fanned out, in offset order, so that
// every node sees one order. The sequencer (pure) hands each offset out once; a
// hole is read from the broker before what lies above it is delivered.
//
// # Commands, and what a handler has under way
//
// A command comes through the mailbox, in the interactive lane. One with a dedup
// key goes to the broker first, which says whether it is done here, was done, or is
// being done by another, whose result it then gets; so such a command may be
// overtaken by others. It is answered once, by whoever comes first: the handler at
// once or later (Reply), its deadline, which the caller's session looks after, the
// end of the room or of the handler. What it comes to after its deadline is still
// told to those who repeat it, up to a minute later.
//
// Errands are what a handler has asked for: calls at a time (After), ticks, the ends
// of work on the blocking pool (Go), commands that the broker has let through. They
// belong to one handler: nothing of them reaches the next. They wait for what
// requests wait for: a handler that is being made or lacks events, a fan-out under
// way. The room has one entry in the wheel for them, at the earliest.
//
// # Members
//
//	          ┌────── queue or window full ───┐
//	join ─▶ live                            behind(position) ◀─ join with a position
//	          └◀── a batch reached the head ──┘──▶ position no longer kept: reset, live
//
// A member that is behind is fed as its queue drains: from the window if it
// reaches down far enough, else from one read of the broker at a time, whose
// page serves all who wait. A member that has to acknowledge events is behind
// while its window of them is full, and wants more when it acknowledges. Replay
// after a join, resume, catching up and redelivery are this one mechanism.
//
// # Presence
//
// In a kind with presence every member is in the roster (pure), by session, and
// stays for the grace when its connection is lost; the roster says by subject what
// the bridge is to be told. The view (pure) is what the bridge tells of all nodes: a
// list within the kind's limit, else a number. Its moves are gathered in a log, from
// which each member is told what has changed since the mark that it knows, or is
// given the whole list when that is no place in the log: because its queue had no
// place, too much has changed, or the bridge began anew. Frames are made once for
// each mark. A join that wants to see the others is answered when the view shows it
// itself; where the bridge does not answer, without members, and told later.
//
// # Who runs what, and what bounds it
//
// Everything runs in the room's actor, on scheduler workers, one at a time; the
// broker's sink only queues. A fan-out serves scheduler.Slice members and then
// yields, while the room's requests wait. Bounds: the mailbox by the kind; what
// arrived and was not taken yet by arrivalsItems and arrivalsBytes (beyond, only
// the head is remembered and the rest is read); the window by the kind's history
// and the tenant's replay_bytes; publishes on their way to the broker by the
// mailbox's items, and commands under way by the same number; timers by MaxTimers,
// work by MaxWork and the tenant's share of the blocking pool; members present by
// the tenant's queue_bytes, what is shown of them by the kind's limit and a frame,
// what arrives of them and what is yet to be told by numbers beside their code.
package room
