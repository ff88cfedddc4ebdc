package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// A node whose every secret has a word in it says that word nowhere: not in its log at
// its most talkative, its configuration, its metrics, profiles, health and answers.
func TestProgramTellsNoSecret(t *testing.T) {
	const hush = "hushhushhush"
	long := hush + strings.Repeat("-", 32-len(hush))
	sealed := base64.StdEncoding.EncodeToString([]byte(long))
	file := write(t, "pulse.yaml", `
listen: 127.0.0.1:0
internal: { listen: 127.0.0.1:0 }
auth: { cookie: session, jwt: { keys: [
  { alg: HS256, kid: a, secret: `+long+` }, { alg: HS256, kid: b, secret_env: PULSE_KEY }, { alg: HS256, kid: c, secret_file: `+write(t, "key", long)+` } ],
  jwks: { url: "http://127.0.0.1:1/keys" } } }
deployment_key_file: `+write(t, "deployment", sealed+"\n")+`
bridge: { redis: { addresses: [ "127.0.0.1:1" ], username: pulse, password_file: `+write(t, "password", long)+` } }
rooms: { chat: { publish: grant } }
log: { level: debug }
telemetry: { otlp_endpoint: "http://127.0.0.1:1", trace_ratio: 1 }
`)
	environ := []string{"PULSE_KEY=" + long}
	n := &trial{running: launch(t, environ, "serve", "--config", file), t: t}
	var said strings.Builder
	_, config, errs := runOnce(t, environ, "config", "--config", file)
	said.WriteString(config + errs)
	for _, path := range []string{
		"/v1/negotiate?token=" + hush, "/v1/rooms/chat/history?access_token=" + hush, "/v1/rooms/" + hush + "/history", "/" + hush, "/v1/ws?jwt=" + hush,
	} {
		for _, header := range []http.Header{{}, {"Authorization": {"Bearer " + hush + ".x.y"}}, {"Cookie": {"session=" + hush}}, {"X-Forwarded-For": {hush}}, {"Origin": {"https://" + hush + ".example"}}} {
			_, text := n.ask(http.MethodGet, path, "", header)
			said.WriteString(text)
		}
	}
	n.post(hush, "chat", `"`+hush+`"`)
	for _, text := range []string{`{"t":"hello","token":"` + hush + `.x.y"}`, `{"t":"hello","resume":"` + hush + `"}`, `{"t":"` + hush + `"}`, hush} {
		p, _ := n.open(nil)
		p.say("%s", text)
		if _, _, err := p.c.Read(t.Context()); websocket.CloseStatus(err) > 0 {
			said.WriteString(err.Error())
		}
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/cmdline", "/" + hush} {
		_, text := get(t, n.internal+path)
		said.WriteString(text)
	}
	n.end()
	said.WriteString(n.logs.String())
	for _, word := range []string{hush, sealed[:12], base64.StdEncoding.EncodeToString([]byte(hush))} {
		if at := strings.Index(said.String(), word); at >= 0 {
			t.Errorf("it says …%s…", said.String()[max(0, at-200):at+20])
		}
	}
	if !strings.Contains(n.logs.String(), "DEBUG") {
		t.Error("the log is not at its most talkative")
	}
}
