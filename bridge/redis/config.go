package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Mode is how the servers are found.
type Mode uint8

const (
	Standalone Mode = iota // one server, at the first address
	Sentinel               // the addresses are of sentinels, which know the primary
	Cluster                // the addresses are of some nodes, which know the others
)

var modes = [...]string{Standalone: "standalone", Sentinel: "sentinel", Cluster: "cluster"}

// String is the mode's name in the configuration.
func (m Mode) String() string { return modes[m] }

// Config is what a Bridge needs to know. The zero value of a field is the default
// that it names.
type Config struct {
	Addresses  []string // host:port; at least one
	Mode       Mode
	MasterName string // of Sentinel
	Username   string // ACL user; empty: the default user
	Password   string
	TLS        *tls.Config // nil: none

	KeyPrefix     string // before every key; without braces
	ChannelPrefix string // before every channel; without braces

	CompressAbove int // bytes of data above which it is compressed; 0: 1024, below 0: never
	PayloadMax    int // most bytes of data, before compression and after inflating; 0: 4 MiB, which is the most

	Outage OutageQueue

	// Check is how often the position of each room of interest is compared with
	// the server's, though nothing seems missing. 0: 30 s.
	Check time.Duration

	// Node names this node among those on one server; empty: a random name. It is
	// of letters, digits and "-", and never used twice.
	Node string

	// Lease is how long this node is taken for alive after the server has last heard
	// of it: then those who are in rooms on it leave. It is prolonged at a third.
	// 0: 15 s.
	Lease time.Duration

	// TenantBytes is what a tenant's history may take on the server, as it is
	// estimated: each live node has an equal share of it, for what it writes. Beyond
	// that what is to be kept is refused. It is asked at each publication of a tenant
	// that has something there, and may change; it returns at once. Nil: no bound.
	TenantBytes func(tenant string) int64

	// NewRooms is how many topics without a history a tenant may begin to follow on
	// this node a second, in bursts of ten seconds' worth; 0: no limit. Beyond, a
	// subscription is refused. It may change, and returns at once. Nil: no limit.
	NewRooms func(tenant string) int

	Logger *slog.Logger // nil: none
}

// OutageQueue bounds what waits for the server.
type OutageQueue struct {
	Items int   // 0: 10,000; a quarter of it for one tenant
	Bytes int64 // 0: 16 MiB; likewise

	// Wait is how long a publication waits while the server is away, before it
	// fails. 0: 5 s; below 0: it fails at once.
	Wait time.Duration
}

// payloadCap is the most that any configuration allows.
const payloadCap = 4 << 20

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	c.CompressAbove = cmp.Or(c.CompressAbove, 1024)
	c.PayloadMax = cmp.Or(c.PayloadMax, payloadCap)
	c.Outage.Items = cmp.Or(c.Outage.Items, 10_000)
	c.Outage.Bytes = cmp.Or(c.Outage.Bytes, 16<<20)
	c.Outage.Wait = max(0, cmp.Or(c.Outage.Wait, 5*time.Second))
	c.Check = cmp.Or(c.Check, 30*time.Second)
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	if c.Node == "" {
		c.Node = fresh()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("redis: "+format, args...)) }
	if len(c.Addresses) == 0 {
		fault("no addresses")
	}
	if c.Mode == Standalone && len(c.Addresses) > 1 {
		fault("standalone has one address, not %d", len(c.Addresses))
	}
	if c.Mode > Cluster {
		fault("unknown mode %d", c.Mode)
	}
	if (c.Mode == Sentinel) != (c.MasterName != "") {
		fault("a master name belongs to mode sentinel, and it to a master name")
	}
	for _, prefix := range []string{c.KeyPrefix, c.ChannelPrefix} {
		if strings.ContainsAny(prefix, "{}") {
			fault("prefix %q has a brace", prefix)
		}
	}
	if c.PayloadMax < 0 || c.PayloadMax > payloadCap {
		fault("payloads of %d bytes: at most %d", c.PayloadMax, payloadCap)
	}
	if c.Outage.Items < 0 || c.Outage.Bytes < 0 || c.Check < 0 || c.Lease < 0 {
		fault("a bound below nought")
	}
	if !validNode(c.Node) {
		fault("node %q: letters, digits and - only, 64 at most", c.Node)
	}
	return errors.Join(faults...)
}

func validNode(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-') {
			return false
		}
	}
	return len(s) <= 64
}
