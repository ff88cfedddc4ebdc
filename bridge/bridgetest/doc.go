// Package bridgetest is how a bridge is judged and how its users are tried.
//
//   - TestBroker is the suite that every Broker passes; TestHostile shows that a
//     Follower over it misses and repeats nothing on the worst way.
//   - TestPresence is the suite that every Presence passes.
//   - Hostile wraps a Broker and makes it as slow, forgetful and repetitive as
//     the interface allows: what works over it works over any implementation.
//   - Ailing wraps a Broker and makes its health what a test says.
//   - Follower is the plain sink that keeps a gap-free log by the three rules of
//     package bridge, slow and obvious, to compare others with.
//
// A Hostile owns one goroutine, which ends at its Close; a Follower none. What
// waits in a Hostile is bounded by the calls outstanding and by 10,000 arrivals.
package bridgetest
