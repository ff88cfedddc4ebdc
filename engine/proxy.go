package engine

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
)

// proxies believes what trusted proxies say about the clients behind them.
type proxies struct {
	trusted []netip.Prefix
	warn    func() // of a forwarding header that nobody is trusted to send
	warned  atomic.Bool
}

// around makes requests look as if they had come from the client itself: its
// address, the host that it asked for, and whether it used TLS. Headers of anybody
// who is not trusted count for nothing.
func (p *proxies) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if peer := address(r); p.trusts(peer) {
			seen := *r
			p.forwarded(&seen, peer)
			r = &seen
		} else if !p.warned.Load() && forwards(r.Header) && !p.warned.Swap(true) {
			p.warn()
		}
		next.ServeHTTP(w, r)
	})
}

func (p *proxies) trusts(a netip.Addr) bool {
	for _, prefix := range p.trusted {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// forwarded takes over what the proxy at peer says.
func (p *proxies) forwarded(r *http.Request, peer netip.Addr) {
	client := peer
	// Each proxy appends the peer that it saw: what stands before the first one that
	// is not trusted could be anybody's invention.
	chain := list(r.Header, "X-Forwarded-For")
	for i := len(chain) - 1; i >= 0 && p.trusts(client); i-- {
		a, err := hop(chain[i])
		if err != nil {
			break
		}
		client = a
	}
	if client != peer {
		r.RemoteAddr = netip.AddrPortFrom(client, 0).String()
	}
	switch last(r.Header, "X-Forwarded-Proto") {
	case "http":
		r.TLS = nil
	case "https":
		r.TLS = &tls.ConnectionState{}
	}
	if host := last(r.Header, "X-Forwarded-Host"); host != "" {
		r.Host = host
	}
}

// hop is the address in an element of X-Forwarded-For, which may have a port.
func hop(s string) (netip.Addr, error) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr().Unmap(), nil
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap(), err
}

func forwards(h http.Header) bool {
	return h.Get("X-Forwarded-For") != "" || h.Get("X-Forwarded-Proto") != "" || h.Get("X-Forwarded-Host") != ""
}

// list are the elements of a header that may come in several lines.
func list(h http.Header, name string) (all []string) {
	for _, line := range h.Values(name) {
		for e := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(e))
		}
	}
	return all
}

// last is what the nearest proxy said.
func last(h http.Header, name string) string {
	if all := list(h, name); len(all) > 0 {
		return strings.ToLower(all[len(all)-1])
	}
	return ""
}
