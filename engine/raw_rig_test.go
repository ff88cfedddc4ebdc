package engine

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// handshake is a request for an upgrade as it is on the wire, with more headers.
func handshake(more ...string) string {
	lines := append([]string{
		"GET /v1/ws HTTP/1.1", "Host: pulse.test", "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
	}, more...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// raw is a connection to a web of which every byte is the test's.
type raw struct {
	net.Conn
	t  *testing.T
	in *bufio.Reader
}

func (w *web) raw(text string) *raw {
	w.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	r := &raw{c, w.t, bufio.NewReader(c)}
	r.say(text)
	return r
}

func (r *raw) say(text string) {
	// Who refuses may close before all was said.
	_, _ = io.WriteString(r.Conn, text)
}

// answer is the next answer's status and headers, and what it says in JSON; 0: the
// connection has ended without one.
func (r *raw) answer() (status int, h http.Header, f frame) {
	r.t.Helper()
	resp, err := http.ReadResponse(r.in, nil)
	if err != nil {
		return 0, nil, nil
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(resp.Body)
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		_ = d.Decode(&f) // what is refused by net/http itself is no JSON
	}
	return resp.StatusCode, resp.Header, f
}
