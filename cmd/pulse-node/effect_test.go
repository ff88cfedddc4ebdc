package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/engine"
)

// free lets clients of a trial ask as fast as they like; who stays may also take its time
// to read.
var (
	free  = []string{"tenant_defaults.session_rate.messages=0", "tenant_defaults.session_rate.bytes=0B"}
	stays = append([]string{"transport.write_timeout=5m"}, free...)
)

// awhile is how long a trial looks whether something happens that only the setting
// makes happen, and by when it does on a machine that is busy.
const awhile = 5 * time.Second

// effects of settings on a node that stands alone.
func effects(t *testing.T) []effect {
	cert, key, _ := newCertificate(t)
	issuer := newIssuer(t)
	issued := issuer.token(t, "{ alg: ES256, kid: k9, secret_file: "+issuer.private+" }")
	var fetched atomic.Int64 // of refreshed
	keySet := func(asked *atomic.Int64) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			fmt.Fprint(w, issuer.set)
		}))
		t.Cleanup(s.Close)
		return s
	}
	var waiting sync.Mutex // for hangs
	asking := make(chan struct{}, 1)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asking <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	set, refreshed := keySet(new(atomic.Int64)), keySet(&fetched)
	deployment := write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")

	host := func(of func(*running) string) func(*trial) string {
		return func(n *trial) string {
			_, address, _ := strings.Cut(of(n.running), "://")
			host, _, _ := net.SplitHostPort(address)
			return host
		}
	}
	// asked is the status of a request with these headers.
	asked := func(path string, pairs ...string) func(*trial) string {
		return func(n *trial) string {
			header := http.Header{}
			for i := 0; i < len(pairs); i += 2 {
				header.Add(pairs[i], pairs[i+1])
			}
			status, _ := n.ask(http.MethodGet, path, "", header)
			return fmt.Sprint(status)
		}
	}
	// welcomed is what a hello with a token is answered.
	welcomed := func(change ...func(*auth.Claims)) func(*trial) string {
		return func(n *trial) string {
			_, f := n.join(token(n.t, change...), nil, "")
			if f["closed"] != nil {
				return fmt.Sprint(f["closed"])
			}
			return fmt.Sprint(f["t"])
		}
	}
	// gone tells whether the one connection ends within a while.
	gone := func(n *trial, d time.Duration) string {
		if soon(d, func() bool { return n.figure("pulse_closes_total{") > 0 }) {
			return "gone"
		}
		return "there"
	}
	// places is how many connections without a hello there may be, and what the next
	// one is told.
	places := func(n *trial) string {
		for i := range 10 {
			if _, status := n.open(nil); status != http.StatusSwitchingProtocols {
				return fmt.Sprint(i, " then ", status)
			}
		}
		return "ten"
	}
	// hurried opens connections at once, and tells what one too many is told.
	hurried := func(n *trial) string {
		for range 10 {
			if _, status := n.open(nil); status != http.StatusSwitchingProtocols {
				return fmt.Sprint(status)
			}
		}
		return "none"
	}
	// rooms joins that many, and tells how the last one went.
	rooms := func(many int) func(*trial) string {
		return func(n *trial) string {
			var names []string
			for i := range many {
				names = append(names, fmt.Sprint("lossy:", i))
			}
			_, f := n.join(token(n.t), names, "")
			answers := f["rooms"].([]any)
			return refusal(answers[len(answers)-1])
		}
	}
	// second is what a second session is told, while there is a first.
	second := func(tenant string) func(*trial) string {
		return func(n *trial) string {
			n.join(token(n.t), nil, "")
			_, f := n.join(token(n.t, of(tenant, "bob")), nil, "")
			if f["closed"] != nil {
				return fmt.Sprint(f["closed"])
			}
			return fmt.Sprint(f["t"])
		}
	}
	// published is the first refusal of some events with so much data, sent at once.
	published := func(events, size int) func(*trial) string {
		return func(n *trial) string {
			first := "none"
			p, _ := n.join(token(n.t), nil, "")
			for id := range events {
				p.say(`{"t":"publish","id":%d,"room":"lossy","event":"tick","data":%q}`, id+1, strings.Repeat("x", size))
			}
			for range events {
				if answer := refusal(p.until("reply", trialTime)); first == "none" {
					first = answer
				}
			}
			return first
		}
	}
	// kept is how many of ten large events a room's history holds.
	kept := func(n *trial) string {
		n.heavy("chat", 10)
		_, text := n.ask(http.MethodGet, "/v1/rooms/chat/history?limit=100&reverse=true", "", http.Header{"Authorization": {"Bearer " + token(n.t)}})
		events := decoded(n.t, text)["ok"].(map[string]any)["events"].([]any)
		if len(events) == 10 {
			return "all"
		}
		return "the newest"
	}
	// held is whether what rooms hold to feed members from is within a bound.
	held := func(n *trial) string {
		n.join(token(n.t), []string{"chat"}, "")
		n.heavy("chat", 8)
		if n.figure(`pulse_ledger_bytes{scope="replay"}`) <= 128<<10 {
			return "little"
		}
		return "all"
	}
	// behind tells whether what waits for a client that does not read reaches a bound:
	// it is left to be fed later, or its publisher is refused.
	behind := func(n *trial) string {
		c, err := arrive(n.t.Context(), n.public, token(n.t), "chat", 8<<10)
		if err != nil {
			n.t.Fatal(err)
		}
		defer c.CloseNow()
		if n.heavy("chat", 120) < 120 || n.figure(`pulse_behind_total{reason="queue"}`) > 0 {
			return "behind"
		}
		return "waits"
	}
	collector := func(want string) (url string, try func(*trial) string) {
		var trials sync.Mutex // one at a time
		var spans atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			spans.Add(int64(strings.Count(string(body), "publish")))
		}))
		t.Cleanup(s.Close)
		return s.URL, func(n *trial) string {
			trials.Lock()
			defer trials.Unlock()
			spans.Store(0)
			for range 100 {
				n.post(token(n.t), "lossy", "1")
			}
			n.end() // which tells the collector what is left
			switch got := spans.Load(); {
			case got >= 100:
				return "all"
			case got > 0:
				return "some"
			}
			return want
		}
	}
	toAll, endpoint := collector("none")
	toSome, ratio := collector("some")

	return []effect{
		{[]string{"listen=127.0.0.2:0"}, nil, host(func(n *running) string { return n.public }), "127.0.0.1", "127.0.0.2"},
		{[]string{"internal.listen=127.0.0.2:0"}, nil, host(func(n *running) string { return n.internal }), "127.0.0.1", "127.0.0.2"},
		{[]string{"tls.cert_file=" + cert, "tls.key_file=" + key}, nil, func(n *trial) string {
			scheme, _, _ := strings.Cut(n.public, ":")
			return scheme
		}, "http", "https"},
		{[]string{"origins=https://a.example,https://b.example"}, nil, asked("/v1/negotiate", "Origin", "https://b.example"), "403", "200"},
		{[]string{"allow_missing_origin=false"}, nil, asked("/v1/negotiate"), "200", "403"},
		{[]string{"trusted_proxies=192.0.2.0/24,127.0.0.0/8"}, nil, asked("/v1/negotiate", "X-Forwarded-Host", "a.example", "X-Forwarded-Proto", "https", "Origin", "https://a.example"), "403", "200"},
		{[]string{"auth.cookie=pulse"}, nil, asked("/v1/rooms/chat/history", "Cookie", "pulse="+token(t)), "401", "200"},
		{[]string{"auth.jwt.jwks.url=" + set.URL}, nil, func(n *trial) string {
			_, f := n.join(issued, nil, "")
			return fmt.Sprint(f["t"])
		}, "<nil>", "welcome"},
		{[]string{"auth.jwt.jwks.refresh=50ms"}, []string{"auth.jwt.jwks.url=" + refreshed.URL}, func(n *trial) string {
			before := fetched.Load()
			// Two fetches are five seconds apart at least.
			if soon(trialTime, func() bool { n.join(issued, nil, ""); return fetched.Load() > before+1 }) {
				return "again"
			}
			return "once"
		}, "", "again"},
		{[]string{"auth.jwt.issuer=i"}, nil, welcomed(), "welcome", "4401"},
		{[]string{"auth.jwt.audience=a"}, nil, welcomed(), "welcome", "4401"},
		{[]string{"auth.jwt.tenant_claim=org"}, nil, welcomed(func(c *auth.Claims) { c.TenantClaim = "org" }), "4401", "welcome"},
		{[]string{"auth.jwt.leeway=2m"}, nil, welcomed(func(c *auth.Claims) { c.Expires = time.Now().Add(-time.Minute) }), "4401", "welcome"},

		{[]string{"transport.handshake_timeout=2s"}, nil, func(n *trial) string {
			p, _ := n.open(nil)
			return fmt.Sprint(p.frame(awhile)["closed"])
		}, "<nil>", "4500"},
		{[]string{"transport.ping=100ms"}, nil, func(n *trial) string {
			p, _ := n.join(token(n.t), nil, "")
			return fmt.Sprint(p.frame(awhile)["t"])
		}, "<nil>", "ping"},
		{[]string{"transport.pong_timeout=100ms"}, []string{"transport.ping=100ms", "transport.write_timeout=500ms"}, func(n *trial) string {
			n.join(token(n.t), nil, "") // and does not read, nor answer
			return gone(n, awhile)
		}, "there", "gone"},
		{[]string{"transport.max_message_bytes=32KiB"}, nil, func(n *trial) string {
			p, _ := n.join(token(n.t), nil, "")
			p.say(`{"t":"publish","id":1,"room":"lossy","event":"tick","data":%q}`, strings.Repeat("x", 40<<10))
			f := p.frame(trialTime)
			return fmt.Sprint(f["t"], " ", f["closed"])
		}, "reply <nil>", "<nil> 1009"},
		{[]string{"transport.max_frame_bytes=400KiB"}, free, func(n *trial) string {
			n.heavy("chat", 12)
			_, text := n.ask(http.MethodGet, "/v1/rooms/chat/history?limit=100", "", http.Header{"Authorization": {"Bearer " + token(n.t)}})
			if len(text) <= 400<<10 {
				return "fits"
			}
			return "more"
		}, "more", "fits"},
		{[]string{"transport.write_timeout=300ms"}, free, func(n *trial) string {
			c, err := arrive(n.t.Context(), n.public, token(n.t), "chat", 8<<10)
			if err != nil {
				n.t.Fatal(err)
			}
			defer c.CloseNow()
			n.heavy("chat", 120)
			return gone(n, trialTime)
		}, "", "gone"},
		{[]string{"transport.compression.enabled=true"}, nil, func(n *trial) string {
			p, _ := n.open(&websocket.DialOptions{CompressionMode: websocket.CompressionNoContextTakeover})
			p.say(`{"t":"hello","token":%q}`, token(n.t))
			return fmt.Sprint(p.frame(trialTime)["compression"])
		}, "false", "true"},
		{[]string{"transport.compression.threshold=128B"}, []string{"transport.compression.enabled=true"}, func(n *trial) string {
			p, _ := n.open(&websocket.DialOptions{CompressionMode: websocket.CompressionNoContextTakeover})
			p.say(`{"t":"hello","token":%q,"rooms":[{"room":"lossy"}]}`, token(n.t))
			p.frame(trialTime)
			// What is sent is counted when the turn that sent it has ended.
			sent := func(since float64) (bytes float64) {
				soon(trialTime, func() bool { bytes = n.figure("pulse_sent_bytes_total") - since; return bytes > 0 })
				return bytes
			}
			before := sent(0)
			n.post(token(n.t), "lossy", `"`+strings.Repeat("x", 700)+`"`)
			p.until("event", trialTime)
			if sent(before) > 700 {
				return "as it is"
			}
			return "less"
		}, "as it is", "less"},
		{[]string{"transport.max_unauthenticated=3"}, nil, places, "ten", "3 then 503"},
		{[]string{"transport.max_unauthenticated_per_address=3"}, nil, places, "ten", "3 then 503"},
		{[]string{"transport.accept_rate.connections=1"}, nil, hurried, "none", "503"},
		{[]string{"transport.accept_rate.per_address=1"}, nil, hurried, "none", "429"},

		{[]string{"session.queue.items=8"}, append([]string{"session.queue.bytes=64MiB"}, stays...), behind, "waits", "behind"},
		{[]string{"session.queue.bytes=64MiB"}, stays, behind, "behind", "waits"},
		{[]string{"session.max_rooms=2"}, nil, rooms(3), "none", "quota_exceeded session"},
		{[]string{"session.resume_ttl=300ms"}, nil, func(n *trial) string {
			p, welcome := n.join(token(n.t), nil, "")
			p.c.CloseNow()
			gone(n, trialTime)
			<-time.After(2 * time.Second) // that it comes back too late
			_, again := n.join(token(n.t), nil, fmt.Sprintf(`,"resume":%q`, welcome["resume"]))
			return fmt.Sprint("resumed ", again["resumed"])
		}, "resumed true", "resumed false"},
		{[]string{"session.presence_grace=100ms"}, nil, func(n *trial) string {
			p, _ := n.join(token(n.t), []string{"chat"}, "")
			bob, _ := n.join(token(n.t, of("acme", "bob")), []string{"chat"}, "")
			p.until("presence", trialTime)
			bob.c.CloseNow()
			return fmt.Sprint(p.until("presence", awhile)["leave"])
		}, "<nil>", "[bob]"},
		{[]string{"session.unacked=2"}, nil, func(n *trial) string {
			p, _ := n.join(token(n.t), []string{"acked"}, "")
			for range 5 {
				n.post(token(n.t), "acked", "1")
			}
			events := 0
			for events < 5 && p.until("event", awhile)["t"] == "event" {
				events++
			}
			return fmt.Sprint(events)
		}, "5", "2"},

		{[]string{"node.max_sessions=1"}, nil, second("quiet"), "welcome", "1013"},
		{[]string{"node.queue_bytes=2MiB"}, append([]string{"session.queue.bytes=64MiB"}, stays...), behind, "waits", "behind"},
		{[]string{"node.history_bytes=256KiB"}, free, kept, "all", "the newest"},
		{[]string{"node.replay_bytes=128KiB"}, free, held, "all", "little"},
		{[]string{"node.workers=5"}, nil, func(n *trial) string { return fmt.Sprint(n.figure("pulse_workers{")) }, "", "5"},
		{[]string{"node.blocking_workers=1"}, []string{"auth.jwt.jwks.url=" + hangs.URL}, func(n *trial) string {
			waiting.Lock()
			defer waiting.Unlock()
			p, _ := n.open(nil) // whose key is waited for
			p.say(`{"t":"hello","token":%q}`, issued)
			<-asking // for five seconds
			p, _ = n.open(nil)
			p.say(`{"t":"hello","token":%q}`, token(n.t))
			return fmt.Sprint(p.frame(3 * time.Second)["t"])
		}, "welcome", "<nil>"},
		{[]string{"node.drain_timeout=7s"}, nil, func(n *trial) string {
			p, _ := n.join(token(n.t), nil, "")
			go n.end() // which check waits for
			f := p.until("drain", trialTime)
			p.c.CloseNow()
			return fmt.Sprint(f["deadline_ms"])
		}, "800", "5600"},

		{[]string{"tenant_defaults.max_sessions=1"}, nil, second("acme"), "welcome", "4529"},
		{[]string{"tenant_defaults.max_rooms=1"}, nil, rooms(2), "none", "quota_exceeded tenant"},
		{[]string{"tenant_defaults.new_rooms=1"}, nil, rooms(50), "none", "quota_exceeded tenant"},
		{[]string{"tenant_defaults.queue_bytes=2MiB"}, append([]string{"session.queue.bytes=64MiB"}, stays...), behind, "waits", "behind"},
		{[]string{"tenant_defaults.history_bytes=256KiB"}, free, kept, "all", "the newest"},
		{[]string{"tenant_defaults.replay_bytes=128KiB"}, free, held, "all", "little"},
		{[]string{"tenant_defaults.rate.messages=1"}, nil, published(20, 1), "none", "rate_limited tenant"},
		{[]string{"tenant_defaults.rate.bytes=1KiB"}, nil, published(20, 1500), "none", "rate_limited tenant"},
		{[]string{"tenant_defaults.session_rate.messages=1"}, nil, published(20, 1), "none", "rate_limited session"},
		{[]string{"tenant_defaults.session_rate.bytes=1KiB"}, nil, published(20, 1500), "none", "rate_limited session"},

		{[]string{"deployment_key_file=" + deployment}, nil, func(n *trial) string {
			sealer, err := auth.NewSealer([][]byte{[]byte("0123456789abcdef0123456789abcdef")})
			if err != nil {
				n.t.Fatal(err)
			}
			resume := sealer.Seal(auth.Resume{Tenant: "other", Subject: "alice", Session: "s", Generation: 1}, time.Now())
			n.join(token(n.t), nil, fmt.Sprintf(`,"resume":%q`, resume))
			if logged(n.logs.String(), "resume token not taken", "cause", "tenant") {
				return "opened"
			}
			return "not opened"
		}, "not opened", "opened"},
		{[]string{"log.level=error"}, nil, func(n *trial) string {
			n.end()
			return fmt.Sprint(strings.Contains(n.logs.String(), "draining"))
		}, "true", "false"},
		{[]string{"log.format=text"}, nil, func(n *trial) string {
			n.end()
			return n.logs.String()[:1]
		}, "{", "t"},
		{[]string{"telemetry.otlp_endpoint=" + toAll}, []string{"telemetry.trace_ratio=1"}, endpoint, "none", "all"},
		{[]string{"telemetry.trace_ratio=1"}, []string{"telemetry.otlp_endpoint=" + toSome}, ratio, "some", "all"},
		{[]string{"telemetry.tenant_labels=1"}, nil, func(n *trial) string {
			n.join(token(n.t), nil, "")
			n.join(token(n.t, of("quiet", "bob")), nil, "")
			return fmt.Sprint(n.figure(`pulse_tenant_sessions{tenant="~other"}`))
		}, "0", "1"},
	}
}

