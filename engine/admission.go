package engine

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/yaza-dev/pulse/codec"
)

// admission counts the connections that have not said hello, in all and by
// address, and judges origins.
type admission struct {
	// immutable
	max, perAddress int
	origins         map[string]bool // normalised
	anyOrigin       bool
	refuseMissing   bool

	// guarded by mu
	mu      sync.Mutex
	waiting int
	from    map[netip.Addr]int
}

func newAdmission(e *Engine) *admission {
	a := &admission{
		max: e.cfg.Limits.MaxUnauthenticated, perAddress: e.cfg.Limits.MaxUnauthenticatedPerAddress,
		refuseMissing: e.cfg.RefuseMissingOrigin,
		origins:       make(map[string]bool), from: make(map[netip.Addr]int),
	}
	for _, o := range e.cfg.Origins {
		a.anyOrigin = a.anyOrigin || o == "*"
		if n, ok := normalOrigin(o); ok {
			a.origins[n] = true
		}
	}
	return a
}

// enter counts one more; false: there are too many.
func (a *admission) enter(addr netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting >= a.max || a.from[addr] >= a.perAddress {
		return false
	}
	a.waiting++
	a.from[addr]++
	return true
}

// leave counts one less.
func (a *admission) leave(addr netip.Addr) {
	a.mu.Lock()
	a.waiting--
	if a.from[addr]--; a.from[addr] == 0 {
		delete(a.from, addr)
	}
	a.mu.Unlock()
}

// inURL are the names under which credentials may not travel in a query.
var inURL = map[string]bool{
	"token": true, "access_token": true, "id_token": true, "jwt": true,
	"authorization": true, "bearer": true, "api_key": true, "resume": true,
}

// judge looks at a request before its upgrade.
func (a *admission) judge(r *http.Request) *codec.Error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return codec.NewError(codec.CodeBadRequest, "the query cannot be read")
	}
	for name := range query {
		if inURL[strings.ToLower(name)] {
			return codec.NewError(codec.CodeBadRequest, "credentials do not belong in a URL")
		}
	}
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) == 0:
		if a.refuseMissing {
			return codec.NewError(codec.CodeForbidden, "an Origin is required")
		}
		return nil
	case len(origins) > 1:
		return codec.NewError(codec.CodeForbidden, "more than one Origin")
	}
	o, ok := normalOrigin(origins[0])
	if !ok || !a.anyOrigin && !a.origins[o] && o != own(r) {
		return codec.NewError(codec.CodeForbidden, "this Origin may not connect")
	}
	return nil
}

// own is the origin that the request's own page would have.
func own(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	o, _ := normalOrigin(scheme + "://" + r.Host)
	return o
}

// normalOrigin is scheme://host:port, the host in lower case and the port always
// there. False: it is no origin, as a browser writes one: a scheme, a host, perhaps
// a port, nothing else, and in ASCII.
func normalOrigin(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || !strings.EqualFold(s, u.Scheme+"://"+u.Host) {
		return "", false
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf { // some of it would become ASCII in lower case
			return "", false
		}
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	case u.Scheme == "https":
		port = "443"
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port, true
}

// retryFull is the hint for who comes while too many wait to say hello.
const retryFull = time.Second

func address(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}
