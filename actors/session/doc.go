// Package session is the actor of one connection: it authorises what the client
// asks for, sends it to rooms, and owns the queue of what the client is sent.
//
// # Life
//
//	hello ─▶ opening ─▶ open ─▶ closing ─▶ ended
//
// opening: the joins of the hello are under way, each for helloJoinTime at most;
// the welcome goes out when all are answered, and whatever rooms send meanwhile
// waits behind it. closing: what is queued goes out, until the write timeout.
// ended comes by one way only: the transport says that the connection has ended
// (Closed). What the client said before is handled; then the actor leaves its
// rooms and stops: for good if the cause of the end is final, else as one whose
// client may come back, to another actor of the same session.
//
// The credentials may be renewed meanwhile. They are looked at elsewhere, one
// request at a time, while the others wait on the tenant's ledger, and the answer
// comes as a signal in this actor's mailbox, so that none is taken for another
// connection's. The reply leads everything that waits; then the rooms that the new
// rights do not cover are told.
//
// Where an Authorizer is asked beside the grants, a request that takes a right waits for
// the answer, and those of the same room wait behind it (inquiry); the rest goes on. An
// answer for credentials that are no more is asked for again. New credentials wait until
// it has answered for every room that the session is in (review).
//
// # Queues and order
//
// Inbound: the mailbox; the reader goroutine that finds it full waits, so that
// TCP slows the client down. Outbound: mailbox.Outbound, drained on the same
// task after the inbound batch. Both are bounded, and a full socket holds up the
// outbound queue only. Pages of history and of members come from the bridge, whose
// answers are replied to where they arrive; they count against the outbound queue
// from when they are asked for.
//
// Requests keep their order up to the room's mailbox. A membership is known by a
// slot and a generation that rises with every join and leave, so that nothing of
// an old one is taken for the new one's.
//
// # Who runs what
//
// Everything runs on scheduler workers but Alive, Blame, Closed, Post and Kick,
// which the reader goroutine or the tenant may call at any time. The package starts no
// goroutine; its one timer raises a signal.
package session