// elsewhere are the settings whose effect another test shows, from all sources.
var elsewhere = map[string]string{
	"tenant_defaults.weight": "TestWeightIsAShare",
	"node.lease":             "TestEffectsOnRedis",

	"tenant_defaults.redis_bytes": "TestEffectsOnRedis",
}

// Every setting changes what it says in a node that runs, whether the file says it,
// the environment, or a flag.
func TestEffects(t *testing.T) {
	shown := map[string]bool{}
	tried := func(e effect) (name string) {
		for _, s := range e.settings {
			name, _, _ = strings.Cut(s, "=")
			shown[name] = true
		}
		return name
	}
	for _, e := range effects(t) {
		t.Run(tried(e), func(t *testing.T) {
			t.Parallel()
			e.check(t, trialYAML)
		})
	}
	for _, s := range config.Settings() {
		if !shown[s.Path] && elsewhere[s.Path] == "" && !strings.HasPrefix(s.Path, "bridge.redis.") && !isLater(s.Path) {
			t.Errorf("%s: nothing shows that it does something", s.Path)
		}
	}
}

// isLater tells whether this build lacks the part that a setting is of.
func isLater(path string) bool {
	for _, value := range []string{"false", "7MiB"} {
		_, err := config.Load(config.Sources{Flags: []config.Flag{{Name: path, Value: value}}})
		if err != nil && strings.Contains(err.Error(), "not in this build") {
			return true
		}
	}
	return false
}

