package config

import (
	"reflect"
	"strings"
)

// Idle are the settings that are not their defaults and yet change nothing, each with
// what makes it so: no faults, and hardly meant.
func (c *Config) Idle() (list []Fault) {
	var defaults Config
	setDefaults(reflect.ValueOf(&defaults).Elem())
	for _, change := range defaults.Changes(c) {
		for _, rule := range c.idle() {
			if rule.holds && (change.Path == rule.path || strings.HasSuffix(rule.path, ".") && strings.HasPrefix(change.Path, rule.path)) {
				list = append(list, Fault{Key: change.Path, Problem: rule.why})
				break
			}
		}
	}
	return list
}

// idleRule says when a setting, or with a dot at its end all below it, changes nothing.
type idleRule struct {
	path  string
	holds bool
	why   string
}

func (c *Config) idle() []idleRule {
	r, compression, traces := c.Bridge.Redis, c.Transport.Compression, c.Telemetry
	alone := len(r.Addresses) == 0
	const (
		noRedis    = "there are no bridge.redis.addresses: the node stands alone"
		keptThere  = "with bridge.redis histories are kept there: redis_bytes bounds them"
		noKeySet   = "there is no auth.jwt.jwks.url"
		noTraces   = "nothing is traced: telemetry.otlp_endpoint and telemetry.trace_ratio go together"
		smallFrame = "no frame is so large: transport.max_frame_bytes is below transport.compression.threshold"
	)
	return []idleRule{
		{"bridge.redis.", alone, noRedis},
		{"node.lease", alone, noRedis},
		{"tenant_defaults.redis_bytes", alone, noRedis},
		{"node.history_bytes", !alone, keptThere},
		{"tenant_defaults.history_bytes", !alone, keptThere},
		{"bridge.redis.username", r.PasswordFile == "", "there is no bridge.redis.password_file"},
		{"bridge.redis.compression_threshold", r.CompressionThreshold > r.PayloadMax, "no payload is so large: bridge.redis.payload_max is below it"},
		{"transport.compression.threshold", !compression.Enabled, "transport.compression.enabled is false"},
		{"transport.compression.enabled", compression.Enabled && compression.Threshold > c.Transport.MaxFrameBytes, smallFrame},
		{"transport.max_unauthenticated_per_address", c.Transport.MaxUnauthenticatedPerAddress > c.Transport.MaxUnauthenticated, "transport.max_unauthenticated is below it"},
		{"session.presence_grace", c.Session.PresenceGrace > c.Session.ResumeTTL, "session.resume_ttl is below it: a session that ends leaves"},
		{"auth.jwt.jwks.refresh", c.Auth.JWT.JWKS.URL == "", noKeySet},
		{"telemetry.otlp_endpoint", traces.TraceRatio == 0, noTraces},
		{"telemetry.trace_ratio", traces.OTLPEndpoint == "", noTraces},
	}
}
