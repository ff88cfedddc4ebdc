package engine

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestProxiesAreBelievedOnlyWhenTrusted(t *testing.T) {
	const proxy, far = "10.0.0.1:1234", "198.51.100.7:99"
	for _, test := range []struct {
		name, peer string
		headers    []string
		address    string
		own        string
	}{
		{"nothing said", proxy, nil, "10.0.0.1", "http://node:80"},
		{"the client behind one proxy", proxy, []string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: app.example"},
			"203.0.113.9", "https://app.example:443"},
		{"behind two", proxy, []string{"X-Forwarded-For: 203.0.113.9, 10.0.0.2"}, "203.0.113.9", "http://node:80"},
		{"in two headers", proxy, []string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 10.0.0.2"}, "203.0.113.9", "http://node:80"},
		{"what the client itself invented", proxy, []string{"X-Forwarded-For: 1.1.1.1, 203.0.113.9"}, "203.0.113.9", "http://node:80"},
		{"with a port", proxy, []string{"X-Forwarded-For: [2001:db8::1]:4711"}, "2001:db8::1", "http://node:80"},
		{"no address", proxy, []string{"X-Forwarded-For: unknown"}, "10.0.0.1", "http://node:80"},
		{"a scheme that is none", proxy, []string{"X-Forwarded-Proto: gopher"}, "10.0.0.1", "http://node:80"},
		{"from somebody else", far, []string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: app.example"},
			"198.51.100.7", "http://node:80"},
	} {
		t.Run(test.name, func(t *testing.T) {
			warned := 0
			p := proxies{trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, warn: func() { warned++ }}
			for range 2 {
				r := httptest.NewRequest("GET", "http://node/v1/ws", nil)
				r.Host, r.RemoteAddr = "node", test.peer
				for _, h := range test.headers {
					name, value, _ := strings.Cut(h, ": ")
					r.Header.Add(name, value)
				}
				p.around(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if a, o := address(r).String(), own(r); a != test.address || o != test.own {
						t.Errorf("seen as %s of %s, want %s of %s", a, o, test.address, test.own)
					}
				})).ServeHTTP(httptest.NewRecorder(), r)
			}
			if want := map[bool]int{true: 1}[test.peer == far]; warned != want {
				t.Errorf("warned %d times, want %d", warned, want)
			}
		})
	}
}
