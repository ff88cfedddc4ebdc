package protocol

import (
	"net/http"
	"strings"
	"testing"
)

// Section 0, handshakes: RFC 6455, 4.2.1, and PROTOCOL.md 2.
func TestHandshakes(t *testing.T) {
	without := func(name string) string {
		var kept []string
		for line := range strings.SplitSeq(request, "\r\n") {
			if !strings.HasPrefix(line, name+":") && line != "" {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "\r\n") + "\r\n"
	}
	with := func(name, value string) string { return without(name) + name + ": " + value + "\r\n" }
	onBoth(t, func(t *testing.T, n *node) {
		for _, test := range []struct {
			number, rule, request string
			status                int
		}{
			{"0.1", "as it should be", request, 101},
			{"0.2", "names without case, other tokens beside", with("Connection", "keep-alive, UPGRADE"), 101},
			{"0.3", "upgrade in another case", with("Upgrade", "WebSocket"), 101},
			{"0.4", "another method: no such endpoint", strings.Replace(request, "GET", "POST", 1), 404},
			{"0.5", "HTTP/1.0", strings.Replace(request, "HTTP/1.1", "HTTP/1.0", 1), 400},
			{"0.6", "no host", without("Host"), 400},
			{"0.7", "no Connection", without("Connection"), 400},
			{"0.8", "Connection without upgrade", with("Connection", "close"), 400},
			{"0.9", "no Upgrade", without("Upgrade"), 400},
			{"0.10", "Upgrade to something else", with("Upgrade", "h2c"), 400},
			{"0.11", "no key", without("Sec-WebSocket-Key"), 400},
			{"0.12", "a short key", with("Sec-WebSocket-Key", "c2hvcnQ="), 400},
			{"0.13", "a key that is no base64", with("Sec-WebSocket-Key", "not base64 at all!!!!!!!"), 400},
			{"0.14", "two keys", request + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 400},
			{"0.15", "no version", without("Sec-WebSocket-Version"), 426},
			{"0.16", "another version", with("Sec-WebSocket-Version", "8"), 426},
			{"0.17", "a body", request + "Content-Length: 1\r\n\r\nx", 400},
			{"0.18", "subprotocols, none known", request + "Sec-WebSocket-Protocol: chat, soap\r\n", 400},
			{"0.19", "subprotocols, the second known", request + "Sec-WebSocket-Protocol: chat, pulse.v1.msgpack\r\n", 101},
			{"0.20", "an extension that is not known", request + "Sec-WebSocket-Extensions: x-custom\r\n", 101},
			{"0.21", "credentials in the URL", strings.Replace(request, "/v1/ws", "/v1/ws?Access_Token=x", 1), 400},
			{"0.22", "a foreign origin", request + "Origin: https://evil.test\r\n", 403},
			{"0.23", "two origins", request + "Origin: https://pulse.test\r\nOrigin: https://pulse.test\r\n", 403},
		} {
			t.Run(test.number+" "+test.rule, func(t *testing.T) {
				t.Parallel()
				p := n.connect(t)
				p.send([]byte(test.request + "\r\n"))
				response, err := http.ReadResponse(p.r, &http.Request{Method: http.MethodGet})
				if err != nil {
					t.Fatal(err)
				}
				if response.StatusCode != test.status {
					t.Errorf("status %d, want %d", response.StatusCode, test.status)
				}
				if test.status == 426 && response.Header.Get("Sec-Websocket-Version") != "13" {
					t.Error("426 does not say which version")
				}
			})
		}
		t.Run("0.24 a frame in the same write is not lost", func(t *testing.T) {
			p := n.connect(t)
			p.send(append([]byte(request+"\r\n"), frame(fin|text, []byte(`{"t":"hello"}`))...))
			if _, err := http.ReadResponse(p.r, &http.Request{Method: http.MethodGet}); err != nil {
				t.Fatal(err)
			}
			if f := p.read(); f.op != text {
				t.Errorf("%+v", f)
			}
		})
	})
}
