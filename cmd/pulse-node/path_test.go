package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// hello connects to a node, says hello and returns the first frame, or the close
// code where there is none.
func hello(t *testing.T, url, token string, o *websocket.DialOptions) (map[string]any, websocket.StatusCode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(ctx, url+"/v1/ws", o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	text := fmt.Sprintf(`{"t":"hello","token":%q,"rooms":[{"room":"chat:1"},{"room":"other"}]}`, token)
	if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, answer, err := c.Read(ctx)
	if err != nil {
		return nil, websocket.CloseStatus(err)
	}
	var frame map[string]any
	if err := json.Unmarshal(answer, &frame); err != nil {
		t.Fatal(err)
	}
	return frame, 0
}

// What `token` prints opens what it names, at the node that `serve` runs with the
// same configuration.
func TestTokenOpensTheNodeOfItsConfiguration(t *testing.T) {
	file := write(t, "pulse.yaml", keys)
	code, token, errs := runOnce(t, nil, "token", "--config", file, "--tenant", "acme", "--sub", "alice", "--rooms", "chat:*")
	if code != exitOK {
		t.Fatal(errs)
	}
	token = strings.TrimSpace(token)
	n := start(t, "serve", "--config", file, "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0", "--session.resume_ttl=7s")

	welcome, closed := hello(t, n.public, token, nil)
	if closed != 0 || welcome["tenant"] != "acme" || welcome["subject"] != "alice" || welcome["resume_ttl_ms"] != 7000.0 {
		t.Fatalf("%v, %d", welcome, closed)
	}
	rooms, _ := json.Marshal(welcome["rooms"])
	if !strings.Contains(string(rooms), `"room":"chat:1"`) || !strings.Contains(string(rooms), `"forbidden"`) {
		t.Errorf("rooms %s", rooms)
	}
	if _, closed := hello(t, n.public, token+"x", nil); closed != 4401 {
		t.Errorf("a bad token is closed with %d", closed)
	}
}

func TestDevTakesPagesOfAnyOriginWithAToken(t *testing.T) {
	n := start(t, "dev", "--listen", "127.0.0.1:0")
	token := strings.TrimPrefix(n.line(t), "token alice ")
	welcome, closed := hello(t, n.public, token, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"http://localhost:5173"}}})
	if closed != 0 || welcome["tenant"] != "dev" || welcome["subject"] != "alice" {
		t.Errorf("%v, %d", welcome, closed)
	}
	if _, closed := hello(t, n.public, "", nil); closed != 4401 {
		t.Errorf("without a token: closed with %d", closed)
	}
}
