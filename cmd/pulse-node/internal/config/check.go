package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/yaza-dev/pulse/codec"
)

// Largest and least distances between limits that depend on each other.
const (
	// An accepted message fits a frame in either codec: escaping grows text by
	// six at most, and a frame has fields of its own.
	frameFactor = 6
	frameRest   = 4 << 10
	// A queue that cannot hold one frame beside what is smaller would never send it.
	queueRest = 64 << 10
)

// check looks at what settings say together, and at the grammar of names.
func (l *loader) check() {
	c := l.config
	l.checkListeners()
	l.checkLimits()
	l.checkKeys()
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		l.fault("tls", l.source("tls"), "must name both cert_file and key_file, or neither")
	}
	for i, origin := range c.Origins {
		if err := checkOrigin(origin); err != nil {
			l.fault(fmt.Sprintf("origins[%d]", i), l.source("origins"), err.Error())
		}
	}
	if c.Auth.JWT.TenantClaim == "" {
		l.fault("auth.jwt.tenant_claim", l.source("auth.jwt.tenant_claim"), "must name a claim")
	}
	for name := range c.Tenants {
		if path := join("tenants", name); !codec.ValidTenant(name) {
			l.fault(path, l.source(path), "must be a tenant: 1 to 64 of A-Z, a-z, 0-9, '_', '.', '-'")
		}
	}
	l.checkRooms()
}

func (l *loader) checkListeners() {
	c := l.config
	listen := l.checkAddress("listen", c.Listen)
	internal := l.checkAddress("internal.listen", c.Internal.Listen)
	if listen != "" && listen == internal {
		l.fault("internal.listen", l.source("internal.listen"), "must be another address than listen")
	}
}

// checkAddress returns the address in one spelling; empty where it is none, or
// never equal to another.
func (l *loader) checkAddress(path, address string) string {
	host, port, err := net.SplitHostPort(address)
	if n, numErr := strconv.ParseUint(port, 10, 16); err != nil || numErr != nil {
		l.fault(path, l.source(path), fmt.Sprintf("%q must be host:port with a port of 0 to 65535, such as :8080", address))
		return ""
	} else if n == 0 {
		return ""
	} else {
		port = strconv.FormatUint(n, 10)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "*"
	} else if ip != nil {
		host = ip.String()
	}
	return host + " " + port
}

func (l *loader) checkLimits() {
	t, queue := l.config.Transport, l.config.Session.Queue
	if t.MaxFrameBytes < frameRest || (t.MaxFrameBytes-frameRest)/frameFactor < t.MaxMessageBytes {
		l.fault("transport.max_frame_bytes", l.source("transport.max_frame_bytes"),
			fmt.Sprintf("%v must be at least six times transport.max_message_bytes (%v) and 4KiB", t.MaxFrameBytes, t.MaxMessageBytes))
	}
	if queue.Bytes-queueRest < t.MaxFrameBytes {
		l.fault("session.queue.bytes", l.source("session.queue.bytes"),
			fmt.Sprintf("%v must be at least transport.max_frame_bytes (%v) and 64KiB", queue.Bytes, t.MaxFrameBytes))
	}
}

func (l *loader) checkRooms() {
	for name, declared := range l.config.Rooms {
		path := join("rooms", name)
		if declared.History.Events > 0 && declared.History.Bytes < l.config.Transport.MaxMessageBytes {
			l.fault(join(path, "history.bytes"), l.source(join(path, "history.bytes")),
				fmt.Sprintf("%v must be at least transport.max_message_bytes (%v)", declared.History.Bytes, l.config.Transport.MaxMessageBytes))
		}
		for _, fault := range declared.Faults(name) {
			at := path
			if fault.Event != "" {
				at = join(join(path, "events"), fault.Event)
			}
			l.fault(at, l.source(at), fault.Problem)
		}
	}
}

var errOrigin = errors.New(`must be scheme://host or scheme://host:port, exactly, such as https://app.example.com`)

// checkOrigin wants what a browser sends: a scheme and a host, and nothing else.
func checkOrigin(origin string) error {
	if origin == "*" {
		return errors.New(`"*" is for pulse-node dev only; list the origins`)
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Scheme+"://"+u.Host != origin {
		return fmt.Errorf("%q %w", origin, errOrigin)
	}
	if port := u.Port(); strings.HasSuffix(u.Host, ":") || port != "" && !isPort(port) {
		return fmt.Errorf("%q %w", origin, errOrigin)
	}
	return nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// checkKeys gives every key its secret.
func (l *loader) checkKeys() {
	keys := l.config.Auth.JWT.Keys
	seen := map[string]bool{}
	for i := range keys {
		k := &keys[i]
		path := fmt.Sprintf("auth.jwt.keys[%d]", i)
		if _, given := l.sources[join(path, "alg")]; !given {
			l.fault(join(path, "alg"), l.source(path), "must be given: HS256")
		}
		if k.KID != "" && seen[k.KID] {
			l.fault(join(path, "kid"), l.source(path), fmt.Sprintf("%q is another key's; each kid must be given once", k.KID))
		}
		seen[k.KID] = true
		secret, err := l.secret(*k)
		if err == nil && len(secret) < minSecret {
			err = fmt.Errorf("its secret has %d bytes; must have at least %d", len(secret), minSecret)
		}
		if err != nil {
			l.fault(path, l.source(path), err.Error())
		}
		k.Secret = string(secret)
	}
}

// minSecret is the least size of a symmetric key: that of the hash.
const minSecret = 32
