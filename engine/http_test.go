package engine

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// web is an engine behind a real HTTP server.
type web struct {
	t   *testing.T
	e   *Engine
	url string
}

func startWeb(t *testing.T, change func(*Config)) *web {
	t.Helper()
	e := start(t, func(c *Config) {
		c.Kinds = []room.Kind{openKind, {Name: "board", Publish: room.Server}, {Name: "chat"}}
		c.Kinds = append(c.Kinds[1:], room.Kind{Name: "bare", Events: map[string]room.EventPolicy{"only": {Lane: backpressure.Interactive}}})
		c.Cookie = "pulse"
		c.Origins = []string{"https://app.example"}
		if change != nil {
			change(c)
		}
	})
	return webOf(t, e)
}

// webOf is an engine's public listener.
func webOf(t *testing.T, e *Engine) *web {
	t.Helper()
	s := httptest.NewServer(e.Handler())
	t.Cleanup(func() { s.Close(); http.DefaultClient.CloseIdleConnections() })
	return &web{t, e, s.URL}
}

// do makes a request; headers are "Name: value".
func (w *web) do(method, path, body string, headers ...string) (*http.Response, frame) {
	w.t.Helper()
	in := codec.JSON
	raw := []byte(body)
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if value == "application/msgpack" {
			in = codec.Msgpack
			if body != "" {
				raw = encode(w.t, in, body)
			}
		}
		if name == "Content-Type" {
			r.Header.Del(name)
		}
		r.Header.Add(name, value)
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.ContentLength = int64(len(raw))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(answer) == 0 {
		return resp, nil
	}
	return resp, decode(w.t, in, answer)
}

const asAlice = "Authorization: Bearer acme/alice"

func TestPublishOverHTTP(t *testing.T) {
	w := startWeb(t, nil)
	bob := join(t, w.e, "acme/bob", "chat:1")
	for _, contentType := range []string{"application/json", "application/json; charset=utf-8", "application/msgpack"} {
		resp, f := w.do("POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":{"n":1}}`, asAlice, "Content-Type: "+contentType)
		ev := bob.until("event")
		if resp.StatusCode != 200 || f.at("ok.outcome") != "accepted" || f.at("ok.eid") != ev["eid"] || fmt.Sprint(f.at("ok.offset")) != fmt.Sprint(ev["offset"]) {
			t.Fatalf("%s: %d %v, the member got %v", contentType, resp.StatusCode, f, ev)
		}
		if ev["from"] != "alice" || ev["session"] != nil || fmt.Sprint(ev.at("data.n")) != "1" {
			t.Errorf("%s: %v", contentType, ev)
		}
	}
	first, _ := w.do("POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":1,"dedup_key":"k"}`, asAlice)
	_, again := w.do("POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":2,"dedup_key":"k"}`, asAlice)
	if first.StatusCode != 200 || again.at("ok.duplicate") != true {
		t.Errorf("the repeat is answered %v", again)
	}
}

// Each refusal with its status, in the protocol's order.
func TestRefusalsOverHTTP(t *testing.T) {
	w := startWeb(t, nil)
	const message = `{"event":"message","data":1}`
	grants := func(rooms, allow string) string {
		return fmt.Sprintf(`Authorization: Bearer acme/alice/[{"rooms":%q,"allow":[%q]}]`, rooms, allow)
	}
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
	}{
		{"no credentials", "POST", "/v1/rooms/chat:1/publish", message, nil, 401, "unauthenticated"},
		{"bad credentials", "POST", "/v1/rooms/chat:1/publish", message, []string{"Authorization: Bearer nobody"}, 401, "unauthenticated"},
		{"no object", "POST", "/v1/rooms/chat:1/publish", `[]`, []string{asAlice}, 400, "bad_request"},
		{"a key twice", "POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":1,"data":2}`, []string{asAlice}, 400, "bad_request"},
		{"no event", "POST", "/v1/rooms/chat:1/publish", `{"data":1}`, []string{asAlice}, 400, "bad_request"},
		{"a room outside the grammar", "POST", "/v1/rooms/a%20b/publish", message, []string{asAlice}, 400, "bad_request"},
		{"a form", "POST", "/v1/rooms/chat:1/publish", message, []string{asAlice, "Content-Type: application/x-www-form-urlencoded"}, 400, "bad_request"},
		{"too large", "POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":"` + strings.Repeat("x", 64<<10) + `"}`, []string{asAlice}, 413, "too_large"},
		{"the wrong right", "POST", "/v1/rooms/chat:1/publish", message, []string{grants("chat:1", "join")}, 403, "forbidden"},
		{"another room's right, and no such kind", "POST", "/v1/rooms/none:1/publish", message, []string{grants("chat:1", "publish")}, 403, "forbidden"},
		{"only the server publishes", "POST", "/v1/rooms/board/publish", message, []string{asAlice}, 403, "forbidden"},
		{"no such kind", "POST", "/v1/rooms/none:1/publish", message, []string{asAlice}, 404, "not_found"},
		{"no such event", "POST", "/v1/rooms/bare/publish", message, []string{asAlice}, 404, "not_found"},
		{"no time left", "POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":1,"ttl_ms":0}`, []string{asAlice}, 410, "expired"},
		{"a token in the URL", "POST", "/v1/rooms/chat:1/publish?token=acme/alice", message, nil, 400, "bad_request"},
		{"no such endpoint", "GET", "/v1/nowhere", "", []string{asAlice}, 404, "not_found"},
		{"another method", "GET", "/v1/rooms/chat:1/publish", "", []string{asAlice}, 404, "not_found"},
		{"another origin", "POST", "/v1/rooms/chat:1/publish", message, []string{asAlice, "Origin: https://evil.example"}, 403, "forbidden"},
		{"a cookie without an origin", "POST", "/v1/rooms/chat:1/publish", message, []string{"Cookie: pulse=acme/alice"}, 401, "unauthenticated"},
		{"a cookie twice", "POST", "/v1/rooms/chat:1/publish", message, []string{"Cookie: pulse=acme/alice; pulse=acme/bob", "Origin: https://app.example"}, 401, "unauthenticated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, f := w.do(test.method, test.path, test.body, test.headers...)
			if resp.StatusCode != test.status || f.at("err.code") != test.code {
				t.Errorf("%d %v, want %d %s", resp.StatusCode, f, test.status, test.code)
			}
			if strings.Contains(fmt.Sprint(f), "alice") {
				t.Errorf("the answer repeats what came in: %v", f)
			}
		})
	}
}

