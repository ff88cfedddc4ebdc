package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.yaml.in/yaml/v3"

	"github.com/yaza-dev/pulse/auth"
)

// effect is what settings change in a node that runs. It is tried on a node without
// them, and on one for each source that can say them.
type effect struct {
	settings []string // key=value, all of the same source
	with     []string // further flags, of every node
	try      func(*trial) string
	// What try says without the settings, empty: whatever it likes; and with them.
	before, after string
}

// trial is a node that an effect is tried on.
type trial struct {
	*running
	t     *testing.T
	peers []*peer
}

// trialYAML is the file of every trial.
const trialYAML = `
listen: 127.0.0.1:0
internal: { listen: 127.0.0.1:0 }
auth: { jwt: { keys: [ { alg: HS256, secret: ` + secret + ` } ] } }
node: { drain_timeout: 1s }
rooms:
  chat: { presence: true, publish: grant }
  acked: { publish: grant, events: { "*": { overflow: require_ack } } }
  lossy: { publish: grant, events: { "*": { delivery: transient, lane: lossy, overflow: drop_oldest } } }
tenants: { quiet: { weight: 1 } }
`

// sources are the ways to say settings, beside a file.
func (e effect) sources(t *testing.T, file string) map[string]func(*testing.T) *running {
	t.Helper()
	with := append([]string{"serve", "--config"}, append([]string{write(t, "pulse.yaml", file)}, flagsOf(e.with)...)...)
	inFile := append([]string{"serve", "--config"}, append([]string{write(t, "changed.yaml", changed(t, file, e.settings))}, flagsOf(e.with)...)...)
	var environ []string
	for _, s := range e.settings {
		key, value, _ := strings.Cut(s, "=")
		environ = append(environ, "PULSE_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"="+value)
	}
	return map[string]func(*testing.T) *running{
		"neither":     func(t *testing.T) *running { return launch(t, nil, with...) },
		"file":        func(t *testing.T) *running { return launch(t, nil, inFile...) },
		"environment": func(t *testing.T) *running { return launch(t, environ, with...) },
		"flag":        func(t *testing.T) *running { return launch(t, nil, slices.Concat(with, flagsOf(e.settings))...) },
	}
}

func flagsOf(settings []string) (flags []string) {
	for _, s := range settings {
		flags = append(flags, "--"+s)
	}
	return flags
}

// changed is a file in which settings are as they say.
func changed(t *testing.T, file string, settings []string) string {
	t.Helper()
	tree := map[string]any{}
	if err := yaml.Unmarshal([]byte(file), &tree); err != nil {
		t.Fatal(err)
	}
	lists := map[string]bool{"origins": true, "trusted_proxies": true, "bridge.redis.addresses": true}
	for _, s := range settings {
		key, text, _ := strings.Cut(s, "=")
		path := strings.Split(key, ".")
		at := tree
		for _, name := range path[:len(path)-1] {
			below, ok := at[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[name] = below
			}
			at = below
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if _, ok := value.(map[string]any); ok { // such as "k:", which a file puts in quotes
			value = text
		}
		if lists[key] {
			value = strings.Split(text, ",")
		}
		at[path[len(path)-1]] = value
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// check tries e on all of its nodes, at once.
func (e effect) check(t *testing.T, file string) {
	for source, run := range e.sources(t, file) {
		want := e.after
		if source == "neither" {
			want = e.before
		}
		if want == "" {
			continue
		}
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			n := &trial{running: run(t), t: t}
			if got := e.try(n); got != want {
				t.Errorf("%v: %s, want %s", e.settings, got, want)
			}
			for _, p := range n.peers { // so that it need not drain
				p.c.CloseNow()
			}
			n.end()
		})
	}
}

// token is one of acme's, or of another tenant if claims say so.
func token(t *testing.T, change ...func(*auth.Claims)) string {
	t.Helper()
	claims := auth.Claims{
		Tenant: "acme", Subject: "alice", Expires: time.Now().Add(time.Hour), Grants: []auth.Grant{{Rooms: "*", Allow: auth.Rights()}},
	}
	for _, f := range change {
		f(&claims)
	}
	text, err := auth.Key{Alg: auth.HS256, Secret: []byte(secret)}.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func of(tenant, subject string) func(*auth.Claims) {
	return func(c *auth.Claims) { c.Tenant, c.Subject = tenant, subject }
}

// peer is one connection to a node.
type peer struct {
	t *testing.T
	c *websocket.Conn
}

const trialTime = 20 * time.Second

// open upgrades, and says nothing. Nil: it was refused, with a status.
func (n *trial) open(o *websocket.DialOptions) (*peer, int) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), trialTime)
	defer cancel()
	c, answer, err := websocket.Dial(ctx, n.public+"/v1/ws", o)
	if err != nil {
		if answer == nil {
			n.t.Fatal(err)
		}
		return nil, answer.StatusCode
	}
	c.SetReadLimit(1 << 20)
	p := &peer{n.t, c}
	n.peers = append(n.peers, p)
	return p, answer.StatusCode
}

