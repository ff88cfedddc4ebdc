package engine

import (
	"fmt"
	"testing"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/transport/ws"
)

// What a client's compression holds in this process is the tenant's, while its
// connection lives; where there is no place for it the client comes again later.
func TestCompressionContextIsOnTheLedger(t *testing.T) {
	w := startWeb(t, func(c *Config) {
		c.Compression = ws.Compression{Enabled: true}
		c.Tenants = map[string]TenantLimits{"small": {QueueBytes: ws.Window + ws.Window/2}}
	})
	keeps := websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover}
	forgets := websocket.DialOptions{CompressionMode: websocket.CompressionNoContextTakeover}
	settle := func(want int64) {
		t.Helper()
		eventually(t, fmt.Sprint("the ledger has ", want), func() bool { return w.e.queue.Used() == want })
	}
	for _, tt := range []struct {
		name    string
		token   string
		o       websocket.DialOptions
		refused int
		charged int64 // in all
	}{
		{"a context that is forgotten costs nothing", "small/a", forgets, 0, 0},
		{"one that is kept is charged", "small/b", keeps, 0, ws.Window},
		{"there is no place for a second", "small/c", keeps, 1013, ws.Window},
		{"another tenant has its own", "large/a", keeps, 0, 2 * ws.Window},
		{"who holds nothing is let in", "small/d", forgets, 0, 2 * ws.Window},
	} {
		if _, refused := w.welcomed(tt.token, tt.o); refused != tt.refused {
			t.Errorf("%s: refused %d", tt.name, refused)
		}
		settle(tt.charged)
	}
	if n, err := w.e.Disconnect(t.Context(), "small", "b"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}
