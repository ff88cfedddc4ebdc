package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// asTold is an Authenticator for tests: the token is "tenant/subject", with every
// right in every room, or "tenant/subject/grants" with grants as JSON.
type asTold struct{}

func (asTold) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	parts := strings.SplitN(c.Token, "/", 3)
	if len(parts) < 2 {
		return nil, fmt.Errorf("no such token: %w", auth.ErrUnauthenticated)
	}
	id := &auth.Identity{Tenant: parts[0], Subject: parts[1], Grants: auth.AllowAll()}
	if len(parts) == 3 {
		var err error
		if id.Grants, err = auth.ParseGrants([]byte(parts[2])); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// open is a kind whose events have each delivery.
var openKind = room.Kind{
	Name: room.Any,
	Events: map[string]room.EventPolicy{
		room.Any: {Delivery: room.AtLeastOnce, Lane: backpressure.Interactive},
		"typing": {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.DropOldest},
		"cursor": {Delivery: room.Transient, Lane: backpressure.Lossy, Overflow: backpressure.CoalesceLatest, CoalesceBy: "session"},
		"news":   {Delivery: room.AtMostOnce, Lane: backpressure.Bulk, Overflow: backpressure.DropOldest},
	},
}

// noRate is the rate of sessions that flood.
var noRate = backpressure.Rate{Messages: -1, Bytes: -1}

// start runs an engine for a test and checks, when the test ends, that closing it
// leaves no goroutine and nothing on the ledger.
func start(t *testing.T, change func(*Config)) *Engine {
	t.Helper()
	before := goleak.IgnoreCurrent()
	cfg := Config{Kinds: []room.Kind{openKind}, Authenticator: asTold{}, TenantDefaults: TenantLimits{SessionRate: noRate}}
	cfg.Limits.WriteTimeout = 2 * time.Second
	cfg.Limits.Workers = max(2, runtime.GOMAXPROCS(0)) // a handler that waits for the test holds one
	cfg.Limits.AcceptRate, cfg.Limits.AcceptRatePerAddress = -1, -1
	if testing.Verbose() {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if change != nil {
		change(&cfg)
	}
	e, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if q, r := e.queue.Used(), e.replay.Used(); q != 0 || r != 0 {
			t.Errorf("ledger after close: queues %d, replay %d", q, r)
		}
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
	return e
}

// frame is a server frame, whatever its codec was.
type frame map[string]any

func (f frame) t() string { s, _ := f["t"].(string); return s }

func (f frame) at(path string) any {
	var v any = map[string]any(f)
	for _, name := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			var i int
			fmt.Sscan(name, &i)
			if i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func (f frame) offset() uint64 {
	n, _ := f.at("offset").(json.Number)
	i, _ := n.Int64()
	return uint64(i)
}

// client drives a connection with frames written as JSON, in either codec.
type client struct {
	t    *testing.T
	conn *memory.Client
	in   codec.Codec
	id   int
}

func protocol(c codec.Codec) codec.Protocol {
	for _, p := range codec.Protocols() {
		if p.Codec() == c {
			return p
		}
	}
	panic("no protocol")
}

func dial(t *testing.T, e *Engine, in codec.Codec, o memory.Options) *client {
	t.Helper()
	c := &client{t: t, conn: memory.Dial(e, protocol(in), o), in: in}
	t.Cleanup(func() { c.conn.Cut(); <-c.conn.Done() })
	return c
}

// join dials, says hello as tenant/subject and joins rooms with it.
func join(t *testing.T, e *Engine, token string, rooms ...string) *client {
	t.Helper()
	c := dial(t, e, codec.JSON, memory.Options{})
	c.hello(token, rooms...)
	return c
}

func (c *client) send(doc string) {
	c.t.Helper()
	if err := c.conn.Send(encode(c.t, c.in, doc)); err != nil {
		c.t.Errorf("send %s: %v", doc, err)
	}
}

func (c *client) hello(token string, rooms ...string) frame {
	c.t.Helper()
	list := make([]string, len(rooms))
	for i, r := range rooms {
		if list[i] = r; !strings.HasPrefix(r, "{") {
			list[i] = fmt.Sprintf(`{"room":%q}`, r)
		}
	}
	c.send(fmt.Sprintf(`{"t":"hello","token":%q,"rooms":[%s]}`, token, strings.Join(list, ",")))
	w := c.next()
	if w.t() != "welcome" {
		c.t.Fatalf("no welcome: %v", w)
	}
	return w
}

func (c *client) recv(ctx context.Context) (frame, error) {
	raw, err := c.conn.Recv(ctx)
	if err != nil {
		return nil, err
	}
	return decode(c.t, c.in, raw), nil
}

func (c *client) next() frame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f, err := c.recv(ctx)
	if err != nil {
		c.t.Fatalf("recv: %v", err)
	}
	return f
}

// until skips frames until one of type t.
func (c *client) until(t string) frame {
	c.t.Helper()
	for {
		if f := c.next(); f.t() == t {
			return f
		}
	}
}

// ask sends a request, without its id, and waits for its reply; what comes before
// it is returned too.
func (c *client) ask(doc string) (reply frame, before []frame) {
	c.t.Helper()
	c.id++
	c.send(fmt.Sprintf(`{"id":%d,%s`, c.id, strings.TrimPrefix(doc, "{")))
	for {
		f := c.next()
		if f.t() == "reply" && fmt.Sprint(f["id"]) == fmt.Sprint(c.id) {
			return f, before
		}
		before = append(before, f)
	}
}

// swallow reads to the end, for who has to answer a close and wants to know nothing.
func (c *client) swallow() {
	for {
		if _, err := c.conn.Recv(context.Background()); err != nil {
			return
		}
	}
}

// closed waits for the end and returns its code.
func (c *client) closed() uint16 {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		_, err := c.conn.Recv(ctx)
		if end, ok := err.(*memory.CloseError); ok {
			return end.Code
		}
		if err != nil {
			c.t.Fatalf("waiting for the close: %v", err)
		}
	}
}

func encode(t *testing.T, in codec.Codec, doc string) []byte {
	t.Helper()
	if in == codec.JSON {
		return []byte(doc)
	}
	d, err := codec.MakeData(codec.JSON, []byte(doc))
	if err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return append([]byte(nil), d.In(codec.Msgpack)...)
}

func decode(t *testing.T, in codec.Codec, raw []byte) frame {
	t.Helper()
	if in == codec.Msgpack {
		d, err := codec.MakeData(codec.Msgpack, raw)
		if err != nil {
			t.Fatalf("% x: %v", raw, err)
		}
		raw = d.In(codec.JSON)
	}
	var f frame
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&f); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return f
}

func (e *Engine) publish(t *testing.T, tenant, room, name string, data any) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := e.Publish(ctx, Event{Tenant: tenant, Room: room, Name: name, Data: data})
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	return r
}

// eventually waits until a condition holds that nothing tells of.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}
