// Package client is the Go client of Pulse: one session with a server, which comes
// back by itself after every lost connection and then goes on where it was.
//
//	c, err := client.New(client.Options{URL: "wss://example.com", Token: token})
//	...
//	defer c.Close()
//	room, err := c.Join(ctx, client.Join{Room: "chat:lobby"})
//	...
//	for {
//		item, err := room.Next(ctx)
//		if err != nil {
//			return err
//		}
//		switch item := item.(type) {
//		case *client.Event: // one more
//		case *client.Reset: // what was known does not hold; begin with item.Data
//		}
//	}
//
// # What it guarantees
//
//   - A Subscription hands out every buffered event after its position once and in
//     order, over any number of lost connections, or a Reset. That holds for a slow
//     consumer too: what does not fit the subscription's queue is fetched again when
//     the queue is empty, and a Gap says so. Events that are not buffered may be
//     lost: with a lost connection in silence, with a full queue as Gap.Missed.
//   - Publish is done once, however often its connection is lost, as long as that
//     takes less than a minute: a dedup key makes its repeat harmless. Commands are
//     repeated only with a key of their caller's. Whatever was sent and may have been
//     done is told by ErrUnknown.
//   - Nothing waits without a bound: requests in Options.Requests, items in
//     Options.Events, the stages of a connection in Options.Timeout, a silent
//     connection in what the server's welcome says. The resume token is kept in
//     memory only.
//   - Every method may be called from any goroutine. Close leaves none behind, but
//     for a running OnStatus, which ends by itself.
//
// # The connection
//
//	           welcome                 lost: backoff, or as the server asks
//	Connecting ───────▶ Connected ──────────────▶ Waiting
//	    ▲ │ lost                                   │  ▲
//	    │ └────────────────────────────────────────┼──┘
//	    └──────────────────────────────────────────┘
//	each of them ──▶ Closed: by Close, or by a close that is final
//
// What a close code means is in the protocol's table: violations, 4403, 4409 and
// what is asked for stay closed; 4401 asks Options.Token once per welcome; everything
// else comes back. The backoff is any moment up to 0.5 s, 1 s, 2 s … 20 s, and
// begins anew after ten seconds of being connected.
//
// # A subscription
//
//	apart ──ask──▶ asked ──answer──▶ whole ──does not fit──▶ behind
//	  ▲              │ ▲                                        │
//	  └─lost, refused┘ └────────── queue empty: ask ────────────┘
//
// Frames are taken while whole; in the other states they belong to an older
// membership, or come again. A room that its server stopped, or refuses for a while,
// is asked for again; left otherwise, or refused for good, the subscription ends.
//
// # How it is made
//
// Whatever decides is a plain struct that is stepped: lifecycle and backoff,
// liveness, outbox, feed. One mutex guards them, never held over I/O or callbacks.
// A connection has a reader and a writer beside the client's own goroutine, which
// watches the clock; a caller waits on its own.
package client
