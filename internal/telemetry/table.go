package telemetry

// How many are measured for one that is.
const (
	EveryMessage = 64  // messages in a mailbox
	EveryDrain   = 256 // drains of one worker
	EveryCall    = 8   // calls of a handler, and of the memory bridge
)

// The instruments, each named once.
var (
	Connections = Instrument{Name: "pulse.connections", Kind: Gauge, Doc: "Sockets that are open, before their hello too."}
	Sessions    = Instrument{Name: "pulse.sessions", Kind: Gauge, Labels: []string{State},
		Doc: "Sessions that this node holds: `attached` to a connection, or `detached` and waiting to be resumed."}
	Actors = Instrument{Name: "pulse.actors", Kind: Gauge, Labels: []string{KindOf}, Doc: "Actors, by kind: `tenant`, `room`, `session`."}
	Rooms  = Instrument{Name: "pulse.rooms", Kind: Gauge, Labels: []string{RoomKind},
		Doc: "Rooms whose actor lives on this node. A room that nobody is in costs its history alone after a while."}
	Members      = Instrument{Name: "pulse.members", Kind: Gauge, Doc: "Memberships of this node's sessions."}
	MailboxDepth = Instrument{Name: "pulse.mailbox.depth", Kind: Gauge, Labels: []string{KindOf, Lane},
		Doc: "Messages that wait for actors of a kind, over all of them; `outbound`: frames that wait for clients."}
	Ledger = Instrument{Name: "pulse.ledger", Kind: Gauge, Unit: "By", Labels: []string{Scope},
		Doc: "Bytes booked for `queues`, for `replay`, and for `history` in the memory bridge."}
	Workers = Instrument{Name: "pulse.workers", Kind: Gauge, Labels: []string{State},
		Doc: "Workers that are `busy`, `idle`, or `stuck` in a handler that does not return."}
	WorkerBusy = Instrument{Name: "pulse.worker.busy", Kind: Counter, Unit: "s",
		Doc: "Time that workers have worked. Its rate over the number of workers is their occupancy."}
	TasksReady = Instrument{Name: "pulse.tasks.ready", Kind: Gauge, Doc: "Actors with work that wait for a worker."}
	Watchdog   = Instrument{Name: "pulse.watchdog.hits", Kind: Counter, Doc: "Times that an actor held a worker for a second."}
	Blocking   = Instrument{Name: "pulse.blocking", Kind: Gauge, Labels: []string{State},
		Doc: "Pieces of work on the blocking pool: `running` or `waiting`."}
	Timers = Instrument{Name: "pulse.timers", Kind: Gauge, Doc: "Timers that are set."}

	QueueDelay = Instrument{Name: "pulse.queue.delay", Kind: Histogram, Unit: "s", Labels: []string{KindOf, Lane}, Sampled: EveryMessage, Buckets: seconds,
		Doc: "How long a message waited for its actor; `outbound`: a session with frames to write for a worker (one drain in 256)."}
	Handler = Instrument{Name: "pulse.handler", Kind: Histogram, Unit: "s", Labels: []string{RoomKind}, Sampled: EveryCall, Buckets: seconds,
		Doc: "How long a call of a room's handler took."}
	Write = Instrument{Name: "pulse.write", Kind: Histogram, Unit: "s", Sampled: EveryDrain, Buckets: seconds,
		Doc: "How long handing frames to a socket took, which never waits for the client."}

	Outcomes = Instrument{Name: "pulse.outcomes", Kind: Counter, Labels: []string{RoomKind, Outcome},
		Doc: "Publishes to kinds that are declared, by what the publisher was told: `accepted`, `coalesced`, `duplicate`, or the code of the refusal."}
	Overflow = Instrument{Name: "pulse.overflow", Kind: Counter, Labels: []string{Policy, Lane, Action},
		Doc: "Events that a full client queue cost one member: `dropped`, or `coalesced` into a newer one."}
	Shed    = Instrument{Name: "pulse.shed", Kind: Counter, Labels: []string{Lane}, Doc: "Events that gave way in a full client queue to ones that matter more."}
	Expired = Instrument{Name: "pulse.expired", Kind: Counter, Labels: []string{Lane}, Doc: "Events that waited for a client beyond their time to live."}
	Behind  = Instrument{Name: "pulse.behind", Kind: Counter, Labels: []string{Reason},
		Doc: "Times that a member was left to be fed from the history: its `queue` was full, or its window of events that it has not acknowledged (`unacked`)."}
	Fed      = Instrument{Name: "pulse.fed", Kind: Counter, Doc: "Events fed from the history, to members that were behind or resumed."}
	Resets   = Instrument{Name: "pulse.resets", Kind: Counter, Labels: []string{Reason}, Doc: "Resets told to members."}
	Closes   = Instrument{Name: "pulse.closes", Kind: Counter, Labels: []string{Cause}, Doc: "Connections that have ended, once each."}
	Protocol = Instrument{Name: "pulse.protocol.errors", Kind: Counter, Labels: []string{KindOf},
		Doc: "What clients sent that is no good frame: `malformed` ended the connection, the others were refused with that code."}
	Restarts = Instrument{Name: "pulse.restarts", Kind: Counter, Labels: []string{KindOf},
		Doc: "Actors that went on after a panic in the engine's own code, and `handler`s made anew after one in theirs."}
	SentFrames = Instrument{Name: "pulse.sent.frames", Kind: Counter, Doc: "Frames handed to sockets."}
	Sent       = Instrument{Name: "pulse.sent", Kind: Counter, Unit: "By", Doc: "Bytes handed to sockets, before TLS."}
	Messages   = Instrument{Name: "pulse.received.messages", Kind: Counter, Doc: "Messages of clients, after their hello."}
	Received   = Instrument{Name: "pulse.received", Kind: Counter, Unit: "By", Doc: "Their bytes, inflated."}

	TenantSessions = Instrument{Name: "pulse.tenant.sessions", Kind: Gauge, Labels: []string{Tenant},
		Doc: "Sessions of a tenant that are attached. Tenants beyond the cap (`telemetry.tenant_labels`) are summed up as `~other`."}
	TenantRooms = Instrument{Name: "pulse.tenant.rooms", Kind: Gauge, Labels: []string{Tenant}, Doc: "Rooms of a tenant, likewise."}
	TenantQueue = Instrument{Name: "pulse.tenant.queue", Kind: Gauge, Unit: "By", Labels: []string{Tenant}, Doc: "What the ledger has booked for its queues, likewise."}

	BrokerPublishes = Instrument{Name: "ws.broker.publishes_total", Kind: Counter, Labels: []string{RoomKind, Outcome},
		Doc: "Events handed to the bridge: `ok`, `duplicate`, or the code of the refusal."}
	BrokerDuration = Instrument{Name: "ws.broker.publish_duration_ms", Kind: Histogram, Buckets: milliseconds,
		Doc: "How long the bridge took to answer a batch of them, in milliseconds. Of the memory bridge one in 8 is measured."}
	BrokerReceives = Instrument{Name: "ws.broker.receives_total", Kind: Counter, Labels: []string{RoomKind}, Doc: "Events that the bridge brought to rooms of this node."}
	BrokerWrites   = Instrument{Name: "ws.broker.buffer_writes_total", Kind: Counter, Doc: "Events that went into a history."}
	BrokerReads    = Instrument{Name: "ws.broker.buffer_reads_total", Kind: Counter, Labels: []string{Hit},
		Doc: "Reads of a history: `hit` if there were events to return, else `miss`."}
	BrokerFilled = Instrument{Name: "ws.broker.gaps_filled_total", Kind: Counter, Labels: []string{RoomKind},
		Doc: "Gaps in what the bridge brought to rooms that were filled from the history, or turned out to be none."}
	BrokerUnfilled = Instrument{Name: "ws.broker.gaps_unfilled_total", Kind: Counter, Labels: []string{RoomKind},
		Doc: "Gaps that the history could not fill any more: members were reset."}
	BrokerOutages = Instrument{Name: "ws.broker.connection_lost_total", Kind: Counter,
		Doc: "Times that the bridge went from reaching the other nodes to not reaching them: an outage counts once, however many links fell."}
	BrokerResubscribed = Instrument{Name: "ws.broker.resubscriptions_total", Kind: Counter,
		Doc: "Channels that were subscribed anew, after the connection that carried them was lost."}
	BrokerProbes = Instrument{Name: "ws.broker.probe_misses_total", Kind: Counter,
		Doc: "Connections for subscriptions that were replaced since they brought nothing, though they stood."}
	BrokerUnreadable = Instrument{Name: "ws.broker.unreadable_total", Kind: Counter,
		Doc: "Messages and kept events that this build cannot read: damaged, or of a later version."}
	BrokerQueue = Instrument{Name: "ws.broker.queue_depth", Kind: Gauge, Doc: "Calls that wait for the bridge's store, or are under way."}
	BrokerLive  = Instrument{Name: "pulse.bridge.live", Kind: Gauge, Doc: "1 while the bridge reaches the other nodes, else 0."}

	Build = Instrument{Name: "pulse.build.info", Kind: Gauge, Labels: []string{Version, Revision, Go}, Doc: "1, of what was built."}
)

// All instruments, in the order of docs/metrics.md.
func All() []*Instrument {
	return []*Instrument{
		&Connections, &Sessions, &Actors, &Rooms, &Members, &MailboxDepth, &Ledger,
		&Messages, &Received, &SentFrames, &Sent, &Outcomes, &Closes, &Protocol,
		&QueueDelay, &Handler, &Write,
		&Overflow, &Shed, &Expired, &Behind, &Fed, &Resets,
		&Workers, &WorkerBusy, &TasksReady, &Watchdog, &Blocking, &Timers, &Restarts,
		&TenantSessions, &TenantRooms, &TenantQueue,
		&BrokerPublishes, &BrokerDuration, &BrokerReceives, &BrokerWrites, &BrokerReads,
		&BrokerFilled, &BrokerUnfilled, &BrokerOutages, &BrokerResubscribed, &BrokerProbes, &BrokerUnreadable, &BrokerQueue, &BrokerLive,
		&Build,
	}
}
