// Package mailbox is the queue in front of every actor: four bounded lanes, a
// list of raised signals and protoactor's system messages, served by one task
// of the scheduler.
//
// # What it guarantees
//
// A post never waits. It ends in an outcome at once, and what was accepted is
// either handed to the actor exactly once or handed to Config.Removed with the
// reason it was not. The single exception is the message during which the
// actor panicked: it counts as handled.
//
// Within one lane messages of one sender stay in order. A turn serves the
// lanes by weight, so control always passes and never starves the others. A
// batch ends after 64 messages, 256 KiB or 1 ms, whichever comes first.
//
// Signals are the slots that can never be full: a Signal is a node that its
// owner provides once, and raising it again before it was handled only adds
// bits. So the list holds at most as many entries as there are nodes, and
// timers, leaves and completions need no room in a lane.
//
// System messages (start, stop, restart, a child's end or failure) are never
// refused and come before every batch. From the moment a Stop is posted the
// mailbox is closed: posts are told Closed, nothing more is delivered, and
// what still waited goes to Config.Removed.
//
// # Who runs what
//
// The mailbox has no goroutine. Posts run on the poster's goroutine under one
// short lock; everything the actor does runs inside Run, on the worker that the
// scheduler chose, one at a time. Config.Removed is called without the lock, by
// the poster for what a post pushed out and by the worker for the rest.
//
// The worker claims up to 16 messages under one lock; what an interrupted batch
// did not hand out goes back to its place, where a newer message is queued
// behind it instead of being coalesced into it.
//
// # What bounds it
//
// Each lane by Config.Items and Config.Bytes (control by ControlItems and
// ControlBytes), all of them together by Config.Account, signals by their nodes.
// System messages are bounded by the number of children and watchers.
package mailbox
