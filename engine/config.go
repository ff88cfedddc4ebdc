package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/ws"
)

// Config is what an Engine is made of. Only Authenticator must be set; without
// Kinds there is an Engine in which no room exists.
type Config struct {
	// Node names this node to clients and in the ids of events. Empty: random. It
	// must be unique among all nodes that share a broker, over time.
	Node string
	// Kinds of rooms. A client's room of a kind that is not listed exists only if
	// the kind room.Any is.
	Kinds []room.Kind
	// Authenticator says who a client is. The Engine does not close it: who has given
	// it a key set (auth.JWT) closes it after the Engine.
	Authenticator auth.Authenticator
	// Authorizer is asked whether a client may do what its grants allow: to join, to
	// see who is there, to read the history, to publish (once for each membership) and
	// each command. Nil: the grants alone say so.
	Authorizer auth.Authorizer
	// Broker carries events; the Engine does not close it. Nil: one in memory, for
	// one node.
	Broker bridge.Broker
	// Leases says who holds a session, Presence who is in a room. As for Broker.
	Leases   bridge.Leases
	Presence bridge.Presence
	// DeploymentKeys seal what clients bring back to any node: resume tokens. Each
	// is 32 bytes; the first seals, all open. None: one of this Engine's own, which
	// is a fault with Leases, since other nodes could not open what it seals.
	DeploymentKeys [][]byte

	// Commands answers commands of clients that name no room; it runs on the
	// blocking pool under the tenant's share, many at a time, and may block. What it
	// returns is told as what a room.Commander returns. ctx ends when nobody waits
	// for the answer any more; see room.Command. Nil: such commands are not_found.
	Commands func(ctx context.Context, c Command) (any, error)

	Limits         Limits
	TenantDefaults TenantLimits            // of tenants that are not listed
	Tenants        map[string]TenantLimits // zero fields: TenantDefaults

	// Origins of browser pages that may connect besides those of the same origin:
	// scheme://host[:port], or "*" for all.
	Origins []string
	// TrustedProxies are believed what they say in X-Forwarded-For, -Host and -Proto.
	TrustedProxies []netip.Prefix
	// Cookie names a cookie that may hold a client's token; empty: none does.
	Cookie string
	// Compression of WebSocket messages; Threshold 0: 1 KiB.
	Compression ws.Compression
	// RefuseMissingOrigin refuses clients that send no Origin: those that are no
	// browsers.
	RefuseMissingOrigin bool

	// Logger gets what operators should know; no bodies, no tokens. Nil: nothing.
	Logger *slog.Logger

	// MeterProvider makes the instruments of docs/metrics.md, which Close takes back.
	// Nil: nothing is measured, and nothing is paid for it.
	MeterProvider metric.MeterProvider
	// TenantLabels is how many tenants have metrics of their own; the rest are summed
	// up. 0: 100; negative: none.
	TenantLabels int
	// Metrics is served on /metrics of the InternalHandler. Nil: nothing is.
	Metrics http.Handler
	// TracerProvider makes the spans of some publishes: of the share TraceRatio (0:
	// 0.01, negative: none), of which the provider's own sampler may take less. Nil:
	// none.
	TracerProvider trace.TracerProvider
	TraceRatio     float64
	// Build is told by the metrics.
	Build Build
}

// Build says what program this is. Empty fields: what Go has noted of it.
type Build struct{ Version, Revision string }

// Limits of one node. A zero field is its default, given in brackets.
type Limits struct {
	HandshakeTimeout time.Duration // from accept to a valid hello [10 s]
	Ping             time.Duration // of silence before a ping [25 s]
	PongTimeout      time.Duration // [8 s]
	WriteTimeout     time.Duration // a socket that takes nothing for so long is cut [10 s]
	ResumeTTL        time.Duration // how long a session outlives its connection [5 min]
	PresenceGrace    time.Duration // how long presence outlives a lost connection [15 s]; negative: not at all
	Unacked          int           // require_ack events that a membership is sent beyond what it acknowledged [256]

	MaxMessageBytes int // a client's message [64 KiB]
	MaxFrameBytes   int // a frame to a client [512 KiB]

	MaxUnauthenticated           int // connections without hello [1,000]
	MaxUnauthenticatedPerAddress int // an IPv6 network of 64 bits counts as one [100]

	// How many WebSocket connections may come in a second, burst two seconds' worth.
	// Beyond it they are refused before their upgrade. -1: no limit.
	AcceptRate           int // [5,000]
	AcceptRatePerAddress int // [2,500]

	SessionQueueItems int // frames that wait for one client [1,024]
	SessionQueueBytes int // [1 MiB]
	SessionMaxRooms   int // [128]

	MaxSessions     int   // [100,000]
	QueueBytes      int64 // all queues [1 GiB]
	HistoryBytes    int64 // all histories of the memory broker [1 GiB]
	ReplayBytes     int64 // what rooms hold for replay [128 MiB]
	Workers         int   // [one per core]
	BlockingWorkers int   // [64]
}

