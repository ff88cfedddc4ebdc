package redis

import (
	"context"
	"errors"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/codec"
)

// The texts begin with the names under which operators may know these faults.
var (
	errLost     = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "WS_BROKER_REDIS_CONNECTION_LOST: the server was not reached in time")
	errTooLarge = codec.NewError(codec.CodeTooLarge, "WS_BROKER_REDIS_PAYLOAD_TOO_LARGE: more data than the bridge carries")
	errClosed   = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "the bridge is closed")
	errServer   = codec.Retry(codec.CodeUnavailable, codec.ScopeNode, time.Second, "the server refused it")
	errWaiting  = codec.Retry(codec.CodeBackpressured, codec.ScopeNode, time.Second, "too much waits for the server")
	errTenant   = codec.Retry(codec.CodeBackpressured, codec.ScopeTenant, time.Second, "too much of the tenant waits for the server")
	errQuota    = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeTenant, time.Second, "the tenant's history takes what it may on the server")
	errRooms    = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeTenant, time.Second, "too many new rooms")
	errMemory   = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeNode, time.Second, "the server is out of memory")
)

// fault is what went wrong with one call, as far as it matters what to do next.
type fault uint8

const (
	noFault      fault = iota
	lost               // no reply: it may have taken effect
	notNow             // not done, will be later: loading, failing over, moving slots
	elsewhere          // not done: its slot is, or is being moved; no outage
	notHere            // not done, and not by this server: it is no primary (any more)
	noScript           // not done: the server does not know the script
	outOfMemory        // not done: nothing may be written
	notAllowed         // not done: the user may not, or is not known
	refusedFault       // not done: whatever else the server says
)

// why is what an operator is told; empty where the server works.
var why = [...]string{
	lost:        "the server does not answer",
	notNow:      "the server is not ready",
	notHere:     "the server is not the primary",
	outOfMemory: "the server is out of memory",
	notAllowed:  "the server denies access",
}

// ails reports whether a fault concerns the server rather than one call.
func (f fault) ails() bool { return int(f) < len(why) && why[f] != "" }

// repeat reports whether the call is to be made again: it is made so that it may
// have taken effect.
func (f fault) repeat() bool {
	return f == lost || f == notNow || f == elsewhere || f == notHere || f == notAllowed
}

// faultOf sorts an error of a call.
func faultOf(err error) fault {
	if err == nil || err == goredis.Nil {
		return noFault
	}
	var reply goredis.Error
	if !errors.As(err, &reply) || errors.Is(err, context.Canceled) || errors.Is(err, goredis.Nil) { // within another: a Sentinel's, that knows no such master
		return lost
	}
	text := reply.Error()
	for _, k := range [...]struct {
		start string
		is    fault
	}{
		{"NOSCRIPT", noScript},
		{"READONLY", notHere},
		{"MOVED", elsewhere},
		{"OOM", outOfMemory},
		{"MISCONF", outOfMemory},
		{"LOADING", notNow},
		{"BUSY", notNow},
		{"TRYAGAIN", elsewhere},
		{"ASK", elsewhere},
		{"CLUSTERDOWN", notNow},
		{"MASTERDOWN", notNow},
		{"NOREPLICAS", notNow},
		{"NOAUTH", notAllowed},
		{"WRONGPASS", notAllowed},
		{"NOPERM", notAllowed},
	} {
		if strings.HasPrefix(text, k.start) || strings.HasPrefix(text, "ERR "+k.start) {
			return k.is
		}
	}
	return refusedFault
}

// causeOf is why a link has ended, in bounded texts.
func causeOf(err error) string {
	if f := faultOf(err); f.ails() {
		return why[f]
	}
	return "the server refused a subscription"
}
