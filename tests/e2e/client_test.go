package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// wire is a codec as a client sees it.
type wire string

const (
	inJSON    wire = "json"
	inMsgpack wire = "msgpack"
)

var wires = []wire{inJSON, inMsgpack}

func (w wire) kind() websocket.MessageType {
	if w == inMsgpack {
		return websocket.MessageBinary
	}
	return websocket.MessageText
}

func (w wire) encode(f frame) []byte {
	if w == inMsgpack {
		return pack(nil, map[string]any(f))
	}
	text, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return text
}

func (w wire) decode(b []byte) (frame, error) {
	if w == inMsgpack {
		v, err := unpack(b)
		f, ok := v.(map[string]any)
		if err == nil && !ok {
			err = errors.New("no map")
		}
		return f, err
	}
	return parse(b)
}

// parse reads one JSON object with exact numbers.
func parse(text []byte) (frame, error) {
	var f frame
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something behind the object")
	}
	return f, nil
}

// client is one connection. It is used by one goroutine.
type client struct {
	t     testing.TB
	in    wire
	ws    *websocket.Conn
	tcp   *net.TCPConn
	order *order
	inbox []frame // read and passed over
	ids   int
}

// dial connects to a node, without a hello.
func dial(t testing.TB, n *node, in wire) *client {
	t.Helper()
	return dialWith(t, n, in, func(*websocket.DialOptions) {})
}

func dialWith(t testing.TB, n *node, in wire, change func(*websocket.DialOptions)) *client {
	t.Helper()
	c := &client{t: t, in: in, order: newOrder()}
	transport := &http.Transport{
		TLSClientConfig: n.trust,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := n.dialer.DialContext(ctx, network, address)
			if err == nil {
				c.tcp = conn.(*net.TCPConn)
			}
			return conn, err
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o := &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{"pulse.v1." + string(in)},
	}
	change(o)
	ws, _, err := websocket.Dial(ctx, n.url+"/v1/ws", o)
	if err != nil {
		t.Fatal(err)
	}
	if got := ws.Subprotocol(); got != "pulse.v1."+string(in) {
		t.Fatalf("subprotocol %q", got)
	}
	ws.SetReadLimit(1 << 20)
	c.ws = ws
	t.Cleanup(func() { ws.CloseNow() })
	return c
}

// enter connects, says hello and returns the welcome too. A room is its name, or
// the object that a hello has for it.
func enter(t testing.TB, n *node, in wire, token string, rooms ...string) (*client, frame) {
	t.Helper()
	c := dial(t, n, in)
	return c, c.hello(token, rooms...)
}

func (c *client) hello(token string, rooms ...string) frame {
	c.t.Helper()
	list := make([]string, len(rooms))
	for i, r := range rooms {
		if list[i] = r; !strings.HasPrefix(r, "{") {
			list[i] = fmt.Sprintf(`{"room":%q}`, r)
		}
	}
	c.say(`{"t":"hello","token":%q,"rooms":[%s]}`, token, strings.Join(list, ","))
	w := c.next()
	if w.text("t") != "welcome" {
		c.t.Fatalf("no welcome: %v", w)
	}
	return w
}

// say sends a frame written as JSON.
func (c *client) say(format string, args ...any) {
	c.t.Helper()
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	f, err := parse([]byte(text))
	if err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	c.order.sent(f)
	c.raw(c.in.kind(), c.in.encode(f))
}

func (c *client) raw(kind websocket.MessageType, b []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if err := c.ws.Write(ctx, kind, b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// receive reads the next message.
func (c *client) receive() (frame, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	kind, b, err := c.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	if kind != c.in.kind() {
		return nil, fmt.Errorf("a message of the other kind: %q", b)
	}
	f, err := c.in.decode(b)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", b, err)
	}
	return f, c.order.received(f)
}

// next is the next frame that was not yet taken.
func (c *client) next() frame {
	c.t.Helper()
	if len(c.inbox) > 0 {
		f := c.inbox[0]
		c.inbox = c.inbox[1:]
		return f
	}
	f, err := c.receive()
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// find takes the first frame that fits and leaves the others in their order.
func (c *client) find(fits func(frame) bool) frame {
	c.t.Helper()
	for i, f := range c.inbox {
		if fits(f) {
			c.inbox = append(c.inbox[:i:i], c.inbox[i+1:]...)
			return f
		}
	}
	for {
		f, err := c.receive()
		if err != nil {
			c.t.Fatalf("%v; passed over: %v", err, c.inbox)
		}
		if fits(f) {
			return f
		}
		c.inbox = append(c.inbox, f)
	}
}

// until takes the first frame of a type.
func (c *client) until(t string) frame {
	c.t.Helper()
	return c.find(func(f frame) bool { return f.text("t") == t })
}

// ask sends a request, written without its id, and takes its reply.
func (c *client) ask(format string, args ...any) frame {
	c.t.Helper()
	c.ids++
	id := fmt.Sprint(c.ids)
	c.say(`{"id":`+id+`,`+strings.TrimPrefix(format, "{"), args...)
	return c.find(func(f frame) bool { return f.text("t") == "reply" && fmt.Sprint(f["id"]) == id })
}

// quiet makes sure that nothing was sent that was not taken.
func (c *client) quiet() {
	c.t.Helper()
	c.ids++
	c.say(`{"t":"ping","id":%d}`, c.ids)
	if f := c.next(); f.text("t") != "pong" || fmt.Sprint(f["id"]) != fmt.Sprint(c.ids) {
		c.t.Fatalf("not quiet: %v", f)
	}
}

// closed waits for the end, and returns its code and reason.
func (c *client) closed() (websocket.StatusCode, string) {
	c.t.Helper()
	for {
		_, err := c.receive()
		if err == nil {
			continue
		}
		end := websocket.CloseError{}
		if !errors.As(err, &end) {
			c.t.Fatalf("waiting for the close: %v", err)
		}
		return end.Code, end.Reason
	}
}

// cut ends the connection as a lost network does: with nothing said.
func (c *client) cut() {
	c.t.Helper()
	if err := errors.Join(c.tcp.SetLinger(0), c.tcp.Close()); err != nil {
		c.t.Fatal(err)
	}
	c.ws.CloseNow()
}
