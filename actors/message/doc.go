// Package message holds what crosses two actors: the requests that sessions
// and embedders make of rooms, the membership that a session and a room share,
// and what a new connection brings to its tenant.
//
// It is the only package that the siblings under actors/ share, so that none of
// them imports another. A message is owned by its sender until it is posted and
// by its receiver from then on; what both sides may touch at once (a
// membership's signal and its joined flag) is atomic and says so.
package message