// A tenant's weight is its share of a node that has more to do than it can: two
// tenants whose rooms always have something to do get turns by their weights.
func TestWeightIsAShare(t *testing.T) {
	e := effect{settings: []string{"tenant_defaults.weight=8"}}
	file := write(t, "pulse.yaml", trialYAML)
	for source, s := range map[string]config.Sources{
		"neither":     {File: file},
		"file":        {File: write(t, "changed.yaml", changed(t, trialYAML, e.settings))},
		"environment": {File: file, Environ: []string{"PULSE_TENANT_DEFAULTS_WEIGHT=8"}},
		"flag":        {File: file, Flags: []config.Flag{{Name: "tenant_defaults.weight", Value: "8"}}},
	} {
		c, err := config.Load(s)
		if err != nil {
			t.Fatal(err)
		}
		c.Node.Workers = 1
		var served shares
		cfg := engineConfig(c, anybody{}, slog.New(slog.DiscardHandler))
		cfg.Kinds = []room.Kind{served.kind()}
		en, err := engine.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		served.engine.Store(en)
		for _, tenant := range []string{"acme", "quiet"} {
			for range 500 {
				served.offer(tenant)
			}
		}
		busy := soon(trialTime, func() bool { return served.quiet.Load() > 5_000 })
		ratio := float64(served.acme.Load()) / float64(max(served.quiet.Load(), 1))
		served.engine.Store(nil)
		if err := en.Close(t.Context()); err != nil {
			t.Error(err)
		}
		low, high := 6.0, 10.0
		if source == "neither" {
			low, high = 0.7, 1.4
		}
		if !busy || ratio < low || ratio > high {
			t.Errorf("%s: acme had %.1f times as much as the other", source, ratio)
		}
	}
}

