// Package codec is the wire: what a client and a node say to each other, as Go
// values and as bytes in both codecs (JSON and msgpack), and the tables that
// both sides share: names and their grammar, positions, error codes, close
// causes.
//
// # What it guarantees
//
//   - Nothing reaches a decoder before the gate has walked the whole message
//     once: syntax, nesting, repeated keys, UTF-8, declared lengths, bytes left
//     over. The walk is linear in the message whatever it holds, and allocates
//     nothing that the input did not pay for.
//   - One document model. Every frame is decoded and encoded by code written
//     once for both codecs, over value (a validated value that is read) and
//     writer (a value that is written).
//   - Data stays the bytes of whoever made it and is transcoded at most once per
//     framing, exactly: integers of int64 and uint64 keep every digit, a float
//     comes back equal.
//   - An Envelope carries an event between nodes, of this version and of the next.
//     It is checked like a client's message before it becomes an event again.
//   - A Frame is immutable and its bytes are made once per Framing, however many
//     sessions send it.
//
// # Why by hand
//
// encoding/json takes field names without case and the last of repeated ones; the
// msgpack library allocates what a header declares, recurses without a bound and
// wraps integers that do not fit. What would have to stand in front of them is
// most of a decoder, and one cursor and one writer serve both codecs. The two
// libraries are what the tests compare with. Go values are another matter: they
// become data, and data becomes them, by encoding/json.
//
// # Memory
//
// What Decode returns aliases the message, which the caller gives away. Where a
// message carries much besides its data, the parts are copied out instead, so
// that a stored event never holds more than its own size and a constant.
//
// The package starts no goroutine. Its only state are pools of scratch memory,
// to which scratch that one huge message has grown does not return.
package codec
