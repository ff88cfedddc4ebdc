// Package actors is the engine's vocabulary over protoactor: what an actor is
// (Actor), how others reach it (Ref), how it is made (System.SpawnRoot,
// Context.Spawn), and the guard between it and protoactor. Sessions, rooms and
// tenants are written against this package alone.
//
// # What it guarantees
//
// Messages go through Ref.Post and its siblings, straight into the actor's
// mailbox, and have an outcome. protoactor's part is the life of actors: start,
// stop, restart, the tree of children and the supervision of failures.
//
// Whatever an actor's callbacks do, the tree comes down. A panic in Stopping,
// Stopped, Restart or ChildStopped is recovered here and reported, because
// protoactor would wait for that actor for ever. A panic in Receive or Started
// is a failure of the actor: its supervisor's rule for its kind decides. A panic
// value reaches no log: only its type and the stack do.
//
// An actor has no name: it is known by its Ref, and to protoactor by its PID. Nothing
// that was meant for an actor reaches a later one, and a Ref to an actor that has ended
// answers Closed.
//
// # Who runs what
//
// The package starts no goroutine. All callbacks of one actor run on scheduler
// workers, one at a time. Spawning takes one short lock per System.
//
// # What bounds it
//
// Mailboxes bound messages; the number of actors is bounded by who spawns them.
// Nothing is kept of an actor that has ended.
//
// # What is not used
//
// protoactor's mailboxes, dispatcher, middleware, decorators, receive timeouts,
// futures, Watch, PoisonPill, metrics and dead letter log: each costs per
// message or per actor, blocks a worker, or outlives the system. Its registry of names
// and its sets of children would cost each actor 200 bytes: table and family take their
// place.
package actors
