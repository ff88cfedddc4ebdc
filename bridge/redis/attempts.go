package redis

import (
	"encoding/base64"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

var (
	attemptScript = newScript("attempt")
	settleScript  = newScript("settle")

	errLapsed   = codec.Retry(codec.CodeUnavailable, codec.ScopeRoom, time.Second, "the command did not end in time")
	errManyWait = codec.Retry(codec.CodeBackpressured, codec.ScopeNode, time.Second, "too many wait for commands of others")
)

const (
	maxWaiting = 16384 // on this node, for commands that others do
	firstLook  = 20 * time.Millisecond
	longLook   = 500 * time.Millisecond // between two looks at what another node does
	toldFor    = 5 * time.Second        // who looks finds what was not to be remembered
)

// attempts are those on this node who wait for commands that others do. Who does
// it on this node tells them at once; for another node's the key is looked at, less
// and less often.
type attempts struct {
	bridge *Bridge

	mu sync.Mutex
	// guarded by mu
	waiting map[waitKey]*wait
	count   int
	closed  bool
}

type waitKey struct{ name, token string }

type wait struct {
	topic codec.Topic
	done  []func(bridge.Attempted)
	every time.Duration
	timer *time.Timer
}

func (a *attempts) init(b *Bridge) { a.bridge, a.waiting = b, make(map[waitKey]*wait) }

// Attempt implements bridge.Broker.
func (b *Bridge) Attempt(topic codec.Topic, a bridge.Attempt, done func(bridge.Attempted)) {
	name := b.names.dedup(topic, newDigest(ofCommand, a.Subject, a.Key))
	token := strconv.FormatUint(max(1, rand.Uint64()), 10)
	b.attempt(topic, name, token, max(1, a.Hold.Milliseconds()), "", done)
}

// attempt asks the server; waited is the token that done has been waiting for.
func (b *Bridge) attempt(topic codec.Topic, name, token string, hold int64, waited string, done func(bridge.Attempted)) {
	b.caller.put(topic.Tenant, name, &op{
		size: 256, repeat: true,
		call: &call{script: &attemptScript, keys: []string{name}, args: []any{token, hold, waited}, done: func(reply any, err error) {
			if err != nil {
				b.log.Error("redis: an attempt was refused", "err", err)
			}
			switch holder, what := readAttempt(reply, err); holder {
			case "":
				done(what)
			case token:
				n, _ := strconv.ParseUint(token, 10, 64)
				done(bridge.Attempted{Token: n})
			default:
				b.attempts.wait(topic, name, holder, done)
			}
		}},
		fail: func(err error) { done(bridge.Attempted{Err: coded(err)}) },
	})
}

// readAttempt is the token of the command under way, or, if none is, what it came to.
func readAttempt(reply any, err error) (holder string, what bridge.Attempted) {
	value, ok := reply.(string)
	if err != nil || !ok {
		return "", bridge.Attempted{Err: errServer}
	}
	kind, rest, _ := strings.Cut(value, " ")
	holder, result, _ := strings.Cut(rest, " ")
	switch kind {
	case "p":
		return holder, bridge.Attempted{}
	case "d":
		return "", readResult(rest)
	case "w", "e":
		return "", readResult(result)
	}
	return "", bridge.Attempted{Err: errLapsed}
}

// wait has done wait for what the holder of a token makes of it.
func (a *attempts) wait(topic codec.Topic, name, holder string, done func(bridge.Attempted)) {
	key := waitKey{name, holder}
	a.mu.Lock()
	refused := errClosed
	w := a.waiting[key]
	switch {
	case a.closed:
	case a.count >= maxWaiting:
		refused = errManyWait
	default:
		refused = nil
		if w == nil {
			w = &wait{topic: topic, every: firstLook}
			a.waiting[key] = w
			w.timer = time.AfterFunc(w.every, func() { a.look(key, w) })
		}
		w.done = append(w.done, done)
		a.count++
	}
	a.mu.Unlock()
	if refused != nil {
		done(bridge.Attempted{Err: refused})
	}
}

// look asks the server whether it is done.
func (a *attempts) look(key waitKey, w *wait) {
	a.mu.Lock()
	gone := a.closed || a.waiting[key] != w
	a.mu.Unlock()
	if gone {
		return
	}
	b := a.bridge
	b.caller.put(w.topic.Tenant, key.name, &op{
		size: 256, repeat: true,
		call: &call{script: &attemptScript, keys: []string{key.name}, args: []any{"0", 1, key.token}, done: func(reply any, err error) {
			if holder, what := readAttempt(reply, err); holder != "" {
				a.again(key, w)
			} else {
				a.end(key, what)
			}
		}},
		fail: func(err error) { a.end(key, bridge.Attempted{Err: coded(err)}) },
	})
}

func (a *attempts) again(key waitKey, w *wait) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[key] == w && !a.closed {
		w.every = min(2*w.every, longLook)
		w.timer.Reset(w.every)
	}
}

