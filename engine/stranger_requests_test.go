package engine

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What a stranger makes of a request is answered by what it says, or refused, and in
// one way: no header in two meanings, no body in another form than it claims, no path
// that is read as another.
func TestRequestsOfStrangers(t *testing.T) {
	w := startWeb(t, nil)
	const body = `{"event":"message","data":1}`
	const json, alice, cook = "Content-Type: application/json", asAlice, "Cookie: pulse=acme/cook"
	const listed, foreign = "Origin: https://app.example", "Origin: https://evil.example"
	post := func(lines ...string) string {
		return strings.Join(append([]string{"POST /v1/rooms/chat:1/publish HTTP/1.1", "Host: pulse.test", fmt.Sprint("Content-Length: ", len(body))}, lines...), "\r\n") + "\r\n\r\n" + body
	}
	get := func(target string, lines ...string) string {
		return strings.Join(append([]string{"GET " + target + " HTTP/1.1", "Host: pulse.test"}, lines...), "\r\n") + "\r\n\r\n"
	}
	chunked := func(tail string, lines ...string) string {
		return strings.Join(append([]string{"POST /v1/rooms/chat:1/publish HTTP/1.1", "Host: pulse.test", "Transfer-Encoding: chunked"}, lines...), "\r\n") +
			fmt.Sprintf("\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, tail)
	}
	form := strings.Replace(post("Content-Type: application/x-www-form-urlencoded", "Pulse-Session: none", listed, cook), "/rooms/chat:1/publish", "/session/token", 1)
	for name, tt := range map[string]struct {
		request string
		status  int
	}{
		"as it should be":                         {post(json, alice), 200},
		"two types":                               {post(json, "Content-Type: text/plain", alice), 400},
		"a form, and a type":                      {post("Content-Type: text/plain", json, alice), 400},
		"compressed":                              {post(json, "Content-Encoding: gzip", alice), 400},
		"two Authorizations":                      {post(json, alice, "Authorization: Bearer nobody"), 401},
		"two Authorizations of one kind":          {post(json, alice, alice), 401},
		"two Authorizations, a cookie":            {post(json, alice, alice, listed, cook), 401},
		"a bad bearer, a good cookie":             {post(json, "Authorization: Bearer nobody", listed, cook), 401},
		"another scheme, a good cookie":           {post(json, "Authorization: Basic eDp5", listed, cook), 200},
		"another scheme":                          {post(json, "Authorization: Basic eDp5"), 401},
		"a form of a foreign page":                {post("Content-Type: text/plain", foreign, cook), 403},
		"a form of a page without an origin":      {post("Content-Type: application/x-www-form-urlencoded", "Origin: null", cook), 403},
		"a form of a page that hides it":          {post("Content-Type: application/x-www-form-urlencoded", cook), 400},
		"an empty bearer, a good cookie":          {post(json, "Authorization: Bearer", listed, cook), 401},
		"an upgrade with an empty bearer":         {handshake("Authorization: Bearer "), 401},
		"a form to renew a session":               {form, 400},
		"a large body, of which nothing is there": {strings.Replace(post(json, alice), fmt.Sprint(len(body)), "70000", 1), 413},
		"a large body, if it may be sent":         {strings.Replace(post(json, alice, "Expect: 100-continue"), fmt.Sprint(len(body)), "70000", 1), 413},
		"a large body of chunks, without its end": {strings.TrimSuffix(chunked("", json, alice), "0\r\n\r\n") + "11170\r\n" + strings.Repeat(" ", 70_000), 413},
		"the head of a page":                      {strings.Replace(get("/v1/rooms/chat:1/history", alice, "Connection: close"), "GET", "HEAD", 1), 200},
		"a limit beyond every integer":            {get("/v1/rooms/chat:1/history?limit="+strings.Repeat("9", 30), alice), 200},
		"a query that is not UTF-8":               {get("/v1/rooms/chat:1/history?epoch=%ff&offset=1", alice), 400},
		"a name in a query that is not UTF-8":     {get("/v1/rooms/chat:1/history?%ff=1", alice), 400},
		"an upgrade with two Authorizations":      {handshake(alice, alice), 401},
		"an upgrade with a bad bearer":            {handshake("Authorization: Bearer nobody", listed, cook), 401},
		"an upgrade of a foreign page":            {handshake(foreign, cook), 403},
		"an upgrade of a proxy's own making":      {handshake("X-Forwarded-Host: evil.example", foreign), 403},
		"an upgrade with a token in its URL":      {strings.Replace(handshake(), "/v1/ws", "/v1/ws?%74oken=x", 1), 400},
		"an upgrade in HTTP/1.0":                  {strings.Replace(handshake(), "HTTP/1.1", "HTTP/1.0", 1), 400},
		"an upgrade by POST":                      {strings.Replace(handshake("Content-Length: 0"), "GET", "POST", 1), 404},
		"an upgrade with another key":             {handshake("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), 400},
		"an upgrade of no protocol":               {handshake("Sec-WebSocket-Protocol: pulse.v9.json"), 400},
		"two hosts":                               {get("/v1/negotiate", "Host: other"), 400},
		"a host with a path":                      {strings.Replace(get("/v1/negotiate"), "pulse.test", "pulse.test/x", 1), 400},
		"absolute, of another origin than it has": {get("http://other.example/v1/negotiate", "Origin: http://pulse.test"), 403},
		"chunks":                               {chunked("", json, alice), 200},
		"chunks, with credentials behind them": {chunked("Authorization: Bearer acme/alice\r\n", json, "Trailer: Authorization"), 401},
		"chunks, in two codings":               {chunked("", json, alice, "Transfer-Encoding: identity"), 501},
		"two lengths":                          {post(json, alice, "Content-Length: 3"), 400},
		"what it expects":                      {post(json, alice, "Expect: a miracle"), 417},
		"folded":                               {get("/v1/rooms/chat:1/history", "Authorization: Bearer\r\n acme/alice"), 200},
		"a name with a blank behind it":        {get("/v1/rooms/chat:1/history", "Authorization : Bearer acme/alice"), 400},
		"a NUL in a header":                    {get("/v1/negotiate", "X: a\x00b"), 400},
		"a NUL in a path":                      {get("/v1/negotiate\x00"), 400},
		"a NUL in a room":                      {get("/v1/rooms/chat%00/history", alice), 400},
		"a slash in a room":                    {get("/v1/rooms/chat%2F1/history", alice), 400},
		"a way out of a room":                  {get("/v1/rooms/x%2F..%2Fchat:1/history", alice), 404},
		"a way out":                            {get("/v1/rooms/../rooms/chat:1/history", alice), 404},
		"an empty element":                     {get("//v1//negotiate"), 404},
		"a room in escapes":                    {get("/v1/rooms/%63hat%3A1/history", alice), 200},
		"a room in escapes of escapes":         {get("/v1/rooms/chat%253A1/history", alice), 400},
		"a very long room":                     {get("/v1/rooms/"+strings.Repeat("a", 20_000)+"/history", alice), 400},
		"a semicolon in a query":               {get("/v1/negotiate?a;token=x"), 400},
		"a small method":                       {strings.Replace(get("/v1/negotiate"), "GET", "get", 1), 404},
		"a tunnel":                             {"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example\r\n\r\n", 404},
		"HTTP/2 on a plain port":               {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
		"HTTP/0.9":                             {"GET /v1/negotiate\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			status, h, f := w.raw(tt.request).answer()
			if status != tt.status {
				t.Errorf("%d %v", status, f)
			}
			if status == http.StatusNotFound && (f.at("err.code") != "not_found" || h.Get("Content-Type") != "application/json") {
				t.Errorf("not found: %v %v", h, f)
			}
		})
	}
}

// Requests that come behind each other are answered in order, each by itself; behind an
// upgrade only frames are.
func TestPipelinedRequests(t *testing.T) {
	w := startWeb(t, nil)
	const ask = "GET /v1/negotiate HTTP/1.1\r\nHost: pulse.test\r\n\r\n"
	r := w.raw(ask + strings.Replace(ask, "negotiate", "nowhere", 1) + strings.Replace(ask, "GET", "POST", 1) + ask)
	for i, want := range []int{200, 404, 404, 200} {
		if status, _, f := r.answer(); status != want {
			t.Errorf("%d: %d %v", i, status, f)
		}
	}
	r = w.raw(handshake() + ask)
	if status, _, _ := r.answer(); status != 101 {
		t.Fatal(status)
	}
	head := make([]byte, 4)
	if _, err := r.in.Read(head[:1]); err != nil || head[0] != 0x88 {
		t.Errorf("% x, %v", head, err)
	}
}
