// Package bridge says what a node needs from whatever carries events, leases
// and presence between nodes: three small interfaces, no implementation.
//
//   - Broker: the history of every topic and the way of events to the nodes
//     that have interest in it. It alone gives positions, and it remembers what
//     must not happen twice.
//   - Leases: which node holds a session, fenced by generations.
//   - Presence: who is in a room, counted over all nodes.
//
// # How every call behaves
//
// Every method but Close may be called from any goroutine, a callback of the
// same bridge included, and returns at once: it never waits for a network, a
// disk or another caller's work. What it has to say comes by a callback, which is
// called exactly once for every call, on any goroutine, perhaps before the call
// has returned. Callbacks and sinks only post: they never block, and an
// implementation holds no lock while it calls one. After Close every callback
// still outstanding has been called or will be, and every later call is
// answered with CodeUnavailable.
//
// # What is promised about order and loss
//
// Calls of one goroutine about one topic take effect in the order in which they
// were made; their callbacks may come in any order. A sink gets the events of a
// topic in offset order, but the way to it may lose some: it is then told by
// Gap, within bounded time, how far the topic is, and reads the rest from the
// history. A sink that follows three rules misses nothing and repeats nothing:
// within its epoch, deliver the offset after its last, drop what is at or below
// it, read from its position when it is higher. For a change of epoch see
// Batch.Previous. bridgetest has such a sink (Follower), the suite that every
// Broker passes, and a wrapper that makes the way as bad as it may be.
//
// # Who owns what
//
// An event handed over is shared and immutable from then on. The history of a
// topic lives in the Broker alone, bounded by the Retention that comes with
// each publish. Goroutines belong to the implementations and end with Close.
package bridge
