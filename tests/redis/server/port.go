package server

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports of servers lie below those that the system gives to connections and to listeners
// that ask for any; a cluster's bus is 10,000 above the port of its node.
const (
	lowestPort = 10_000
	ports      = 10_000
	busAbove   = 10_000
)

// keeper is the address of the loopback at which a port is kept: whoever listens there has
// the port at 127.0.0.1, so that tests of other processes take another one even while
// nobody listens, because the server has yet to begin, or has been stopped.
const keeper = "127.0.0.83"

// ownPort is a port that nobody else has until the test ends.
func ownPort(tb TB) int {
	tb.Helper()
	var err error
	for range 100 {
		port := lowestPort + rand.N(ports)
		kept, taken := net.Listen("tcp", net.JoinHostPort(keeper, strconv.Itoa(port)))
		if taken == nil {
			if taken = errors.Join(isFree(port), isFree(port+busAbove)); taken == nil {
				tb.Cleanup(func() { _ = kept.Close() }) // nothing was accepted
				return port
			}
			_ = kept.Close()
		}
		err = taken
	}
	tb.Fatalf("no port is free: %v", err)
	return 0
}

// isFree tells whether a program that does not keep to this has the port.
func isFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
