// Package auth turns the credentials of a connection into an Identity: tenant,
// subject, grants and an end.
//
// It guarantees:
//   - The tenant and the subject come from verified credentials only, and hold
//     to the protocol's grammar; nothing of a token is interpreted before its
//     signature is verified, except the header that picks the key.
//   - A key verifies its own algorithm only, so a token cannot choose how it is
//     checked.
//   - Grants are compiled once, when credentials are accepted. Asking them costs
//     no allocation and no more than a few comparisons for each prefix of the
//     room's name, however many grants a token lists. What is not granted is
//     refused.
//   - Errors never repeat a token.
//
// The package starts no goroutine and keeps no state: everything in it is
// immutable after it was made and may be used by any number of goroutines. What
// a token may cost is bounded by the size of the message or header that carries it.
package auth
