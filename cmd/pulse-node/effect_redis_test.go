package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// ready waits until a trial is in touch with its Redis; false: it does not come to that.
func (n *trial) ready(d time.Duration) bool {
	n.t.Helper()
	return soon(d, func() bool {
		_, text := get(n.t, n.internal+"/readyz")
		return strings.Contains(text, `"ok"`)
	})
}

// Every setting of the bridge changes what it says in a node on a real Redis.
func TestEffectsOnRedis(t *testing.T) {
	deployment := write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
	redis := server.Start(t)
	on := func(more ...string) []string {
		return append([]string{"bridge.redis.addresses=" + redis.Address(), "deployment_key_file=" + deployment, "node.lease=4s"}, more...)
	}
	own := func(n *trial) string { return "chat:" + strings.ReplaceAll(n.t.Name(), "/", ".") }
	// in publishes something of a size to a room of its own and returns that, or why not.
	in := func(n *trial, size int) string {
		room := own(n)
		status, text := n.post(token(n.t), room, `"`+strings.Repeat("x", size)+`"`)
		if status != http.StatusOK {
			return refusal(decoded(n.t, text))
		}
		return room
	}
	connected := func(n *trial) string {
		if n.ready(2 * awhile) {
			return "up"
		}
		return "not up"
	}
	// keys tells whether there are keys of that form.
	keys := func(pattern string) func(*trial) string {
		return func(n *trial) string {
			n.ready(trialTime)
			return fmt.Sprint(redis.Do("KEYS", pattern+in(n, 1)) != "")
		}
	}
	locked := server.Start(t)
	locked.Do("ACL", "SETUSER", "pulse", "on", ">secret", "~*", "&*", "+@all")
	locked.Do("ACL", "SETUSER", "default", "resetpass", ">other")
	password := write(t, "password", "secret\n")
	defaults := write(t, "other", "other\n")

	group := server.StartSentinels(t, time.Minute) // nobody is missed

	effects := []effect{
		{[]string{"bridge.redis.addresses=" + redis.Address()}, []string{"deployment_key_file=" + deployment}, func(n *trial) string {
			n.ready(trialTime)
			return fmt.Sprint(redis.Do("KEYS", "pulse:buffer:acme:"+in(n, 1)) != "")
		}, "false", "true"},
		{[]string{"bridge.redis.key_prefix=k:"}, on(), keys("k:buffer:acme:"), "false", "true"},
		{[]string{"bridge.redis.channel_prefix=c:"}, on(), func(n *trial) string {
			n.ready(trialTime)
			n.join(token(n.t), []string{own(n)}, "")
			return fmt.Sprint(soon(awhile, func() bool { return redis.Do("PUBSUB", "CHANNELS", "c:room:acme:"+own(n)) != "" }))
		}, "false", "true"},
		{[]string{"bridge.redis.username=pulse", "bridge.redis.password_file=" + password}, []string{"bridge.redis.addresses=" + locked.Address(), "deployment_key_file=" + deployment}, connected, "not up", "up"},
		{[]string{"bridge.redis.password_file=" + defaults}, []string{"bridge.redis.addresses=" + locked.Address(), "deployment_key_file=" + deployment}, connected, "", "up"},
		{[]string{"bridge.redis.compression_threshold=4KiB"}, on(), func(n *trial) string {
			n.ready(trialTime)
			if entry := redis.Do("ZRANGE", "pulse:buffer:acme:"+in(n, 2000), "0", "-1"); len(entry) > 1000 {
				return "as it is"
			}
			return "less"
		}, "less", "as it is"},
		{[]string{"bridge.redis.payload_max=1KiB"}, on(), func(n *trial) string {
			n.ready(trialTime)
			answer, _, _ := strings.Cut(in(n, 2000), ":")
			return answer
		}, "chat", "too_large"},
		{[]string{"tenant_defaults.redis_bytes=256KiB"}, on(free...), func(n *trial) string {
			n.ready(trialTime)
			if n.heavy(own(n), 12) < 12 {
				return "bounded"
			}
			return "all"
		}, "all", "bounded"},
		{[]string{"node.lease=9s"}, []string{"bridge.redis.addresses=" + redis.Address(), "deployment_key_file=" + deployment, "bridge.redis.key_prefix=lease:"}, func(n *trial) string {
			n.ready(trialTime)
			if soon(awhile, func() bool {
				for _, key := range strings.Fields(redis.Do("KEYS", "lease:node:*")) {
					if left, _ := strconv.Atoi(redis.Do("PTTL", key)); left > 4000 && left <= 9000 {
						return true
					}
				}
				return false
			}) {
				return "nine"
			}
			return "another"
		}, "", "nine"},
		{[]string{"bridge.redis.mode=sentinel", "bridge.redis.master_name=" + server.MasterName},
			[]string{"bridge.redis.addresses=" + group.Addresses[0], "deployment_key_file=" + deployment}, connected, "not up", "up"},
		{[]string{"bridge.redis.tls=true"}, on(), connected, "up", "not up"}, // to a server without
		{[]string{"bridge.redis.check=500ms"}, on(), func(n *trial) string {
			n.ready(trialTime)
			p, _ := n.join(token(n.t), []string{in(n, 1)}, "")
			redis.Do("HINCRBY", "pulse:meta:acme:"+own(n), "o", "1") // an event that nobody is told of
			if p.until("reset", 2*awhile)["t"] == "reset" {
				return "noticed"
			}
			return "not noticed"
		}, "not noticed", "noticed"},
	}
	waiting := []effect{ // of what is published while Redis is away: it waits, up to a bound
		{settings: []string{"bridge.redis.outage_queue.wait=0s"}, before: "0 at once", after: "8 at once"},
		{settings: []string{"bridge.redis.outage_queue.items=4"}, with: []string{"bridge.redis.outage_queue.wait=20s"}, before: "0 at once", after: "some at once"},
		{settings: []string{"bridge.redis.outage_queue.bytes=64KiB"}, with: []string{"bridge.redis.outage_queue.wait=20s"}, before: "0 at once", after: "some at once"},
	}
	shown := map[string]bool{}
	for _, e := range slices.Concat(effects, waiting) {
		for _, s := range e.settings {
			name, _, _ := strings.Cut(s, "=")
			shown[name] = true
		}
	}
	for _, s := range config.Settings() {
		if strings.HasPrefix(s.Path, "bridge.redis.") && !shown[s.Path] {
			t.Errorf("%s: nothing shows that it does something", s.Path)
		}
	}
	for _, e := range effects {
		name, _, _ := strings.Cut(e.settings[len(e.settings)-1], "=")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e.check(t, trialYAML)
		})
	}
	for _, e := range waiting {
		name, _, _ := strings.Cut(e.settings[0], "=")
		t.Run(name, func(t *testing.T) {
			for _, source := range []string{"neither", "file", "environment", "flag"} {
				t.Run(source, func(t *testing.T) {
					t.Parallel()
					redis := server.Start(t)
					e := e
					e.with = append([]string{"bridge.redis.addresses=" + redis.Address(), "deployment_key_file=" + deployment}, e.with...)
					n := &trial{running: e.sources(t, trialYAML)[source](t), t: t}
					want := e.after
					if source == "neither" {
						want = e.before
					}
					if got := n.away(redis); got != want {
						t.Errorf("%v: %s, want %s", e.settings, got, want)
					}
				})
			}
		})
	}
}

// away publishes eight events after its Redis has gone, and counts those that are
// refused long before the time that they might wait.
func (n *trial) away(redis *server.Server) string {
	n.t.Helper()
	n.ready(trialTime)
	const rooms = 8 // a room has one batch under way, and what follows waits in the room
	for i := range rooms {
		if !soon(trialTime, func() bool {
			status, _ := n.post(token(n.t), fmt.Sprint("chat:", i), "1")
			return status == http.StatusOK // and not that there is too much already
		}) {
			n.t.Fatal("nothing is accepted while Redis is there")
		}
	}
	p, _ := n.join(token(n.t), nil, "")
	redis.Stop()
	soon(trialTime, func() bool { return !n.ready(0) })
	for i := range rooms {
		p.say(`{"t":"publish","id":%d,"room":"chat:%d","event":"message","data":%q}`, i+1, i, strings.Repeat("x", 20<<10))
	}
	refused := 0
	for range rooms {
		if f := p.until("reply", 3*time.Second); f["err"] == nil {
			break
		}
		refused++
	}
	if refused > 0 && refused < rooms {
		return "some at once"
	}
	return fmt.Sprint(refused, " at once")
}
