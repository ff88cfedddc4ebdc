package engine

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/yaza-dev/pulse/codec"
)

// admission counts the connections that have not said hello, in all and by
// source, how fast they come, and judges origins.
type admission struct {
	// immutable
	max, perAddress int
	arrivals        *arrivals // has its own lock

	origins atomic.Pointer[origins]

	// guarded by mu
	mu      sync.Mutex
	waiting int
	from    map[netip.Addr]int // by source
}

func newAdmission(e *Engine) *admission {
	a := &admission{
		max: e.cfg.Limits.MaxUnauthenticated, perAddress: e.cfg.Limits.MaxUnauthenticatedPerAddress,
		arrivals: newArrivals(e.cfg.Limits.AcceptRate, e.cfg.Limits.AcceptRatePerAddress),
		from:     make(map[netip.Addr]int),
	}
	a.origins.Store(newOrigins(&e.cfg))
	return a
}

// origins are those that may connect. Immutable.
type origins struct {
	listed        map[string]bool // normalised
	any           bool
	refuseMissing bool
}

func newOrigins(cfg *Config) *origins {
	a := &origins{listed: make(map[string]bool), refuseMissing: cfg.RefuseMissingOrigin}
	for _, o := range cfg.Origins {
		a.any = a.any || o == "*"
		if n, ok := normalOrigin(o); ok {
			a.listed[n] = true
		}
	}
	return a
}

// paced refuses a connection that comes too fast after others, at no more cost than
// that its request was read.
func (a *admission) paced(now int64, addr netip.Addr) *codec.Error {
	switch wait, own := a.arrivals.take(now, source(addr)); {
	case wait == 0:
		return nil
	case own:
		return codec.Retry(codec.CodeRateLimited, codec.ScopeNode, max(wait, retryFull), "too many connections of one address a second")
	default:
		return codec.Retry(codec.CodeUnavailable, codec.ScopeNode, max(wait, retryFull), "too many connections a second")
	}
}

// enter counts one more; false: there are too many.
func (a *admission) enter(addr netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := source(addr)
	if a.waiting >= a.max || a.from[from] >= a.perAddress {
		return false
	}
	a.waiting++
	a.from[from]++
	return true
}

// leave counts one less.
func (a *admission) leave(addr netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := source(addr)
	a.waiting--
	if a.from[from]--; a.from[from] == 0 {
		delete(a.from, from)
	}
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
	if len(r.Header["Authorization"]) > 1 {
		return codec.NewError(codec.CodeUnauthenticated, "more than one Authorization")
	}
	if token, ok := bearer(r.Header); ok && token == "" {
		return codec.NewError(codec.CodeUnauthenticated, "the bearer has no token")
	}
	allowed, origins := a.origins.Load(), r.Header.Values("Origin")
	switch {
	case len(origins) == 0:
		if allowed.refuseMissing {
			return codec.NewError(codec.CodeForbidden, "an Origin is required")
		}
		return nil
	case len(origins) > 1:
		return codec.NewError(codec.CodeForbidden, "more than one Origin")
	}
	o, ok := normalOrigin(origins[0])
	if !ok || !allowed.any && !allowed.listed[o] && o != own(r) {
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
