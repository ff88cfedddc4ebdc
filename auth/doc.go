// Package auth turns the credentials of a connection into an Identity: tenant,
// subject, grants and an end. What grants cannot say an Authorizer may be asked.
//
// It guarantees:
//   - The tenant and the subject come from verified credentials only, and hold
//     to the protocol's grammar; nothing of a token is interpreted before its
//     signature is verified, except the header that picks the key.
//   - A key verifies its own algorithm only, so a token cannot choose how it is
//     checked, and keys come from the configuration or from the one place that it
//     names, never from a token.
//   - Grants are compiled once, when credentials are accepted. Asking them costs
//     no allocation and no more than a few comparisons for each prefix of the
//     room's name, however many grants a token lists. What is not granted is
//     refused.
//   - Errors never repeat a token.
//   - A resume token says what a Sealer of the deployment has sealed in the last
//     day. It authorises nothing.
//
// Everything in the package may be used by any number of goroutines, and all but
// JWT is immutable after it was made. A JWT with a key set fetches it on a
// goroutine of its own, one at a time, each for five seconds at most; JWT.Close
// ends it. No caller waits for a fetch that can do without. What a token may cost
// is bounded by the size of the message or header that carries it, and by the
// number of keys; what a key set may cost, by its size and the pause between two
// fetches.
package auth
