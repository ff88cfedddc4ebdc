// Package redis is the bridge on real Redis servers that are stopped, killed,
// frozen, emptied, failed over and cut off, and several engines on one of them. server/
// runs the servers.
package redis