// TenantLimits of one tenant on one node. A zero field is its default.
type TenantLimits struct {
	Weight       int   // share of the node, relative to other tenants [1]
	MaxSessions  int   // [10,000]
	MaxRooms     int   // [10,000]
	NewRooms     int   // rooms without any history made a second, burst ten seconds' worth [1,000]; -1: no limit
	QueueBytes   int64 // [64 MiB]
	HistoryBytes int64 // [64 MiB]
	ReplayBytes  int64 // [16 MiB]

	// What clients ask for, a second, burst two seconds' worth: events to publish,
	// commands, joins other than those of a hello, and pages of history. Beyond it
	// is rate_limited. In each field -1: no limit.
	Rate        backpressure.Rate // of the tenant's clients, HTTP included [no limit]
	SessionRate backpressure.Rate // of one session [100 messages, 1 MiB]
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// prepare fills the defaults in and reports every fault at once.
func (c *Config) prepare() (message.Kinds, error) {
	if c.Node == "" {
		c.Node = strings.ToLower(rand.Text()[:10])
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Leases == nil && c.DeploymentKeys == nil {
		own := make([]byte, 32)
		_, _ = rand.Read(own) // never fails
		c.DeploymentKeys = [][]byte{own}
	}
	set(&c.TenantLabels, 100)
	set(&c.TraceRatio, 0.01)
	c.Build.defaults()
	c.Limits.defaults()
	c.TenantDefaults.defaults(TenantLimits{
		Weight: 1, MaxSessions: 10_000, MaxRooms: 10_000, NewRooms: 1_000,
		QueueBytes: 64 << 20, HistoryBytes: 64 << 20, ReplayBytes: 16 << 20,
		Rate:        backpressure.Rate{Messages: -1, Bytes: -1},
		SessionRate: backpressure.Rate{Messages: 100, Bytes: 1 << 20},
	})
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("engine: "+format, args...)) }

	if _, err := auth.NewSealer(c.DeploymentKeys); err != nil {
		faults = append(faults, err)
	}
	if c.Authenticator == nil {
		fault("Authenticator is not set")
	}
	kinds := make(message.Kinds, len(c.Kinds))
	for _, k := range c.Kinds {
		p, err := k.Policy()
		if err != nil {
			faults = append(faults, err)
		}
		if kinds[k.Name] != nil {
			fault("kind %q is declared twice", k.Name)
		}
		if p.History.Events > 0 && p.History.Bytes < int64(c.Limits.MaxMessageBytes) {
			fault("kind %q: a history of %d bytes is under MaxMessageBytes, %d", k.Name, p.History.Bytes, c.Limits.MaxMessageBytes)
		}
		kinds[k.Name] = p
	}
	c.Limits.validate(fault)
	c.TenantDefaults.validate("TenantDefaults", fault)
	for name, t := range c.Tenants {
		if !codec.ValidTenant(name) {
			fault("tenant %q: no valid name", name)
		}
		t.validate("tenant "+name, fault)
	}
	if c.Cookie != "" && (&http.Cookie{Name: c.Cookie}).Valid() != nil {
		fault("cookie %q: no valid name", c.Cookie)
	}
	for _, o := range c.Origins {
		if o == "*" {
			continue
		}
		if _, ok := normalOrigin(o); !ok {
			fault("origin %q is not of the form scheme://host[:port]", o)
		}
	}
	return kinds, errors.Join(faults...)
}

