package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// Names of tenants that are alike, or alike in front, share nothing, whatever their
// rooms are called. StackExchange/StackExchange.Redis#112
func TestB102_TenantsThatLookAlikeNeverMeet(t *testing.T) {
	e := start(t, nil)
	tenants := []string{"a", "A", "a.b", "a-b", "a_b", "a.", "ab", "b"}
	rooms := []string{"chat:1", "chat", "chat:a", "a.b:c"}
	members := map[string]*client{}
	for _, tenant := range tenants {
		members[tenant] = join(t, e, tenant+"/same", rooms...)
	}
	for _, tenant := range tenants {
		for _, room := range rooms {
			r, _ := members[tenant].ask(fmt.Sprintf(`{"t":"publish","room":%q,"event":"message","data":%q}`, room, tenant+" "+room))
			if r["ok"] == nil || whole(r.at("ok.offset")) != 1 {
				t.Fatalf("%s in %s: %v", tenant, room, r)
			}
		}
	}
	for _, tenant := range tenants {
		for _, room := range rooms {
			r, _ := members[tenant].ask(fmt.Sprintf(`{"t":"history","room":%q}`, room))
			if events, _ := r.at("ok.events").([]any); len(events) != 1 || r.at("ok.events.0.data") != tenant+" "+room {
				t.Errorf("%s in %s: %v", tenant, room, r)
			}
		}
	}
	for _, room := range []string{"*", "?", "[ab]", "..", `\\`, "chat:*", "a/b", "chat:1\u200b", "é", "e\u0301"} {
		if r, _ := members["a"].ask(fmt.Sprintf(`{"t":"join","room":"%s"}`, room)); r.at("err.code") != "bad_request" {
			t.Errorf("joined %q: %v", room, r)
		}
	}
}

// Who is entitled to one room gets nothing of another, whatever is asked for and
// however its events were published. dunglas/mercure#372, #579, #691
func TestB104_WhoIsNotEntitledGetsNothing(t *testing.T) {
	e := start(t, nil)
	c := join(t, e, `acme/a/[{"rooms":"chat:mine","allow":["join","publish","command","presence","history"]}]`, "chat:mine")
	for _, room := range []string{"chat:other", "chat", "chat:mine2", "chat:min", "chat:mine:2", "CHAT:mine", "other"} {
		for _, doc := range []string{
			`{"t":"join","room":%q}`, `{"t":"join","room":%q,"presence":true}`, `{"t":"join","room":%q,"epoch":"e","offset":0}`,
			`{"t":"history","room":%q}`, `{"t":"presence","room":%q}`, `{"t":"command","room":%q,"name":"roll"}`,
			`{"t":"publish","room":%q,"event":"message","data":1}`,
		} {
			if r, _ := c.ask(fmt.Sprintf(doc, room)); r.at("err.code") != "forbidden" {
				t.Errorf(doc+": %v", room, r)
			}
		}
		for _, event := range []string{"message", "typing", "news"} {
			e.publish(t, "acme", room, event, "public")
		}
	}
	if r, before := c.ask(`{"t":"history","room":"chat:mine"}`); r["ok"] == nil || len(before) != 0 {
		t.Errorf("was sent %v", before)
	}
	w := dial(t, e, codec.JSON, memory.Options{}).hello(`acme/b/[{"rooms":"chat:mine","allow":["join"]}]`, "chat:other", "chat:mine")
	if w.at("rooms.0.err.code") != "forbidden" || w.at("rooms.1.ok.room") != "chat:mine" {
		t.Errorf("rooms of the hello: %v", w)
	}
}

