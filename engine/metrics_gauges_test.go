package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/internal/telemetry"
	"github.com/yaza-dev/pulse/transport/memory"
)

// Refused upgrades move no gauge, in whatever order they come among connections.
// Source: widgrensit/asobi#492.
func TestB156_RefusedUpgradesMoveNoGauge(t *testing.T) {
	e, s := measured(t, nil)
	server := httptest.NewServer(e.Handler())
	defer server.Close()
	count := func(want int) {
		t.Helper()
		if got := s.scrape().of(telemetry.Connections); got != float64(want) {
			t.Fatalf("%v connections, there are %d", got, want)
		}
	}
	refusals := []struct {
		name   string
		header [2]string
		query  string
		status int
	}{
		{"origin", [2]string{"Origin", "https://evil.example"}, "", 403},
		{"credentials", [2]string{"Authorization", "Bearer bad"}, "", 401},
		{"token in the URL", [2]string{}, "?token=x", 400},
		{"no upgrade", [2]string{"Connection", "close"}, "", 400},
	}
	refuse := func(i int) {
		r := refusals[i%len(refusals)]
		req, _ := http.NewRequest(http.MethodGet, server.URL+"/v1/ws"+r.query, nil)
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			req.Header.Set(k, v)
		}
		if r.header[0] != "" {
			req.Header.Set(r.header[0], r.header[1])
		}
		w := httptest.NewRecorder()
		req.RemoteAddr = "192.0.2.1:1"
		e.Handler().ServeHTTP(w, req)
		if w.Code != r.status {
			t.Fatalf("%s: %d", r.name, w.Code)
		}
	}
	var open []*memory.Client
	for i, order := 0, rand.New(rand.NewPCG(1, 2)); i < 1_000 || len(open) > 0; i++ {
		if i < 1_000 {
			refuse(i)
		}
		switch {
		case i < 1_000 && i%10 == 0:
			c := dial(t, e, codec.JSON, memory.Options{})
			c.hello(fmt.Sprintf("acme/s%d", i))
			open = append(open, c.conn)
		case len(open) > 0 && (i >= 1_000 || order.IntN(12) == 0):
			n := order.IntN(len(open))
			open[n].Close(1000)
			<-open[n].Done()
			open = append(open[:n], open[n+1:]...)
		}
		if i%50 == 0 {
			count(len(open))
		}
	}
	count(0)
	if n := s.scrape().of(telemetry.Closes, "normal"); n != 100 {
		t.Errorf("%v closes of 100", n)
	}
	_, resp, err := websocket.Dial(t.Context(), server.URL+"/v1/ws", &websocket.DialOptions{Subprotocols: []string{"no.such"}})
	if err == nil || resp.StatusCode != 400 {
		t.Errorf("no refusal over a socket: %v", err)
	}
	c, _, err := websocket.Dial(t.Context(), server.URL+"/v1/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	_ = c.Write(t.Context(), websocket.MessageText, []byte(`{"t":"hello","token":"acme/a"}`))
	_, _, _ = c.Read(t.Context())
	count(1)
}

