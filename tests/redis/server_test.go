package redis_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// https://github.com/redis/redis/issues/3893
func TestB067_ASubscriberThatTheServerKillsForItsBuffer(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--client-output-buffer-limit", "pubsub 256kb 64kb 1")
	p := server.NewProxy(t, s.Address())
	a, b := node(t, s.Address()), node(t, p.Address())
	f := follow(t, b, room)
	fill(t, a, room, 1)
	reach(t, f, 1)
	p.Hold(true)
	for range 200 { // 20 MB
		pub := kept(room)
		e := event(room, pub.DedupKey)
		data, err := codec.MakeData(codec.JSON, []byte(`"`+noise(100_000)+`"`))
		if err != nil {
			t.Fatal(err)
		}
		pub.Event = codec.NewEvent(room, e.Name, data, e.Origin)
		accept(t, a, room, pub)
	}
	<-time.After(time.Second) // the reader sleeps
	p.Hold(false)
	last := fill(t, a, room, 1)
	reach(t, f, last.Offset)
	log, next := f.Log(), uint64(1)
	resets := f.Resets()
	for i, e := range log {
		for len(resets) > 0 && resets[0].Length == i {
			next, resets = resets[0].At.Offset+1, resets[1:]
		}
		if e.Position.Offset != next {
			t.Fatalf("offset %d after %d, in silence", e.Position.Offset, next-1)
		}
		next++
	}
	until(t, b, bridge.Up)
}

// noise is text that cannot be compressed much.
func noise(n int) string {
	var b strings.Builder
	x := uint32(1)
	for b.Len() < n {
		x = x*1664525 + 1013904223
		b.WriteByte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[x>>24%62])
	}
	return b.String()
}

// Redis's own limits: what may evict is told, what has no memory left refuses.
func TestAServerThatMayEvictIsDegradedAndOneWithoutMemoryRefuses(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	b := start(t, s.Address())
	until(t, b, bridge.Degraded)
	if why := b.Health().Why; !strings.Contains(why, "allkeys-lru") {
		t.Errorf("degraded for %q", why)
	}
	fill(t, b, room, 1)

	s = server.Start(t, "--maxmemory-policy", "noeviction")
	b = node(t, s.Address())
	fill(t, b, room, 1)
	s.Do("CONFIG", "SET", "maxmemory", "1")
	if got := publish(t, b, room, kept(room))[0]; got.Err == nil || got.Err.Code != codec.CodeQuotaExceeded {
		t.Errorf("without memory: %+v", got)
	}
	until(t, b, bridge.Down)
	stays(t, s, b, bridge.Down) // also while nobody asks for anything
	s.Do("CONFIG", "SET", "maxmemory", "0")
	until(t, b, bridge.Up)
	if last := fill(t, b, room, 1); last.Offset != 2 {
		t.Errorf("what was refused took an offset: %v", last)
	}
}

// A primary that nobody follows, where that is asked for, takes nothing: that is told, also
// while nobody publishes.
func TestAPrimaryThatWaitsForAReplicaIsDown(t *testing.T) {
	t.Parallel()
	s := server.Start(t, "--min-replicas-to-write", "1")
	b := start(t, s.Address())
	stays(t, s, b, bridge.Connecting)
	if why := b.Health().Why; why != "the server is not ready" {
		t.Errorf("for %q", why)
	}
	s.Do("CONFIG", "SET", "min-replicas-to-write", "0")
	until(t, b, bridge.Up)
	s.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	answer := send(b, room, kept(room))
	until(t, b, bridge.Down)
	stays(t, s, b, bridge.Down)
	s.Do("CONFIG", "SET", "min-replicas-to-write", "0")
	until(t, b, bridge.Up)
	receive(t, answer, "the answer to what waited")
}

