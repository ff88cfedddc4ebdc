package config

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

const (
	// payloadCap is the most that payload_max may be.
	payloadCap = 4 << 20
	// leastLease leaves time to renew a node's lease at a third of it, and two seconds
	// before its end to notice that it was not.
	leastLease = 3 * time.Second
)

// checkRedis looks at what the bridge of several nodes is told.
func (l *loader) checkRedis() {
	c, at := l.config, "bridge.redis."
	r := &c.Bridge.Redis
	fault := func(name, text string) { l.fault(at+name, l.source(at+name), text) }
	for i, address := range r.Addresses {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || !isPort(port) {
			l.fault(fmt.Sprintf("%saddresses[%d]", at, i), l.source(at+"addresses"), fmt.Sprintf("%q must be host:port", address))
		}
	}
	if r.Mode == "standalone" && len(r.Addresses) > 1 {
		fault("addresses", fmt.Sprintf("must be one with mode standalone, and are %d", len(r.Addresses)))
	}
	switch {
	case r.Mode == "sentinel" && r.MasterName == "":
		fault("master_name", "must be set with mode sentinel")
	case r.Mode != "sentinel" && r.MasterName != "":
		fault("master_name", "goes with mode sentinel")
	}
	for name, prefix := range map[string]string{"key_prefix": r.KeyPrefix, "channel_prefix": r.ChannelPrefix} {
		if strings.ContainsAny(prefix, "{}") {
			fault(name, "must not have '{' or '}' in it, which choose a cluster's slot")
		}
	}
	if r.PayloadMax > payloadCap {
		fault("payload_max", "must be at most 4MiB")
	}
	if c.Node.Lease < leastLease {
		l.fault("node.lease", l.source("node.lease"), fmt.Sprintf("must be at least %v", leastLease))
	}
	if r.PasswordFile != "" {
		secret, err := os.ReadFile(r.PasswordFile)
		if err != nil {
			fault("password_file", err.Error())
		}
		c.RedisPassword = string(cutLineBreak(secret))
	}
	if len(r.Addresses) > 0 && c.DeploymentKeyFile == "" {
		l.fault("deployment_key_file", l.source("bridge.redis.addresses"), "must be set with bridge.redis, the same on every node")
	}
}
