// Package supervision decides what happens to an actor that panicked.
//
// Backoff is the pure part: how long to wait before the next restart, and when
// to give up. Strategy is the thin part: one stateless object that implements
// protoactor's SupervisorStrategy for every supervisor of the engine and asks
// the failed child for its Rule, so that sessions, rooms, tenants and bridges
// are told apart without a strategy object (and, at the root, a guardian) each.
//
// It guarantees that an actor is never restarted in a hot loop, that a delayed
// restart does nothing when the child has ended meanwhile, and that the memory
// of failures is bounded by the rule's limit: protoactor's own statistics,
// which grow with every failure, are not used.
//
// There is no goroutine here. HandleFailure runs on the supervisor's turn, or
// for a root actor on its own, and the delayed restart on the timer of Clock;
// both only post.
package supervision