// shares counts the events that rooms of two tenants handle. Each event that is
// handled offers the next.
type shares struct {
	engine      atomic.Pointer[engine.Engine] // nil: enough
	acme, quiet atomic.Int64
}

func (s *shares) kind() room.Kind {
	return room.Kind{Name: "busy", MailboxItems: 1 << 12, New: func() room.Handler { return share{s} },
		Events: map[string]room.EventPolicy{"tick": {Delivery: room.Transient, Lane: backpressure.Interactive}}}
}

func (s *shares) offer(tenant string) {
	if e := s.engine.Load(); e != nil {
		_, _ = e.TryPublish(engine.Event{Tenant: tenant, Room: "busy", Name: "tick", Data: 1})
	}
}

type share struct{ *shares }

func (s share) Publish(c *room.Context, _ *room.Event) error {
	if c.Tenant() == "acme" {
		s.acme.Add(1)
	} else {
		s.quiet.Add(1)
	}
	s.offer(c.Tenant())
	return nil
}

// Features do what they say whatever other one is on: each pair of them is tried in a
// node that has both. StackExchange/StackExchange.Redis#439
func TestB155_FeaturesWorkTogether(t *testing.T) {
	features := map[string]effect{}
	for _, e := range effects(t) {
		name, _, _ := strings.Cut(e.settings[0], "=")
		features[name] = e
	}
	names := []string{
		"origins", "trusted_proxies", "auth.cookie", "auth.jwt.jwks.url", "transport.compression.enabled", "transport.max_message_bytes",
		"session.presence_grace", "session.unacked", "deployment_key_file",
	}
	file := write(t, "pulse.yaml", trialYAML)
	for i, a := range names {
		for _, b := range names[i+1:] {
			t.Run(a+" "+b, func(t *testing.T) {
				t.Parallel()
				args := []string{"serve", "--config", file}
				for _, name := range []string{a, b} {
					args = append(args, flagsOf(slices.Concat(features[name].settings, features[name].with))...)
				}
				n := &trial{running: start(t, args...), t: t}
				for _, name := range []string{a, b} {
					if got := features[name].try(n); got != features[name].after {
						t.Errorf("%s: %s, want %s", name, got, features[name].after)
					}
				}
				for _, p := range n.peers {
					p.c.CloseNow()
				}
			})
		}
	}
}