// Each way to end lowers the gauge by one, once, under its cause, and is told to the
// log in one line.
// Sources: reactor/reactor-netty#3222 and #4290, sockudo/sockudo#205.
func TestB157_EachEndLowersTheGaugeOnce(t *testing.T) {
	for _, tt := range []struct {
		name, cause string
		subject     string // what becomes of the hello; see moody
		end         func(t *testing.T, e *Engine, c *client, welcome frame)
		stay        float64 // connections that are left
	}{
		{name: "by the client", cause: "normal", end: func(_ *testing.T, _ *Engine, c *client, _ frame) { c.conn.Close(1000) }},
		{name: "by its page", cause: "going_away", end: func(_ *testing.T, _ *Engine, c *client, _ frame) { c.conn.Close(1001) }},
		{name: "by the program", cause: "normal", end: func(t *testing.T, e *Engine, _ *client, _ frame) {
			if n, err := e.Disconnect(t.Context(), "acme", "calm"); n != 1 || err != nil {
				t.Error(n, err)
			}
		}},
		{name: "cut", cause: "abrupt", end: func(_ *testing.T, _ *Engine, c *client, _ frame) { c.conn.Cut() }},
		{name: "no pong", cause: "timeout"},
		{name: "malformed", cause: "malformed", end: func(_ *testing.T, _ *Engine, c *client, _ frame) { c.send(`{"t":"ping","t":"ping"}`) }},
		{name: "too large", cause: "too_large", end: func(_ *testing.T, _ *Engine, c *client, _ frame) {
			c.send(fmt.Sprintf(`{"t":"ping","x":%q}`, strings.Repeat("x", 70_000)))
		}},
		{name: "taken over", cause: "taken_over", stay: 1, end: func(t *testing.T, e *Engine, _ *client, welcome frame) {
			resume(t, e, codec.JSON, "acme/calm", welcome["resume"])
		}},
		{name: "credentials end", cause: "unauthenticated", subject: "brief"},
		{name: "refused", cause: "unauthenticated", subject: "refused"},
		{name: "panic", cause: "internal", subject: "panic"},
		{name: "drain", cause: "restart", end: func(_ *testing.T, e *Engine, _ *client, _ frame) { go e.Close(context.Background()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged buffer
				e, s := measured(t, func(c *Config) {
					c.Authenticator = moody{}
					c.Logger = slog.New(slog.NewJSONHandler(&logged, nil))
				})
				subject := cmp.Or(tt.subject, "calm")
				c := dial(t, e, codec.JSON, memory.Options{})
				c.send(fmt.Sprintf(`{"t":"hello","token":"acme/%s","rooms":[{"room":"chat:1"}]}`, subject))
				synctest.Wait()
				var welcome frame
				if subject == "calm" {
					welcome = c.next()
				}
				if tt.end != nil {
					tt.end(t, e, c, welcome)
				}
				for err := error(nil); err == nil; { // reads to the end, which answers a close
					_, err = c.conn.Recv(t.Context())
				}
				<-c.conn.Done()
				told := ends(t, &logged)
				if len(told) != 1 || told[0]["cause"] != tt.cause || subject == "calm" && (told[0]["tenant"] != "acme" || told[0]["session"] != welcome["session"]) {
					t.Errorf("the log tells of %v", told)
				}
				if tt.cause == "restart" { // its instruments end with the engine
					<-e.closed
					if n, ended := e.connections.count(), e.Stats().Closes; n != 0 || ended != [len(ended)]uint64{codec.CauseRestart: 1} {
						t.Errorf("%d connections; ended: %v", n, ended)
					}
					return
				}
				synctest.Wait()
				got := s.scrape()
				if n := got.of(telemetry.Connections); n != tt.stay {
					t.Errorf("%v connections, want %v", n, tt.stay)
				}
				for cause := codec.CauseNormal; cause <= codec.CauseAbrupt; cause++ {
					want := 0.0
					if cause.String() == tt.cause {
						want = 1
					}
					if n := got.of(telemetry.Closes, cause.String()); n != want {
						t.Errorf("%v ended as %v, want %v", n, cause, want)
					}
				}
			})
		})
	}
}

// ends are the lines that tell of the end of a connection.
func ends(t *testing.T, logged *buffer) (list []frame) {
	for _, line := range logged.lines() {
		var f frame
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f["msg"] == "connection ended" || f["msg"] == "connection refused" {
			list = append(list, f)
		}
	}
	return list
}

// A socket that is reset, beside others that live.
func TestB157_ResetSocket(t *testing.T) {
	e, s := measured(t, nil)
	server := httptest.NewServer(e.Handler())
	defer server.Close()
	var sockets []net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, at)
		sockets = append(sockets, c)
		return c, err
	}}}
	for i := range 3 {
		c, _, err := websocket.Dial(t.Context(), server.URL+"/v1/ws", &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if i > 0 {
			_ = c.Write(t.Context(), websocket.MessageText, []byte(`{"t":"hello","token":"acme/a"}`))
			_, _, _ = c.Read(t.Context())
		}
	}
	_ = sockets[2].(*net.TCPConn).SetLinger(0)
	_ = sockets[2].Close()
	eventually(t, "the gauge falls", func() bool {
		got := s.scrape()
		return got.of(telemetry.Connections) == 2 && got.of(telemetry.Closes, "abrupt") == 1
	})
}

// moody is asTold but for some subjects.
type moody struct{}

func (moody) Authenticate(ctx context.Context, c auth.Credentials) (*auth.Identity, error) {
	id, err := asTold{}.Authenticate(ctx, c)
	if err != nil {
		return nil, err
	}
	switch id.Subject {
	case "brief":
		id.Expires = time.Now().Add(time.Second)
	case "refused":
		return nil, auth.ErrUnauthenticated
	case "panic":
		panic("moody")
	}
	return id, nil
}