// join opens, and says hello with rooms and more fields; it returns the first frame.
func (n *trial) join(token string, rooms []string, more string) (*peer, map[string]any) {
	n.t.Helper()
	p, status := n.open(nil)
	if p == nil {
		n.t.Fatalf("an upgrade is refused with %d", status)
	}
	var entries []string
	for _, room := range rooms {
		entries = append(entries, fmt.Sprintf(`{"room":%q,"presence":%v}`, room, strings.HasPrefix(room, "chat")))
	}
	p.say(`{"t":"hello","token":%q,"rooms":[%s]%s}`, token, strings.Join(entries, ","), more)
	return p, p.frame(trialTime)
}

func (p *peer) say(format string, args ...any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), trialTime)
	defer cancel()
	if err := p.c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		p.t.Fatal(err)
	}
}

// frame is the next one; of a connection that ends it is {"closed": code}, and of one
// that says nothing for so long {}, after which it is closed.
func (p *peer) frame(d time.Duration) map[string]any {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), d)
	defer cancel()
	_, text, err := p.c.Read(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return map[string]any{}
		}
		return map[string]any{"closed": int(websocket.CloseStatus(err))}
	}
	frame := map[string]any{}
	if err := json.Unmarshal(text, &frame); err != nil {
		p.t.Fatal(err)
	}
	return frame
}

// until skips to a frame of a type, or to the end of what comes.
func (p *peer) until(kind string, d time.Duration) map[string]any {
	p.t.Helper()
	for {
		f := p.frame(d)
		if len(f) == 0 || f["t"] == kind || f["closed"] != nil {
			return f
		}
	}
}

// post publishes to a room over HTTP, and returns the status and what is refused.
func (n *trial) post(token, room, data string) (int, string) {
	n.t.Helper()
	return n.ask(http.MethodPost, "/v1/rooms/"+room+"/publish", `{"event":"message","data":`+data+`}`, http.Header{
		"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
	})
}

// heavy publishes events of 48 KiB up to the first that is refused, and tells how many
// were not.
func (n *trial) heavy(room string, events int) int {
	n.t.Helper()
	raw := make([]byte, 36<<10) // which no compression makes smaller
	rand.Read(raw)
	large := `"` + base64.StdEncoding.EncodeToString(raw) + `"`
	for i := range events {
		switch status, text := n.post(token(n.t), room, large); status {
		case http.StatusOK:
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			return i
		default:
			n.t.Fatalf("%d %s", status, text)
		}
	}
	return events
}

func (n *trial) ask(method, path, body string, header http.Header) (int, string) {
	n.t.Helper()
	r, err := http.NewRequestWithContext(n.t.Context(), method, n.public+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header = header
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return answer.StatusCode, string(bytes.TrimSpace(text))
}

// figure is the sum of the metrics whose line begins so.
func (n *trial) figure(begins string) (sum float64) {
	n.t.Helper()
	_, text := get(n.t, n.internal+"/metrics")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begins) {
			fields := strings.Fields(line)
			value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				n.t.Fatal(err)
			}
			sum += value
		}
	}
	return sum
}

// soon says whether met comes true within d. It answers at once when it does.
func soon(d time.Duration, met func() bool) bool {
	for late := time.Now().Add(d); ; time.Sleep(5 * time.Millisecond) {
		if met() {
			return true
		}
		if time.Now().After(late) {
			return false
		}
	}
}

// refusal is the code, and the scope, of what a frame or an answer refuses.
func refusal(answer any) string {
	of, _ := answer.(map[string]any)
	if of == nil {
		return "none"
	}
	err, _ := of["err"].(map[string]any)
	if err == nil {
		return "none"
	}
	if scope, ok := err["scope"]; ok {
		return fmt.Sprint(err["code"], " ", scope)
	}
	return fmt.Sprint(err["code"])
}

// decoded is a body of HTTP.
func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return answer
}
