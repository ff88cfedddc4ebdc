package transport_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

func TestRefuse(t *testing.T) {
	for _, test := range []struct {
		name       string
		err        *codec.Error
		status     int
		retryAfter string
	}{
		{"final", codec.NewError(codec.CodeForbidden, "origin not allowed"), 403, ""},
		{"to be tried again, rounded up", codec.Retry(codec.CodeDraining, codec.ScopeNode, 1100*time.Millisecond, "node leaves"), 503, "2"},
		{"to be tried again at once", codec.Retry(codec.CodeUnavailable, codec.ScopeNode, 0, "full"), 503, "1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			transport.Refuse(w, test.err)
			if w.Code != test.status || w.Header().Get("Retry-After") != test.retryAfter {
				t.Errorf("status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
			}
			if want := string(codec.AppendAnswer(nil, codec.JSON, nil, test.err)); w.Body.String() != want {
				t.Errorf("body %s, want %s", w.Body, want)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("content type %q", got)
			}
		})
	}
}

func TestNewRequestKeepsWhatIsJudgedAndSharesNothing(t *testing.T) {
	r := &http.Request{
		Host:       "pulse.example",
		Header:     http.Header{"Cookie": {"a=1", "b=2"}, "Origin": {"https://x"}, "Accept-Language": {"en"}},
		RemoteAddr: "[::ffff:192.0.2.1]:4711",
	}
	got := transport.NewRequest(r)
	r.Header["Cookie"][0] = "changed"
	if c := got.Header["Cookie"]; len(c) != 2 || c[0] != "a=1" {
		t.Errorf("cookies %q", c)
	}
	if got.Header.Get("Host") != "pulse.example" || got.Header.Get("Origin") != "https://x" || got.Header.Get("Accept-Language") != "" {
		t.Errorf("headers %v", got.Header)
	}
	if got.Remote.String() != "192.0.2.1" {
		t.Errorf("%+v", got)
	}
}
