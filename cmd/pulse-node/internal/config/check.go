package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

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
	l.checkAuth()
	l.checkProxies()
	l.checkDeployment()
	l.checkRedis()
	l.checkTelemetry()
	l.checkTLS()
	for i, origin := range c.Origins {
		if err := checkOrigin(origin); err != nil {
			l.fault(fmt.Sprintf("origins[%d]", i), l.source("origins"), err.Error())
		}
	}
	for name := range c.Tenants {
		if path := join("tenants", name); !codec.ValidTenant(name) {
			l.fault(path, l.source(path), "must be a tenant: 1 to 64 of A-Z, a-z, 0-9, '_', '.', '-'")
		}
	}
	l.checkRooms()
}

func (l *loader) checkTLS() {
	switch c := l.config.TLS; {
	case (c.CertFile == "") != (c.KeyFile == ""):
		l.fault("tls", l.source("tls"), "must name both cert_file and key_file, or neither")
	case c.CertFile != "":
		if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
			l.fault("tls", l.source("tls"), err.Error())
		}
	}
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

func (l *loader) checkProxies() {
	for i, text := range l.config.TrustedProxies {
		p, err := netip.ParsePrefix(text)
		if err != nil || p.Addr().Is4In6() {
			l.fault(fmt.Sprintf("trusted_proxies[%d]", i), l.source("trusted_proxies"),
				fmt.Sprintf("%q must be a CIDR, such as 10.0.0.0/8, 192.0.2.1/32 or fd00::/8", text))
			continue
		}
		l.config.Proxies = append(l.config.Proxies, p)
	}
}

var errOrigin = errors.New(`must be scheme://host or scheme://host:port, exactly, such as https://app.example.com`)

// checkOrigin wants what a browser sends: a scheme and a host, and nothing else.
func checkOrigin(origin string) error {
	if origin == "*" {
		return errors.New(`"*" is for pulse-node dev only; list the origins`)
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Scheme+"://"+u.Host != origin || strings.ContainsFunc(origin, notASCII) {
		return fmt.Errorf("%q %w", origin, errOrigin)
	}
	if port := u.Port(); strings.HasSuffix(u.Host, ":") || port != "" && !isPort(port) || strings.Contains(u.Host, "*") {
		return fmt.Errorf("%q %w", origin, errOrigin)
	}
	return nil
}

// notASCII: browsers write such names in ASCII (xn--…).
func notASCII(r rune) bool { return r > unicode.MaxASCII }

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