// With a user of its own, which may not ask INFO: that is told, and delivery holds.
func TestAUserWhoMayNotAskTheServerIsDegraded(t *testing.T) {
	s := server.Start(t)
	s.Do("ACL", "SETUSER", "pulse", "on", ">secret", "~*", "&*", "+@all", "-info")
	b := start(t, s.Address(), func(c *redis.Config) { c.Username, c.Password = "pulse", "secret" })
	until(t, b, bridge.Degraded)
	f := follow(t, b, room)
	fill(t, b, room, 3)
	whole(t, f, 0, 3)

	wrong := start(t, s.Address(), func(c *redis.Config) { c.Username, c.Password, c.Outage.Wait = "pulse", "wrong", -1 })
	if got := publish(t, wrong, room, kept(room))[0]; got.Err == nil || got.Err.Code != codec.CodeUnavailable {
		t.Errorf("%+v", got)
	}
	if h := wrong.Health(); h.State != bridge.Connecting {
		t.Errorf("%+v", h)
	}
}

// https://github.com/redis/go-redis/issues/3935
func TestB058_ShortChannelsAreConfirmed(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address(), func(c *redis.Config) { c.KeyPrefix, c.ChannelPrefix = "", "" })
	for i := 1; i <= 8; i++ {
		topic := codec.Topic{Tenant: "a", Room: strings.Repeat("r", i)}
		f := follow(t, b, topic)
		fill(t, b, topic, 1)
		whole(t, f, 0, 1)
	}
}

// https://github.com/centrifugal/centrifugo/issues/1120
func TestB046_ComparingQuietRoomsDisturbsNobody(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	b := node(t, s.Address(), func(c *redis.Config) { c.Check = 100 * time.Millisecond })
	untouched := codec.Topic{Tenant: "acme", Room: "chat:untouched"}
	quiet, f := follow(t, b, untouched), follow(t, b, room)
	fill(t, b, room, 2)
	<-time.After(2 * time.Second)
	whole(t, f, 0, 2)
	whole(t, quiet, 0, 0)
	if n := b.Counters().Gaps.Load(); n != 0 {
		t.Errorf("%d gaps", n)
	}
	// It is by comparing that a message which never came is missed.
	s.Do("HSET", "pulse:meta:acme:chat:untouched", "o", "5")
	meet(t, quiet, "a reset", func(_ codec.Position, resets int) bool { return resets == 1 })
}

// The scenarios of the specification, on what redis-cli would show.
func TestBufferTTLExpiresKeys(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address())
	fill(t, b, room, 1)
	for key, atLeast := range map[string]time.Duration{"pulse:buffer:acme:chat:1": time.Hour + time.Minute, "pulse:meta:acme:chat:1": 2 * time.Hour} {
		if got := ttl(t, s, key); got < atLeast || got > atLeast+2*time.Hour {
			t.Errorf("%s lives %v, want some %v", key, got, atLeast)
		}
	}
	follow(t, b, room) // somebody has joined
	if got := ttl(t, s, "pulse:meta:acme:chat:1"); got < 24*time.Hour {
		t.Errorf("the record of a room that was joined lives %v", got)
	}
	s.Do("CONFIG", "RESETSTAT")
	fill(t, b, room, 20)
	if stats := s.Do("INFO", "commandstats"); strings.Contains(stats, "cmdstat_pexpire") {
		t.Errorf("times to live are set though they are not due: %s", stats)
	}
}

