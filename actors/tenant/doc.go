// Package tenant is the actor of one tenant on one node: parent and supervisor
// of its sessions and rooms, keeper of its quotas and of the directory in which
// its rooms are found.
//
// The directory is the one thing here that is not the actor's alone: sessions
// look rooms up in it from any goroutine, under a short lock. A room that is not
// there yet is entered with its mailbox, which takes messages at once, and the
// actor is told to start it; so whoever found it first and whoever finds it next
// post to the same mailbox, in their order, and nobody waits. Only the actor
// starts and ends rooms. A room ends itself by closing its mailbox in the same
// step in which it finds it empty; a message that comes too late is told Closed,
// and its sender asks the directory again.
//
// A session that takes over one of this tenant on this node is started in the turn
// in which the other stops counting, so that a tenant at its limit keeps it.
//
// Bounds: rooms and sessions by the tenant's limits, the actor's mailbox by
// mailboxItems, the directory by the rooms.
package tenant
