package demo

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

func get(t *testing.T, p Page, url string, header ...string) *http.Response {
	t.Helper()
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	r := httptest.NewRequest("GET", url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.Handler(next).ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func testPage() Page {
	return Page{Subjects: []string{"alice"}, Life: time.Hour, Token: func(s string, life time.Duration) (string, error) {
		return "token-of-" + s + "-for-" + life.String(), nil
	}}
}

func TestTokensGoToThePageOnly(t *testing.T) {
	open := testPage()
	open.AnyHost = true
	broken := testPage()
	broken.Token = func(string, time.Duration) (string, error) { return "", errors.New("secret detail") }
	tests := []struct {
		rule   string
		page   Page
		url    string
		header []string
		status int
	}{
		{"the page itself", testPage(), "http://localhost:8080/demo/token/alice", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"a client that is no browser", testPage(), "http://127.0.0.1:8080/demo/token/alice", nil, 200},
		{"IPv6", testPage(), "http://[::1]:8080/demo/token/alice", nil, 200},
		{"another site", testPage(), "http://localhost:8080/demo/token/alice", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another port of this machine", testPage(), "http://localhost:8080/demo/token/alice", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"a name that was pointed here", testPage(), "http://evil.example:8080/demo/token/alice", []string{"Sec-Fetch-Site", "same-origin"}, 403},
		{"any name, where that was asked for", open, "http://host.example:8080/demo/token/alice", nil, 200},
		{"a subject that is not offered", testPage(), "http://localhost/demo/token/root", nil, 404},
		{"one for less long", testPage(), "http://localhost/demo/token/alice?ttl=30s", nil, 200},
		{"one for longer", testPage(), "http://localhost/demo/token/alice?ttl=2h", nil, 400},
		{"one that is over", testPage(), "http://localhost/demo/token/alice?ttl=-1s", nil, 400},
		{"one for no time that can be read", testPage(), "http://localhost/demo/token/alice?ttl=30", nil, 400},
		{"no token to be had", broken, "http://localhost/demo/token/alice", nil, 500},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			r := get(t, tt.page, tt.url, tt.header...)
			text := body(t, r)
			if r.StatusCode != tt.status || strings.Contains(text, "token-of-alice") != (tt.status == 200) || strings.Contains(text, "detail") {
				t.Errorf("%d %s", r.StatusCode, text)
			}
			want := "for-1h0m0s"
			if strings.Contains(tt.url, "ttl") {
				want = "for-30s"
			}
			if tt.status == 200 && !strings.Contains(text, want) {
				t.Errorf("%s, want one %s", text, want)
			}
			if r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("headers %v", r.Header)
			}
		})
	}
}

func TestPageKeepsToItsOwnPolicy(t *testing.T) {
	for url, kind := range map[string]string{
		"/": "text/html", "/demo.css": "text/css", "/page.js": "text/javascript", "/client.js": "text/javascript",
		"/worker.js": "text/javascript", "/room.js": "text/javascript", "/cursors.js": "text/javascript",
	} {
		r := get(t, testPage(), url)
		text := body(t, r)
		if r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s", url, r.StatusCode, r.Header.Get("Content-Type"))
		}
		if !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: no policy", url)
		}
		if r.Header.Get("Cross-Origin-Opener-Policy") != "same-origin" || r.Header.Get("Cross-Origin-Embedder-Policy") != "require-corp" {
			t.Errorf("%s: not alone in its process", url)
		}
		// What the policy would block, or what could turn text into markup.
		for _, bad := range []string{`https?://[a-z]`, `<script>`, `\son[a-z]+="`, `\sstyle="`, `innerHTML`, `insertAdjacentHTML`, `document\.write`, `\beval\b`, `@import`, `url\(`} {
			if regexp.MustCompile(bad).MatchString(text) {
				t.Errorf("%s has %s", url, bad)
			}
		}
	}
}

func TestOtherRequestsGoOn(t *testing.T) {
	for _, url := range []string{"/v1/ws", "/v1/rooms/chat/publish", "/nothing", "/page/index.html"} {
		if r := get(t, testPage(), url); r.StatusCode != http.StatusTeapot {
			t.Errorf("%s: %d", url, r.StatusCode)
		}
	}
}
