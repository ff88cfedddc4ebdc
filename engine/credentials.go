package engine

import (
	"net/http"

	"github.com/yaza-dev/pulse/auth"
)

// credentials are those that a request carries: a bearer header, else the cookie
// that the deployment names, where it counts.
func (e *Engine) credentials(r *http.Request) auth.Credentials {
	cr := auth.Credentials{Source: auth.None, Remote: address(r).String(), Header: r.Header}
	if token, ok := bearer(r.Header); ok && token != "" {
		cr.Token, cr.Source = token, auth.Bearer
	} else if token := e.cookie(r); token != "" {
		cr.Token, cr.Source = token, auth.Cookie
	}
	return cr
}

// cookie is the token of the named cookie. A browser sends it whoever's page asks,
// so it counts only where the page is known: with an Origin, which was accepted
// before, and for a GET that has none unless the browser says that the page is of
// another site. Of two cookies of the name neither counts.
func (e *Engine) cookie(r *http.Request) string {
	if e.cfg.Cookie == "" {
		return ""
	}
	cookies := r.CookiesNamed(e.cfg.Cookie)
	if len(cookies) != 1 {
		return ""
	}
	if r.Header.Get("Origin") == "" {
		upgrade := r.Header.Get("Upgrade") != ""
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case r.Method != http.MethodGet, upgrade, site == "same-site", site == "cross-site":
			return ""
		}
	}
	return cookies[0].Value
}
