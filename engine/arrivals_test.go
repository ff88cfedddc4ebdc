package engine

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

func TestSourceOfAnAddress(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1":                 "192.0.2.1",
		"::ffff:192.0.2.1":          "192.0.2.1",
		"2001:db8:1:2:3:4:5:6":      "2001:db8:1:2::",
		"2001:db8:1:2::":            "2001:db8:1:2::",
		"2001:db8:1:3::1":           "2001:db8:1:3::",
		"fe80::1%eth0":              "fe80::",
		"::1":                       "::",
		"64:ff9b::192.0.2.1":        "64:ff9b::",
		"::ffff:192.0.2.1%whatever": "192.0.2.1",
	} {
		a, err := netip.ParseAddr(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := source(a).String(); got != want {
			t.Errorf("%s counts as %s, want %s", address, got, want)
		}
		if got := sourceOf(address); got != want {
			t.Errorf("%s, as a text, counts as %s, want %s", address, got, want)
		}
	}
	if source(netip.Addr{}) != (netip.Addr{}) || sourceOf("") != "" || sourceOf("@") != "@" {
		t.Error("what has no address counts as something else")
	}
}

// Bursts of two seconds' worth, then as fast as the rate says; what is refused for
// one's own rate costs the others nothing.
func TestArrivals(t *testing.T) {
	a := newArrivals(100, 10)
	sources := make([]netip.Addr, 50)
	for i := range sources {
		sources[i] = netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
	}
	come := func(now time.Duration, source netip.Addr, times int) (in, own, all int) {
		for range times {
			switch wait, its := a.take(int64(now), source); {
			case wait == 0:
				in++
			case its:
				own++
			default:
				all++
			}
		}
		return in, own, all
	}
	const first = 100 * time.Second
	if in, own, all := come(first, sources[0], 50); in != 20 || own != 30 || all != 0 {
		t.Errorf("one: %d came in, %d were too fast for theirs, %d for all", in, own, all)
	}
	total := 20
	for _, s := range sources[1:] {
		in, own, _ := come(first, s, 10)
		if total += in; own != 0 {
			t.Fatalf("%v: %d were too fast for theirs", s, own)
		}
	}
	if total != 200 {
		t.Errorf("%d came in at once, want 200", total)
	}
	if in, own, all := come(first+time.Second, sources[0], 50); in != 10 || own != 40 || all != 0 {
		t.Errorf("a second later: %d, %d, %d", in, own, all)
	}
	if in, _, all := come(first+time.Second, sources[49], 20); in != 20 || all != 0 {
		t.Errorf("another has to suffer for it: %d came in, %d did not", in, all)
	}

	unlimited := newArrivals(-1, -1)
	for range 10_000 {
		if wait, _ := unlimited.take(0, sources[0]); wait > 0 {
			t.Fatal("a limit where there is none")
		}
	}
	if len(unlimited.now)+len(unlimited.old) > 0 {
		t.Error("sources are remembered for nothing")
	}
}

// Who comes from ever new addresses is remembered in bounded memory, and a source that
// rests is forgotten when that makes no difference.
func TestArrivalsForget(t *testing.T) {
	a := newArrivals(-1, 1)
	for i := range 5 * maxPaced {
		a.take(0, netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if n := len(a.now) + len(a.old); n > 2*maxPaced {
		t.Errorf("%d sources are remembered", n)
	}
	one := netip.MustParseAddr("192.0.2.1")
	now := int64(time.Hour)
	for i := range 4 {
		wait, own := a.take(now, one)
		if refused := i >= 2; (wait > 0) != refused || own != refused {
			t.Errorf("%d: has to wait %v", i, wait)
		}
	}
	if wait, _ := a.take(now+int64(pacedFor)+1, netip.MustParseAddr("192.0.2.2")); wait > 0 || a.old[one] == nil {
		t.Errorf("another waits %v", wait)
	}
	a.take(now+2*int64(pacedFor)+2, netip.MustParseAddr("192.0.2.2"))
	if a.now[one] != nil || a.old[one] != nil {
		t.Error("not forgotten")
	}
}

// upgradeFrom asks for an upgrade from an address, as far as the Engine is asked
// before it.
func upgradeFrom(e *Engine, address string) *codec.Error {
	r := httptest.NewRequest(http.MethodGet, "/v1/ws", nil)
	r.RemoteAddr = address
	return e.Admit(r)
}

// A network of 64 bits is one host's to choose addresses from.
func TestPlacesOfAnIPv6NetworkAreOfOneAddress(t *testing.T) {
	e := start(t, func(c *Config) { c.Limits.MaxUnauthenticatedPerAddress = 1 })
	for _, tt := range []struct {
		address string
		in      bool
	}{
		{"[2001:db8:1:2::1]:1000", true},
		{"[2001:db8:1:2::1]:1001", false},
		{"[2001:db8:1:2:ffff::9]:1000", false},
		{"[2001:db8:1:3::1]:1000", true},
		{"192.0.2.1:1000", true},
		{"[::ffff:192.0.2.1]:1000", false},
		{"[::ffff:192.0.2.2]:1000", true},
		{"192.0.2.2:1000", false},
	} {
		if err := upgradeFrom(e, tt.address); (err == nil) != tt.in {
			t.Errorf("%s: %v", tt.address, err)
		}
	}
	if e.admission.waiting != 4 || len(e.admission.from) != 4 {
		t.Errorf("%d wait, of %d sources", e.admission.waiting, len(e.admission.from))
	}
	for _, address := range []string{"[2001:db8:1:2::ffff]:1", "[2001:db8:1:3::1]:1", "192.0.2.1:1", "192.0.2.2:1"} {
		e.admission.leave(netip.MustParseAddrPort(address).Addr())
	}
	if e.admission.waiting != 0 || len(e.admission.from) != 0 {
		t.Errorf("then %d wait, of %d sources", e.admission.waiting, len(e.admission.from))
	}
}

// Connections that come too fast are refused before their upgrade, with when to come
// again: 429 for an address, 503 for all. Other requests are not.
func TestConnectionsThatComeTooFast(t *testing.T) {
	for name, tt := range map[string]struct {
		all, each int
		status    int
		code      string
	}{
		"of one address": {-1, 2, 429, "rate_limited"},
		"in all":         {2, -1, 503, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, func(c *Config) { c.Limits.AcceptRate, c.Limits.AcceptRatePerAddress = tt.all, tt.each }).overPipes(t)
				refused := 0
				for i := range 10 {
					switch status, h, f := p.raw(handshake()).answer(); {
					case status == 101:
					case status == tt.status && f.at("err.code") == tt.code && f.at("err.scope") == "node" &&
						h.Get("Retry-After") == "1" && whole(f.at("err.retry_after_ms")) >= 1000:
						refused++
					default:
						t.Fatalf("%d: %d %v %v", i, status, h, f)
					}
				}
				if refused != 6 { // a burst of 4
					t.Errorf("%d of 10 were refused", refused)
				}
				const publish = "POST /v1/rooms/chat:1/publish HTTP/1.1\r\nHost: pulse.test\r\n" + asAlice + "\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n"
				if status, _, f := p.raw(publish + `{"event":"message","data":1}`).answer(); status != 200 {
					t.Errorf("a publish: %d %v", status, f)
				}
			})
		})
	}
}