// After a storm of connections, joins, leaves and drops, the gauges are what there is.
func TestGaugesAreTruthAfterAStorm(t *testing.T) {
	e, s := measured(t, func(c *Config) {
		c.TenantLabels = 2
		c.Limits.MaxUnauthenticatedPerAddress = 1_000
		c.Kinds = []room.Kind{{Name: "desk"}, openKind}
	})
	const workers, rounds = 12, 40
	type left struct {
		tenant string
		rooms  []string
		c      *client
	}
	stay := make([][]left, workers)
	var detached atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(7, uint64(w)))
			tenant := fmt.Sprintf("t%d", w%4)
			for i := range rounds {
				c := dial(t, e, codec.JSON, memory.Options{})
				rooms := []string{"desk:1", fmt.Sprintf("chat:%d", rnd.IntN(5)), fmt.Sprintf("chat:w%d", w)}[:rnd.IntN(4)]
				if rnd.IntN(8) == 0 {
					c.conn.Cut() // before its hello
					continue
				}
				c.hello(fmt.Sprintf("%s/s%d-%d", tenant, w, i), rooms...)
				if len(rooms) > 0 && rnd.IntN(3) == 0 {
					c.ask(fmt.Sprintf(`{"t":"leave","room":%q}`, rooms[0]))
					rooms = rooms[1:]
				}
				switch rnd.IntN(4) {
				case 0:
					stay[w] = append(stay[w], left{tenant, rooms, c})
				case 1:
					c.conn.Close(1000)
				case 2:
					c.conn.Cut()
					detached.Add(1)
				case 3:
					c.send(`{"t":"dance","t":"dance"}`)
					c.closed()
					c.conn.Cut()
				}
			}
		})
	}
	wg.Wait()
	var connections, members float64
	tenants := map[string]float64{}
	for _, list := range stay {
		for _, l := range list {
			connections++
			members += float64(len(l.rooms))
			tenants[l.tenant]++
		}
	}
	var got series
	eventually(t, "the dust settles", func() bool {
		got = s.scrape()
		return got.of(telemetry.Connections) == connections && got.of(telemetry.Members) == members &&
			got.of(telemetry.Sessions, "attached") == connections && got.of(telemetry.Actors, "session") == connections
	})
	got.want(t, telemetry.Sessions, map[string]float64{"detached": float64(detached.Load())})
	got.want(t, telemetry.Actors, map[string]float64{"tenant": 4, "session": connections})
	var labelled, sum float64
	for tenant, n := range tenants {
		if v := got.of(telemetry.TenantSessions, tenant); !math.IsNaN(v) {
			labelled++
			sum += v
			if v != n {
				t.Errorf("tenant %s: %v sessions, there are %v", tenant, v, n)
			}
		}
	}
	if labelled != 2 || sum+got.of(telemetry.TenantSessions, telemetry.OtherTenants) != connections {
		t.Errorf("%v tenants have labels; sessions %v of %v", labelled, sum, connections)
	}
	rooms := 0
	for _, n := range e.all() {
		rooms += n.Rooms()
	}
	if n := got.of(telemetry.Rooms, "desk") + got.of(telemetry.Rooms, "*"); n != float64(rooms) || n != got.of(telemetry.Actors, "room") {
		t.Errorf("%v rooms, there are %d", n, rooms)
	}
}

// Rooms and tenants come and go by the thousand; what is told of them stays small,
// and what they held comes back.
func TestSeriesAreBoundedAndMemoryComesBack(t *testing.T) {
	const tenants, rooms = 10_000 / scale, 10
	synctest.Test(t, func(t *testing.T) {
		e, s := measured(t, func(c *Config) { c.TenantLabels = 50 })
		touch := func(tenant int) {
			for r := range rooms {
				e.publish(t, fmt.Sprintf("t%d", tenant), fmt.Sprintf("chat:%d", r), "typing", 1)
			}
		}
		touch(0)
		first := len(s.scrape())
		settled := func() uint64 {
			time.Sleep(3 * time.Minute) // of the bubble: rooms and tenants linger no more
			synctest.Wait()
			return heap()
		}
		before := settled()
		for i := range tenants {
			touch(i)
		}
		full, all := heap(), s.scrape()
		if n := all.of(telemetry.Actors, "room"); n != float64(tenants*rooms) {
			t.Errorf("%v rooms, want %d", n, tenants*rooms)
		}
		if most := first + 3*50 + 100; len(all) > most {
			t.Errorf("%d series, at most %d", len(all), most)
		}
		after := settled()
		got := s.scrape()
		got.want(t, telemetry.Actors, map[string]float64{"tenant": 0, "room": 0})
		got.want(t, telemetry.TenantRooms, map[string]float64{})
		for k := range got {
			if strings.HasPrefix(k, telemetry.TenantRooms.Name) {
				t.Errorf("%s is left of tenants that have ended", k)
			}
		}
		touch(1) // those that come now have the labels of those that went
		if n := s.scrape().of(telemetry.TenantRooms, "t1"); n != rooms {
			t.Errorf("%v rooms of a tenant that came when others had gone", n)
		}
		records := uint64(e.ownBroker.Used()) // the bridge remembers for a day that there was a room
		if most := before + records + (full-before)/20; after > most {
			t.Errorf("%d KiB of heap, before %d, with all rooms %d, records %d", after>>10, before>>10, full>>10, records>>10)
		}
		t.Logf("heap: %d KiB before, %d with %d rooms, %d after of which %d are records; %d series",
			before>>10, full>>10, tenants*rooms, after>>10, records>>10, len(all))
	})
}