// end answers all who wait for a token.
func (a *attempts) end(key waitKey, what bridge.Attempted) {
	a.mu.Lock()
	w := a.waiting[key]
	if w != nil {
		delete(a.waiting, key)
		a.count -= len(w.done)
		w.timer.Stop()
	}
	a.mu.Unlock()
	if w == nil {
		return
	}
	for _, done := range w.done {
		done(what)
	}
}

// close answers all who wait.
func (a *attempts) close() {
	a.mu.Lock()
	a.closed = true
	all := a.waiting
	a.waiting = nil
	a.mu.Unlock()
	for _, w := range all {
		w.timer.Stop()
		for _, done := range w.done {
			done(bridge.Attempted{Err: errClosed})
		}
	}
}

// Settle implements bridge.Broker.
func (b *Bridge) Settle(topic codec.Topic, s bridge.Settlement) {
	name := b.names.dedup(topic, newDigest(ofCommand, s.Subject, s.Key))
	token := strconv.FormatUint(s.Token, 10)
	what := bridge.Attempted{Result: s.Result, Err: s.Err}
	value, life := "", s.Window.Milliseconds()
	switch {
	case s.Err != nil:
		value, life = "e "+token+" "+writeResult(what), toldFor.Milliseconds()
	case life < 1:
		value, life = "w "+token+" "+writeResult(what), toldFor.Milliseconds()
	case s.Result.Len() > b.config.PayloadMax:
		value = "d " + writeResult(bridge.Attempted{Err: errResultLarge})
	default:
		value = "d " + writeResult(what)
	}
	b.caller.put(topic.Tenant, name, &op{
		size: int64(256 + len(value)), repeat: true,
		call: &call{script: &settleScript, keys: []string{name}, args: []any{token, value, life}, done: func(reply any, err error) {
			if err != nil {
				b.log.Error("redis: what a command came to was refused", "err", err)
			} else if reply == int64(1) {
				b.attempts.end(waitKey{name, token}, what)
			}
		}},
		// Whoever waits hears that it did not end in time.
		fail: func(err error) { b.log.Warn("redis: what a command came to was not told", "err", err) },
	})
}

var errResultLarge = codec.NewError(codec.CodeTooLarge, "the first result was too large to be remembered")

// A result is "c base64", c the number of its codec, or "-": absent; an error is
// "! code scope ms message".

func writeResult(a bridge.Attempted) string {
	switch {
	case a.Err != nil:
		return "! " + strconv.Itoa(int(a.Err.Code)) + " " + strconv.Itoa(int(a.Err.Scope)) + " " +
			strconv.FormatInt(a.Err.RetryAfter.Milliseconds(), 10) + " " + a.Err.Message
	case a.Result.IsZero():
		return none
	default:
		return strconv.Itoa(int(a.Result.Codec())) + " " + base64.StdEncoding.EncodeToString(a.Result.Raw())
	}
}

func readResult(text string) bridge.Attempted {
	head, rest, _ := strings.Cut(text, " ")
	switch head {
	case none:
		return bridge.Attempted{}
	case "!":
		fields := strings.SplitN(rest, " ", 4)
		if len(fields) < 4 {
			break
		}
		code, err := strconv.Atoi(fields[0])
		scope, err2 := strconv.Atoi(fields[1])
		ms, err3 := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || err2 != nil || err3 != nil || code < 1 || code > int(codec.CodeUnknownType) || scope < 0 || scope > int(codec.ScopeNode) {
			break
		}
		return bridge.Attempted{Err: codec.Retry(codec.Code(code), codec.Scope(scope), time.Duration(ms)*time.Millisecond, fields[3])}
	default:
		kind, err := strconv.Atoi(head)
		raw, err2 := base64.StdEncoding.DecodeString(rest)
		if err != nil || err2 != nil || kind < 0 || kind > int(codec.Msgpack) {
			break
		}
		if data, err := codec.MakeData(codec.Codec(kind), raw); err == nil {
			return bridge.Attempted{Result: data}
		}
	}
	return bridge.Attempted{Err: errServer}
}