func (l *Limits) defaults() {
	set(&l.HandshakeTimeout, 10*time.Second)
	set(&l.Ping, 25*time.Second)
	set(&l.PongTimeout, 8*time.Second)
	set(&l.WriteTimeout, 10*time.Second)
	set(&l.ResumeTTL, 5*time.Minute)
	set(&l.PresenceGrace, 15*time.Second)
	set(&l.Unacked, 256)
	set(&l.MaxMessageBytes, 64<<10)
	set(&l.MaxFrameBytes, 512<<10)
	set(&l.MaxUnauthenticated, 1_000)
	set(&l.MaxUnauthenticatedPerAddress, 100)
	set(&l.AcceptRate, 5_000)
	set(&l.AcceptRatePerAddress, 2_500)
	set(&l.SessionQueueItems, 1_024)
	set(&l.SessionQueueBytes, 1<<20)
	set(&l.SessionMaxRooms, 128)
	set(&l.MaxSessions, 100_000)
	set(&l.QueueBytes, 1<<30)
	set(&l.HistoryBytes, 1<<30)
	set(&l.ReplayBytes, 128<<20)
	set(&l.BlockingWorkers, 64)
}

func (l *Limits) validate(fault func(string, ...any)) {
	for name, v := range map[string]int64{
		"HandshakeTimeout": int64(l.HandshakeTimeout), "Ping": int64(l.Ping), "PongTimeout": int64(l.PongTimeout),
		"WriteTimeout": int64(l.WriteTimeout), "ResumeTTL": int64(l.ResumeTTL), "MaxMessageBytes": int64(l.MaxMessageBytes),
		"MaxFrameBytes": int64(l.MaxFrameBytes), "MaxUnauthenticated": int64(l.MaxUnauthenticated),
		"MaxUnauthenticatedPerAddress": int64(l.MaxUnauthenticatedPerAddress), "SessionQueueItems": int64(l.SessionQueueItems),
		"SessionQueueBytes": int64(l.SessionQueueBytes), "SessionMaxRooms": int64(l.SessionMaxRooms), "Unacked": int64(l.Unacked), "MaxSessions": int64(l.MaxSessions),
		"QueueBytes": l.QueueBytes, "HistoryBytes": l.HistoryBytes, "ReplayBytes": l.ReplayBytes,
		"Workers": int64(l.Workers), "BlockingWorkers": int64(l.BlockingWorkers),
	} {
		if v < 0 {
			fault("Limits.%s is negative", name)
		}
	}
	if min(l.AcceptRate, l.AcceptRatePerAddress) < -1 {
		fault("Limits: an accept rate is negative")
	}
	if least := 6*l.MaxMessageBytes + 4<<10; l.MaxFrameBytes < least {
		fault("Limits.MaxFrameBytes is %d; with this MaxMessageBytes it must be at least %d", l.MaxFrameBytes, least)
	}
	if least := l.MaxFrameBytes + 64<<10; l.SessionQueueBytes < least {
		fault("Limits.SessionQueueBytes is %d; with this MaxFrameBytes it must be at least %d", l.SessionQueueBytes, least)
	}
}

func (t *TenantLimits) defaults(d TenantLimits) {
	set(&t.Weight, d.Weight)
	set(&t.MaxSessions, d.MaxSessions)
	set(&t.MaxRooms, d.MaxRooms)
	set(&t.NewRooms, d.NewRooms)
	set(&t.QueueBytes, d.QueueBytes)
	set(&t.HistoryBytes, d.HistoryBytes)
	set(&t.ReplayBytes, d.ReplayBytes)
	set(&t.Rate.Messages, d.Rate.Messages)
	set(&t.Rate.Bytes, d.Rate.Bytes)
	set(&t.SessionRate.Messages, d.SessionRate.Messages)
	set(&t.SessionRate.Bytes, d.SessionRate.Bytes)
}

func (t *TenantLimits) validate(name string, fault func(string, ...any)) {
	if t.Weight < 0 || t.MaxSessions < 0 || t.MaxRooms < 0 || t.NewRooms < -1 || t.QueueBytes < 0 || t.HistoryBytes < 0 || t.ReplayBytes < 0 ||
		min(t.Rate.Messages, t.SessionRate.Messages) < -1 || min(t.Rate.Bytes, t.SessionRate.Bytes) < -1 {
		fault("%s: a limit is negative", name)
	}
}
