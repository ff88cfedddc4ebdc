// Package memory is the bridge of a node that stands alone: it keeps history in
// the process and brings it to sinks of the same process.
//
// # What it guarantees
//
// Everything that bridge.Broker promises, and more than it asks: sinks get every
// event once, in order, with a Gap only when the outbox of a topic overflows;
// done is called before its call has returned, on the caller's goroutine. Sinks
// are called on the goroutine of whoever publishes or subscribes. History never regresses while the process lives, so a topic keeps
// one epoch for its record's life and Batch.Previous is never set. The end of
// the process loses everything: an accepted event is in this memory and nowhere
// else.
//
// Presence counts one node's members by itself, with everything that
// bridge.Presence promises: see there.
//
// # How it works
//
// One lock per tenant guards its topics and is held for the bookkeeping alone,
// never while a callback or a sink runs. Order outlives the lock by the outbox
// of each topic: whoever finds nobody handing out takes that on, and goes on
// until the outbox is empty; everyone else leaves his delivery there. So a call
// costs two lockings, and there is no goroutine per topic.
//
// # What bounds it
//
// Bytes are charged to an account per tenant under the node's: records, kept
// events and remembered dedup keys. A kept event is charged one encoding beside
// itself, because those that members caused stay attached to it. Where the
// tenant has no budget left its oldest event goes, whatever its topic; where the
// node has none, those of the tenant that holds the most history, so that no
// tenant can starve another. What does not fit even then is refused with
// quota_exceeded. Dedup keys are never forgotten early, since their promise is
// exact: a topic holds 262,144, and beyond, or without budget, a publication
// with a new key is refused. Results of commands count by their bytes; one that
// there is no budget for is not kept, and its repeats are told so. In a topic
// 1,024 may wait for commands that others do. An outbox holds 1,024 deliveries
// and 4,096 events; beyond, sinks get a Gap instead.
//
// A record without history, keys and subscriptions ends an hour after history
// would have, and, if somebody has ever joined by position or subscription, not
// before a day after the last write or join. Then nothing of the topic is left.
//
// Leases are a map under one lock, a record each of some 70 bytes, in a store that
// several nodes of one process may share; renewals sweep what has ended.
//
// # Goroutines
//
// One, the sweeper, owned by Broker from New to Close. Every ten seconds it
// visits all records and removes what its age has ended, attempts at commands
// that nobody settles among it; reads and publishes do
// not wait for it, they look at ages themselves.
package memory