func ttl(t *testing.T, s *server.Server, key string) time.Duration {
	t.Helper()
	ms, err := strconv.ParseInt(s.Do("PTTL", key), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// 20,000 rooms are subscribed anew in batches, each is compared once, only those that
// differ are read, and others are served meanwhile.
func TestTwentyThousandRoomsAreSubscribedAnew(t *testing.T) {
	s := server.Start(t)
	p := server.NewProxy(t, s.Address())
	a, b := node(t, s.Address()), node(t, p.Address())
	const n, differ = 20_000, 20
	followers := make([]*bridgetest.Follower, n)
	topics := topicsOf(n)
	for i, topic := range topics {
		followers[i] = bridgetest.Follow(b, topic)
		if i%1000 == 999 {
			for _, f := range followers[i-999 : i+1] {
				reach(t, f, 0)
			}
		}
	}
	p.Refuse(true)
	p.CutLinks()
	until(t, b, bridge.Down)
	for i := range differ {
		fill(t, a, topics[i*997], 1)
	}
	s.Do("CONFIG", "RESETSTAT")
	began := time.Now()
	p.Refuse(false)
	stop, slowest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var most time.Duration
		for {
			select {
			case <-stop:
				slowest <- most
				return
			default:
			}
			sent := time.Now()
			receive(t, send(a, room, bridge.Publication{Event: event(room, "p")}), "an answer")
			most = max(most, time.Since(sent))
		}
	}()
	until(t, b, bridge.Up)
	took := time.Since(began)
	for i := range differ {
		whole(t, followers[i*997], 0, 1)
	}
	eventually(t, "every room to be compared", func() bool { return calls(t, s, "hmget") >= n }) // the record of each
	close(stop)
	most := receive(t, slowest, "the end of the load")
	t.Logf("%d rooms in %v; meanwhile a publish took %v at most", n, took, most)
	if most > max(2*time.Second, took/2) { // on a machine of which others have their part
		t.Errorf("a publish of another node took %v of %v", most, took)
	}
	if got := calls(t, s, "subscribe"); got > 2*n/512+50 {
		t.Errorf("%d commands to subscribe %d rooms", got, n)
	}
	if looks, scripts := calls(t, s, "hmget"), calls(t, s, "evalsha"); looks > n+n/20 || scripts > n/20 {
		t.Errorf("%d rooms were looked at %d times, in %d calls", n, looks, scripts)
	}
	if got := b.Counters().Gaps.Load(); got != differ {
		t.Errorf("%d rooms were read, and %d differ", got, differ)
	}
	for _, f := range followers {
		f.Close()
	}
	eventually(t, "no subscription but the probes'", func() bool { return len(strings.Fields(s.Do("PUBSUB", "CHANNELS"))) == 2 })
}

// calls is how often a command was called since the statistics were last reset.
func calls(t *testing.T, s *server.Server, command string) int {
	t.Helper()
	_, rest, found := strings.Cut(s.Do("INFO", "commandstats"), "cmdstat_"+command+":calls=")
	if !found {
		return 0
	}
	text, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !met(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// The last leave and a first join race: the join is never lost.
func TestALeaveNeverLosesAJoin(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address())
	topics := topicsOf(50)
	for range 20 {
		var followers []*bridgetest.Follower
		for _, topic := range topics {
			first := bridgetest.Follow(b, topic)
			first.Close()
			followers = append(followers, bridgetest.Follow(b, topic))
		}
		for i, f := range followers {
			reach(t, f, 0)
			at := f.Position().Offset
			fill(t, b, topics[i], 1)
			whole(t, f, at, at+1)
			f.Close()
		}
	}
}

// What is in Redis is exact names with the tenant in them, and nothing of what clients
// chose besides.
func TestKeysAndChannelsAreExactAndOfATenant(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address())
	follow(t, b, room)
	pub := kept(room)
	pub.DedupKey = "secret key * [a-z]"
	accept(t, b, room, pub)
	for _, key := range strings.Fields(s.Do("KEYS", "*")) {
		parts := strings.SplitN(key, ":", 4)
		if !slices.Contains([]string{"buffer", "meta", "dedup"}, parts[1]) || parts[2] != "acme" || strings.Contains(key, "secret") {
			t.Errorf("key %q", key)
		}
	}
	for _, channel := range strings.Fields(s.Do("PUBSUB", "CHANNELS")) {
		if channel != "pulse:room:acme:chat:1" && !strings.HasPrefix(channel, "pulse:probe:") {
			t.Errorf("channel %q", channel)
		}
	}
	if got := fmt.Sprint(s.Do("PUBSUB", "NUMPAT")); got != "0" {
		t.Errorf("%s patterns", got)
	}
}