// scribe keeps what is written to it.
type scribe struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *scribe) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// A credential is in no log and in no answer, wherever it was put and whatever
// became of it. aspnet/SignalR#2526, duplicati/duplicati#5550
func TestB105_CredentialsAreInNoLogAndNoAnswer(t *testing.T) {
	const secret = "S3CR3T"
	var log scribe
	w := startWeb(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		told := c.Authenticator
		c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
			switch {
			case strings.HasPrefix(cr.Token, "panic"):
				panic(cr.Token)
			case strings.HasPrefix(cr.Token, "nobody"):
				return nil, nil
			}
			return told.Authenticate(ctx, cr)
		})
	})
	var answers strings.Builder
	for path, method := range map[string]string{
		"/v1/ws?access_token=" + secret: "GET", "/v1/ws?x=" + secret + "&Token=": "GET",
		"/v1/negotiate?x=%zz" + secret: "GET", "/v1/rooms/chat:1/publish?jwt=" + secret: "POST",
	} {
		body := map[string]string{"POST": `{"event":"message","data":1}`}[method]
		resp, f := w.do(method, path, body, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
		if resp.StatusCode != 400 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		fmt.Fprintln(&answers, resp.Header, f)
	}
	for _, header := range []string{"Authorization: Bearer ", "Authorization: Bearer panic", "Authorization: Bearer nobody", "Authorization: Basic ", "Sec-WebSocket-Protocol: bearer."} {
		resp, f := w.do("POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":1}`, header+secret)
		fmt.Fprintln(&answers, resp.Header, f)
		name, value, _ := strings.Cut(header+secret, ": ")
		o := websocket.DialOptions{HTTPHeader: http.Header{name: {value}}}
		if c, resp, err := websocket.Dial(t.Context(), w.url+"/v1/ws", &o); err != nil {
			text, _ := io.ReadAll(resp.Body)
			fmt.Fprintln(&answers, resp.Header, string(text))
		} else {
			c.CloseNow()
		}
	}
	for _, token := range []string{secret, "panic" + secret, "nobody" + secret, "acme/alice/[" + secret} {
		_, refused := w.welcomed(token, websocket.DialOptions{HTTPHeader: http.Header{"Cookie": {"pulse=" + secret}, "Origin": {w.url}}})
		if refused == 0 {
			t.Errorf("%q is welcome", token)
		}
	}
	if err := w.e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if !strings.Contains(log.text.String(), "authenticator failed") || !strings.Contains(log.text.String(), "connection refused") {
		t.Fatalf("the log is not what it was:\n%s", &log.text)
	}
	for what, text := range map[string]string{"log": log.text.String(), "answers": answers.String()} {
		if strings.Contains(text, secret) {
			t.Errorf("the %s repeat a credential:\n%s", what, text)
		}
	}
}

// Sockets that were upgraded and never say hello end when it is due, whether they
// are silent or send it byte by byte, and so many there are at most. Virtual time.
// reearth/ygo#47, kent8192/reinhardt-web#508
func TestB106_SocketsThatNeverSayHelloEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, all, timeout = 40, 200, time.Second
		e := start(t, func(c *Config) {
			c.Limits.HandshakeTimeout = timeout
			c.Limits.MaxUnauthenticatedPerAddress = most
		})
		p := e.overPipes(t)
		var dripping, reading sync.WaitGroup
		upgraded := 0
		began := time.Now()
		for i := range all {
			r := p.raw(handshake())
			switch status, h, _ := r.answer(); {
			case status == http.StatusServiceUnavailable && h.Get("Retry-After") != "":
				continue
			case status != http.StatusSwitchingProtocols:
				t.Fatalf("answered %d %v", status, h)
			}
			upgraded++
			reading.Go(func() {
				behind, _ := io.ReadAll(r.in)
				if took := time.Since(began); took < timeout || took > 5*time.Second || !bytes.HasPrefix(behind, []byte("\x88")) || !bytes.Contains(behind, []byte("\x11\x94")) { // 4500
					t.Errorf("closed after %v with %q", took, behind)
				}
			})
			if i%2 == 0 {
				continue
			}
			dripping.Go(func() { // a masked text frame of many bytes, slowly
				frame := []byte("\x81\xfe\x10\x00\x00\x00\x00\x00" + strings.Repeat(" ", 4096))
				for _, err := r.Write(frame[:1]); err == nil; _, err = r.Write(frame[:1]) { // until it was cut
					frame = frame[1:]
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		if upgraded != most {
			t.Errorf("%d of %d were upgraded, of which there may be %d at once", upgraded, all, most)
		}
		reading.Wait()
		dripping.Wait()
		synctest.Wait()
		if n, from := e.admission.waiting, len(e.admission.from); n+from > 0 {
			t.Errorf("%d still wait, of %d addresses", n, from)
		}
		r := p.raw(handshake("Authorization: Bearer acme/a"))
		status, _, _ := r.answer()
		r.say(string(masked(`{"t":"hello"}`)))
		head := make([]byte, 2)
		if _, err := io.ReadFull(r.in, head); status != http.StatusSwitchingProtocols || err != nil || head[0] != 0x81 {
			t.Errorf("then a client is answered %d, % x, %v", status, head, err)
		}
	})
}

// An origin is compared as a whole: by scheme, host and port, on every way in. Of
// others no cookie is looked at, and nothing is shared with them.
// B109: coder/websocket#529, gravitational/teleport#67616
// B110: playframework/play-java-websocket-example#57, Red5/red5-server#470,
// kdlbs/kandev#1698
func TestB109_B110_OriginsAreComparedAsAWhole(t *testing.T) {
	var looked *curious
	w := startWeb(t, func(c *Config) {
		c.Origins = []string{"https://app.example.com", "https://example.com"}
		looked = &curious{Authenticator: c.Authenticator}
		c.Authenticator = looked
	})
	for origin, pass := range map[string]bool{
		"https://app.example.com":                    true,
		"https://APP.example.com":                    true,
		"https://app.example.com:443":                true,
		"https://example.com":                        true,
		w.url:                                        true,
		"http://app.example.com":                     false,
		"https://app.example.com:444":                false,
		"https://app.example.com.":                   false,
		"https://app.example.com:":                   false,
		"https://app.example.com/":                   false,
		"https://app.example.com#":                   false,
		"null":                                       false,
		"https://evil-example.com":                   false,
		"https://example.com.evil.tld":               false,
		"https://example.comevil":                    false,
		"https://evil.tld/?https://example.com":      false,
		"https://evil.tld#https://example.com":       false,
		"https://example.com@evil.tld":               false,
		"https://sub.app.example.com":                false,
		"https://example.com https://evil.tld":       false,
		"https://evil.tld, https://app.example.com":  false,
		"http://localhost.evil.tld":                  false,
		"app.example.com":                            false,
		strings.Replace(w.url, "http:", "https:", 1): false,
	} {
		t.Run(origin, func(t *testing.T) {
			looked.cookies.Store(0)
			_, status := w.welcomed("", websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}, "Cookie": {"pulse=acme/a"}}})
			if want := map[bool]int{true: 0, false: 403}[pass]; status != want {
				t.Errorf("WebSocket: %d, want %d", status, want)
			}
			for _, ask := range []struct {
				method, path, body string
				pass               int
			}{
				{"POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":1}`, 200},
				{"POST", "/v1/rooms/chat:1/commands/roll", `{}`, 404}, // nobody handles it
				{"GET", "/v1/negotiate", "", 200},
				{"OPTIONS", "/v1/rooms/chat:1/publish", "", 204},
			} {
				resp, _ := w.do(ask.method, ask.path, ask.body, "Origin: "+origin, "Cookie: pulse=acme/a")
				want := 403
				if pass {
					want = ask.pass
				}
				shared := resp.Header.Get("Access-Control-Allow-Origin") != "" || resp.Header.Get("Access-Control-Allow-Credentials") != ""
				if resp.StatusCode != want || shared != pass {
					t.Errorf("%s %s: %d, want %d; shared %v", ask.method, ask.path, resp.StatusCode, want, shared)
				}
			}
			if (looked.cookies.Load() > 0) != pass {
				t.Errorf("cookies were looked at %d times", looked.cookies.Load())
			}
		})
	}
	resp, _ := w.do("POST", "/v1/rooms/chat:1/publish", `{"event":"message","data":1}`, "Origin: https://example.com", "Origin: https://example.com", asAlice)
	if resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("two headers: %d %v", resp.StatusCode, resp.Header)
	}
}
