// Package redis is the bridge on real Redis servers that are stopped, killed,
// frozen, emptied, failed over and cut off, and several engines on one of them. server/
// runs the servers, nodes/ real pulse-node processes.
//
// With PULSE_TEST_REDIS=container each server is a container of redis:7-alpine, made by
// testcontainers on a Docker engine of this machine; otherwise a process, of the
// redis-server on PATH.
package redis
