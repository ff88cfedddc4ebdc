package nginx

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/client"
)

// alone is a node with the memory bridge.
const alone = `
trusted_proxies: [ 127.0.0.1/32 ]
auth: { jwt: { keys: [ { alg: HS256, secret_file: /run/secrets/jwt } ] } }
transport: { max_unauthenticated_per_address: 3 }
rooms: { chat: {} }
`

// upgrade opens a WebSocket through nginx, or tells the status of the refusal.
func (s *site) upgrade(from, origin string) (*websocket.Conn, *http.Response) {
	s.t.Helper()
	o := &websocket.DialOptions{HTTPClient: s.browser(from)}
	if origin != "" {
		o.HTTPHeader = http.Header{"Origin": {origin}}
	}
	c, answer, err := websocket.Dial(within(s.t, patience), s.url+"/v1/ws", o)
	if answer == nil {
		s.t.Fatal(err)
	}
	if err == nil {
		s.t.Cleanup(func() { c.CloseNow() })
	}
	return c, answer
}

func TestBehindNginx(t *testing.T) {
	s := newSite(t, alone)
	s.nginx(s.node(""))

	t.Run("clients come through", func(t *testing.T) {
		s := s.in(t)
		c := s.client("alice")
		room, err := c.Join(within(t, patience), client.Join{Room: "chat:1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Publish(within(t, patience), client.Publish{Room: "chat:1", Event: "message", Data: "hi"}); err != nil {
			t.Fatal(err)
		}
		for {
			item, err := room.Next(within(t, patience))
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := item.(*client.Event); ok {
				if e.From != "alice" {
					t.Errorf("%+v", e)
				}
				break
			}
		}
	})
	t.Run("so do requests", func(t *testing.T) {
		s := s.in(t)
		r, err := http.NewRequestWithContext(within(t, patience), http.MethodPost, s.url+"/v1/rooms/chat:1/publish", strings.NewReader(`{"event":"message","data":1}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + s.token("bob")}, "Content-Type": {"application/json"}}
		answer, err := s.browser("127.0.0.1").Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || err != nil {
			t.Errorf("%d %s, %v", answer.StatusCode, text, err)
		}
	})
	t.Run("bad credentials are refused", func(t *testing.T) {
		s := s.in(t)
		c, _ := s.upgrade("127.0.0.1", "")
		if err := c.Write(within(t, patience), websocket.MessageText, []byte(`{"t":"hello","token":"x.y.z"}`)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Read(within(t, patience)); websocket.CloseStatus(err) != 4401 {
			t.Errorf("%v", err)
		}
	})
	t.Run("origins are compared with the host that the browser asked for", func(t *testing.T) {
		s := s.in(t)
		for origin, want := range map[string]int{
			s.url: http.StatusSwitchingProtocols,
			"http" + strings.TrimPrefix(s.url, "https"): http.StatusForbidden, // not what the page came by
			"https://127.0.0.1":                         http.StatusForbidden, // another port
			"https://other.example":                     http.StatusForbidden,
		} {
			c, answer := s.upgrade("127.0.0.1", origin)
			if answer.StatusCode != want {
				t.Errorf("%s: %s", origin, answer.Status)
			}
			if c != nil {
				c.CloseNow()
			}
		}
	})
	t.Run("bounds by address are the clients' own", func(t *testing.T) {
		s := s.in(t)
		var silent []*websocket.Conn // connections without a hello
		for {
			c, answer := s.upgrade("127.0.0.2", "")
			if c == nil {
				if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
					t.Errorf("%s, Retry-After %q", answer.Status, answer.Header.Get("Retry-After"))
				}
				break
			}
			if silent = append(silent, c); len(silent) > 3 {
				t.Fatal("one address has more places than it may")
			}
		}
		if len(silent) != 3 {
			t.Errorf("one address has %d places", len(silent))
		}
		if c, answer := s.upgrade("127.0.0.3", ""); c == nil {
			t.Errorf("another address: %s", answer.Status)
		}
	})
}

// Without trusted_proxies what nginx says counts for nothing: neither is a page's own
// origin known, nor an address.
func TestBehindNginxThatIsNotTrusted(t *testing.T) {
	s := newSite(t, alone)
	s.nginx(s.node("", "--trusted_proxies=192.0.2.1/32"))
	if _, answer := s.upgrade("127.0.0.1", s.url); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page's own origin: %s", answer.Status)
	}
	statuses := map[int]int{}
	for i := range 4 {
		_, answer := s.upgrade(fmt.Sprintf("127.0.0.%d", 2+i), "")
		statuses[answer.StatusCode]++
	}
	if statuses[http.StatusSwitchingProtocols] != 3 || statuses[http.StatusServiceUnavailable] != 1 {
		t.Errorf("four clients at four addresses: %v", statuses)
	}
}

// What operators are told to write is what these tests run.
func TestOperationsShowsTheFileOfNginx(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```nginx\n")
	shown, _, _ = strings.Cut(shown, "```")
	if file := (&site{t: t}).read("nginx.conf"); shown != file {
		t.Errorf("docs/operations.md does not show deploy/nginx.conf:\n%s", shown)
	}
}

// The nodes of compose.yaml are those that nginx.conf names, and believe the proxy that
// is in their network and nobody else.
func TestComposeFitsItsFiles(t *testing.T) {
	s := &site{t: t}
	compose, conf, yaml := s.read("compose.yaml"), s.read("nginx.conf"), s.read("pulse.yaml")
	subnet := between(compose, "subnet: ", " }")
	if prefix, err := netip.ParsePrefix(subnet); err != nil || !strings.Contains(yaml, "trusted_proxies: [ "+prefix.String()+" ]") {
		t.Errorf("the network %q is not what pulse.yaml trusts: %v", subnet, err)
	}
	for _, node := range []string{"pulse-1", "pulse-2"} {
		if !strings.Contains(compose, "\n  "+node+":\n") || !strings.Contains(conf, "server "+node+":8080 ") {
			t.Errorf("%s is not in both", node)
		}
	}
	for _, file := range []string{"/etc/nginx/pulse.crt", "/etc/nginx/pulse.key"} {
		if !strings.Contains(compose, "target: "+file+" }") || !strings.Contains(conf, file) {
			t.Errorf("%s is not in both", file)
		}
	}
	for _, secret := range []string{"jwt", "deployment"} {
		if !strings.Contains(compose, "\n  "+secret+": { file: ./secrets/") || !strings.Contains(yaml, "/run/secrets/"+secret) {
			t.Errorf("the secret %s is not in both", secret)
		}
	}
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
