// Package backpressure holds the vocabulary of bounded queues: lanes and their weights, overflow policies, outcomes, the bounded lane
// itself and the ledger of bytes.
//
// It guarantees that nothing grows past a declared bound except through PushReserved and Force, whose callers hold a reservation; that a
// full lane answers at once with an Outcome; and that whatever leaves a lane without being popped is handed back to the caller.
//
// Nothing here starts a goroutine, reads a clock or logs. Ring, Queue and Picker are plain values of whoever holds them, without locks;
// Account is atomic and shared.
//
// The bounds: a Queue by its Items and Bytes, its coalescing index by its items; an Account by its limit and those of its parents.
package backpressure
