package engine

import (
	"net/http"
	"net/netip"

	"github.com/yaza-dev/pulse/auth"
)

// credentials are those that a request carries: a bearer header, else the cookie
// that the deployment names, where it counts.
func (e *Engine) credentials(r *http.Request) auth.Credentials {
	return e.carried(r.Header, address(r), reads(r))
}

// carried are the credentials in the headers of a request from remote. reads: the
// request changes nothing and opens nothing.
func (e *Engine) carried(h http.Header, remote netip.Addr, reads bool) auth.Credentials {
	cr := auth.Credentials{Source: auth.None, Remote: remote.String(), Header: h}
	if token, ok := bearer(h); ok && token != "" {
		cr.Token, cr.Source = token, auth.Bearer
	} else if token := e.cookie(h, reads); token != "" {
		cr.Token, cr.Source = token, auth.Cookie
	}
	return cr
}

// cookie is the token of the named cookie. A browser sends it whoever's page asks,
// so it counts only where the page is known: with an Origin, which was accepted
// before, and for what only reads and has none unless the browser says that the
// page is of another site. Of two cookies of the name neither counts.
func (e *Engine) cookie(h http.Header, reads bool) string {
	if e.cfg.Cookie == "" {
		return ""
	}
	cookies := (&http.Request{Header: h}).CookiesNamed(e.cfg.Cookie)
	if len(cookies) != 1 {
		return ""
	}
	if h.Get("Origin") == "" {
		switch site := h.Get("Sec-Fetch-Site"); {
		case !reads, site == "same-site", site == "cross-site":
			return ""
		}
	}
	return cookies[0].Value
}
