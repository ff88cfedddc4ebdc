// Package redis is the bridge of many nodes on one Redis: alone, behind Sentinel, or a
// Cluster. New finds the server by itself and never waits for it.
//
// # What it guarantees
//
// Everything that bridge.Broker promises. An event is accepted when it is in the buffer
// of one primary, with its place; one script, which nothing interrupts, gives the place,
// appends, trims and then publishes, so that whoever hears of an event can read it. Every
// position holds an epoch, which is new whenever history may have regressed: the topic's
// record is gone, a node has seen more than the server has, or another server became the
// primary, and something is published there. Past epochs are kept with their ends, so that
// who saw nothing of what was lost loses nothing.
//
// # The parts
//
//	Publish, Read, Attempt …                          sinks
//	      │ op                                          ▲ on the listener's goroutine
//	  ┌───▼──┐ batches ┌────────┐ pipelines   ┌─────────┴──┐ interest ┌──────┐
//	  │ line ├────────▶│ caller ├──▶ Redis    │  listener  ├─────────▶│ link │◀── Redis
//	  └──────┘◀────────┤        │◀── replies  │ (2, by hash│◀─────────┤      │ pub/sub
//	   pure     again  └───┬────┘             │ of channel)│ messages └──┬───┘
//	                       │ faults           └────────────┘             │ lost, linked
//	                       └────────────▶ machine (pure) ◀───────────────┘
//	                                      Health, Watch
//
// line keeps what waits: a strand for each topic or command, whose calls take effect in
// their order with one batch under way, and turns by tenant. caller sends what has
// gathered as one pipeline; while it is away more gathers, which makes the next batch,
// so that nothing waits for company when there is little. Batches of several rooms, or
// what asks for several heads, go as one script call. A batch has a token, which the
// topic's record remembers for each node: what was not answered is sent again as it was,
// and is answered as it was. Nothing is repeated that is only passed on.
//
// A keeper makes one link after another for each server: a connection for subscriptions
// that is never mended, so that whoever knows a link knows what it has missed. A listener
// owns the channels that hash to it, with their topics: it asks for a channel when the
// first sink comes and ends it when the last one goes, one command at a time, so that the
// last word counts. After a loss everything is subscribed anew in batches, those with
// traffic first; each position is then compared with the server's, and who may have
// missed something is told by Gap. The bridge is up again when that has been read, or 2 s
// later.
//
// What is missing is noticed by known heads: every answer and message raises what is
// known of a topic, and what has not come 200 ms later is told as a Gap. Each link must
// bring a probe that the node publishes every two seconds. And each quiet room is compared
// every Config.Check.
//
// # Sessions and presence
//
// Leases and Presence use the same caller and listeners. A session's hash says who holds
// it; one script claims it, one prolongs what a node holds, and who loses one is told by a
// message on its node's channel and, for certain, when it renews. One that was ended is
// remembered for 30 s, so that no late renewal brings it back.
//
// Presence is a hall for each topic: counts by subject, and whom each node has; hall.lua
// says how it is kept. Scripts take one node's change in, read a page, and take a dead node
// out. Each checks what it can see against what is counted, and begins the hall anew where
// a part is missing; who has the mark of another epoch, or is told so, tells all that it
// has. Changes come on a channel beside that of the events, so that rooms of kinds without
// presence hear nothing of it and a lost change means nothing for events. tenure and
// lookout (both pure) are a node's lease and what it may conclude from another's.
//
// # What a tenant may have
//
// budget (pure) estimates what a tenant's history takes on the server, as far as this node
// has written it and it is still kept; each live node admits an equal share of
// Config.TenantBytes, and knows by the census, a set in which nodes say that they live, how
// many there are. newRooms (pure) bounds how fast topics without a history are begun.
//
// # The machine
//
// It says how well events reach other nodes, from what happens to links and commands:
//
//	connecting ── every link settled, its server fit ─────▶ up ◀── advice ──▶ degraded
//	                                   ▲                     │                   │
//	                                   │ all is well again   ▼                   │
//	                                   └──────────────────  down ◀───────────────┘
//	                                              a link lost, commands failing
//
// An outage is counted when live delivery ends, however many connections fell. Which
// fault a server's answer is, and whether it is one of the server at all, is in faults.go.
// After one it counts nothing that some command gets through: inspect.lua says whether a
// server is fit, which it is when everything that a node does is allowed, and may be written.
//
// # What bounds what
//
// What waits for the server: Config.Outage in items, bytes and time, for each tenant a
// quarter. A call: 64 events and 64 KiB, or one event, or 64 heads. A pipeline: 256
// calls and 1 MiB; after an outage one of 256 events until it is answered. What waits
// for a listener: 8,192 messages and 8 MiB, then the link is not read; 65,536 things
// asked for, then subscriptions are refused. Comparisons: 64 under way for each
// listener. A page: 4,096 events and 4 MiB. Who waits for commands of others: 16,384.
// One call changes 512 subjects and 64 KiB, takes out 512 of a dead node, or prolongs
// 512 leases; 32 looks at halls, and sweeps of dead nodes, are under way for each
// listener, a thousand looks a second.
//
// # In Redis
//
// Names are made in names.go alone. Beside what the configuration's page lists, the
// record of a topic (the hash meta) has: a the age in ms, b the bytes of the events from c
// on, which is more than is kept if the oldest is not c, x when the times to live are set
// anew, k and n what a publish compares so as to read no more of it than it must,
// j whether somebody has joined, and t:<node> the node's last batch. A member ends in 20
// digits: when it was taken, in ms, and its size; as the rest of it is base64, it is
// decoded with the envelope, which passes over what follows it. Messages carry the same
// texts. The server's own clock decides all ages.
//
// # Goroutines
//
// Each ends with Close: two callers and their watch, two listeners, the pulse; for each
// server a keeper, and a writer for its link; in a cluster the scout. With a Presence one
// more, until that is closed. Timers of attempts
// run on none of these.
package redis