// A page of a listed origin may use the cookie, and is told that it may read the
// answer.
func TestCookiesAndOrigins(t *testing.T) {
	w := startWeb(t, nil)
	resp, f := w.do("POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":1}`, "Cookie: pulse=acme/alice", "Origin: https://app.example")
	if resp.StatusCode != 200 {
		t.Fatalf("%d %v", resp.StatusCode, f)
	}
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "https://app.example", "Access-Control-Allow-Credentials": "true", "Vary": "Origin",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for origin, status := range map[string]int{"https://app.example": 204, "https://evil.example": 403, "null": 403} {
		resp, _ := w.do("OPTIONS", "/v1/rooms/chat:1/publish", "", "Origin: "+origin, "Access-Control-Request-Method: POST")
		if resp.StatusCode != status {
			t.Errorf("preflight of %s: %d, want %d", origin, resp.StatusCode, status)
		}
		if allowed := resp.Header.Get("Access-Control-Allow-Origin"); (allowed == origin) != (status == 204) {
			t.Errorf("preflight of %s allows %q", origin, allowed)
		}
	}
}

func TestNegotiate(t *testing.T) {
	w := startWeb(t, nil)
	resp, f := w.do("GET", "/v1/negotiate", "")
	if resp.StatusCode != 200 || f.at("versions.0") != "pulse.v1" || f.at("transports.0.path") != "/v1/ws" || whole(f.at("limits.max_message_bytes")) != 64<<10 {
		t.Errorf("%d %v", resp.StatusCode, f)
	}
}

// What is kept of a room, and who is in it, a page at a time, in either codec.
func TestPagesOverHTTP(t *testing.T) {
	w := startWeb(t, func(c *Config) {
		c.Kinds = append(c.Kinds, room.Kind{Name: "crowd", Presence: true})
	})
	for range 3 {
		w.e.publish(t, "acme", "chat:1", "message", map[string]int{"n": 1})
	}
	join(t, w.e, "acme/alice", "crowd:1")
	join(t, w.e, "acme/bob", "crowd:1")
	for _, accept := range []string{"application/json", "application/msgpack"} {
		t.Run(accept, func(t *testing.T) {
			header := "Accept: " + accept
			resp, f := w.do("GET", "/v1/rooms/chat:1/history?limit=2", "", asAlice, header)
			events, _ := f.at("ok.events").([]any)
			if resp.StatusCode != 200 || len(events) != 2 || f.at("ok.more") != true || whole(f.at("ok.offset")) != 2 {
				t.Errorf("first page: %d %v", resp.StatusCode, f)
			}
			next := fmt.Sprintf("/v1/rooms/chat:1/history?epoch=%v&offset=%v", f.at("ok.epoch"), f.at("ok.offset"))
			if _, f = w.do("GET", next, "", asAlice, header); whole(f.at("ok.events.0.offset")) != 3 || f.at("ok.more") != false {
				t.Errorf("next page: %v", f)
			}
			if _, f = w.do("GET", "/v1/rooms/chat:1/history?reverse=true&limit=1", "", asAlice, header); whole(f.at("ok.events.0.offset")) != 3 {
				t.Errorf("newest: %v", f)
			}
			_, f = w.do("GET", "/v1/rooms/crowd:1/presence?limit=1", "", asAlice, header)
			if f.at("ok.members.0.subject") != "alice" || f.at("ok.after") != "alice" || whole(f.at("ok.count")) != 2 {
				t.Errorf("first members: %v", f)
			}
			if _, f = w.do("GET", "/v1/rooms/crowd:1/presence?after=alice", "", asAlice, header); f.at("ok.members.0.subject") != "bob" || f.at("ok.after") != nil {
				t.Errorf("next members: %v", f)
			}
		})
	}
	for path, want := range map[string]int{
		"/v1/rooms/chat:1/presence":                   400, // unsupported
		"/v1/rooms/none:1/history":                    404,
		"/v1/rooms/none:1/presence":                   404,
		"/v1/rooms/chat:1/history?limit=0":            400,
		"/v1/rooms/chat:1/history?limit=x":            400,
		"/v1/rooms/chat:1/history?offset=1":           400,
		"/v1/rooms/chat:1/history?limit=1&limit=2":    400,
		"/v1/rooms/chat:1/history?reverse=yes":        400,
		"/v1/rooms/chat:1/history?epoch=e&offset=1.5": 400,
		"/v1/rooms/crowd:1/presence?after=":           400,
	} {
		if resp, f := w.do("GET", path, "", asAlice); resp.StatusCode != want {
			t.Errorf("%s: %d %v, want %d", path, resp.StatusCode, f, want)
		}
	}
	for _, page := range []string{"history", "presence"} {
		only := fmt.Sprintf(`Authorization: Bearer acme/alice/[{"rooms":"*","allow":[%q]}]`, "join")
		if resp, _ := w.do("GET", "/v1/rooms/crowd:1/"+page, "", only); resp.StatusCode != 403 {
			t.Errorf("%s without the right: %d", page, resp.StatusCode)
		}
		// A cookie counts for a GET without Origin, unless another site's page asks.
		if resp, _ := w.do("GET", "/v1/rooms/crowd:1/"+page, "", "Cookie: pulse=acme/alice"); resp.StatusCode != 200 {
			t.Errorf("%s by cookie: %d", page, resp.StatusCode)
		}
		if resp, _ := w.do("GET", "/v1/rooms/crowd:1/"+page, "", "Cookie: pulse=acme/alice", "Sec-Fetch-Site: cross-site"); resp.StatusCode != 401 {
			t.Errorf("%s by a cookie from another site: %d", page, resp.StatusCode)
		}
	}
}

// A page whose token is in a cookie that it cannot read renews its session by it.
func TestSessionIsRenewedOverHTTP(t *testing.T) {
	w := startWeb(t, nil)
	alice := dial(t, w.e, codec.JSON, memory.Options{})
	welcome := alice.hello("acme/alice", "chat:1", "bare")
	session := fmt.Sprint("Pulse-Session: ", welcome["session"])
	const origin = "Origin: https://app.example"
	for _, test := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"another subject's", []string{session, "Authorization: Bearer acme/bob"}, 403},
		{"another tenant's", []string{session, "Authorization: Bearer other/alice"}, 403},
		{"no such session", []string{"Pulse-Session: none", asAlice}, 403},
		{"no session", []string{asAlice}, 400},
		{"what is no id", []string{"Pulse-Session: a:b", asAlice}, 400},
		{"no credentials", []string{session}, 401},
		{"a foreign page", []string{session, "Cookie: pulse=acme/alice", "Origin: https://evil.example"}, 403},
		{"a cookie without an origin", []string{session, "Cookie: pulse=acme/alice"}, 401},
		{"its own cookie", []string{session, "Cookie: pulse=acme/alice", origin}, 200},
	} {
		resp, f := w.do("POST", "/v1/session/token", "", test.headers...)
		if resp.StatusCode != test.status {
			t.Errorf("%s: %d %v, want %d", test.name, resp.StatusCode, f, test.status)
		}
		if test.status == 200 && f.at("ok.resume") == nil {
			t.Errorf("%s: %v", test.name, f)
		}
	}
	grants := `Authorization: Bearer acme/alice/[{"rooms":"bare","allow":["join"]}]`
	if resp, f := w.do("POST", "/v1/session/token", "", session, grants); resp.StatusCode != 200 {
		t.Fatalf("%d %v", resp.StatusCode, f)
	}
	if f := alice.until("left"); f["room"] != "chat:1" || f["reason"] != "forbidden" {
		t.Errorf("the room that the new credentials do not cover: %v", f)
	}
}
