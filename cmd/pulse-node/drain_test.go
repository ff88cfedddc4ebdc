package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/engine"
)

const (
	loadedDrain = 6 * time.Second
	commandTime = 300 * time.Millisecond
)

// loadedNode is a node with commands that take their time, as a process.
func loadedNode(ctx context.Context) int {
	p := program{stdout: os.Stdout, stderr: os.Stderr}
	free := backpressure.Rate{Messages: -1, Bytes: -1}
	err := p.runNode(ctx, node{
		engine: engine.Config{
			Authenticator: anybody{}, Kinds: []room.Kind{{Name: room.Any, Publish: room.Grant, History: room.History{Events: 10_000, Bytes: 256 << 20}}},
			Commands: func(ctx context.Context, _ engine.Command) (any, error) {
				fmt.Println("command begun") // for who sends the signal
				select {
				case <-time.After(commandTime):
					return "done", nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
			Limits:         engine.Limits{MaxUnauthenticated: 1_000, MaxUnauthenticatedPerAddress: 1_000, BlockingWorkers: 200},
			TenantDefaults: engine.TenantLimits{SessionRate: free, HistoryBytes: 512 << 20},
			Logger:         slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		},
		listen: "127.0.0.1:0", internal: "127.0.0.1:0", handshakeTimeout: 10 * time.Second, drainTimeout: loadedDrain,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return exitOK
}

// anybody lets everybody be who they say.
type anybody struct{}

func (anybody) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	return &auth.Identity{Tenant: "acme", Subject: c.Token, Grants: auth.AllowAll()}, nil
}

// guest is one client of a node that drains.
type guest struct {
	// immutable
	ws    *websocket.Conn
	obeys bool           // goes when it is asked to; else it stays to the end
	works bool           // has a command under way by then
	owed  *atomic.Uint64 // the event that it must have had before it goes

	// owned by stay
	last     uint64
	gap      string
	drain    [2]time.Duration
	told     int  // how often it was told to go
	answered bool // its command
	refused  bool // its second command, which came too late
	goes     time.Time
	going    bool
	end      error
}

// owes: the node has yet to tell it something, busy as it is.
func (g *guest) owes() bool {
	return !g.refused || g.works && !g.answered || g.last < g.owed.Load()
}

type frame struct {
	T         string   `json:"t"`
	ID        int      `json:"id"`
	Room      string   `json:"room"`
	Offset    uint64   `json:"offset"`
	Reconnect [2]int64 `json:"reconnect_ms"`
	OK        *struct {
		Data   any    `json:"data"`
		Offset uint64 `json:"offset"`
	} `json:"ok"`
	Err *struct {
		Code string `json:"code"`
	} `json:"err"`
}

// arrive connects and says hello.
func arrive(ctx context.Context, url, name, room string, buffer int) (*websocket.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		if buffer == 0 {
			return nil
		}
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, buffer) })
	}}
	c, _, err := websocket.Dial(ctx, url+"/v1/ws", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: d.DialContext}},
	})
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(1 << 20)
	if err := c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"t":"hello","token":%q,"rooms":[{"room":%q}]}`, name, room)); err != nil {
		return nil, err
	}
	_, _, err = c.Read(ctx)
	return c, err
}

// stay reads until the end, or until the moment to go has come.
func (g *guest) stay(ctx context.Context) {
	leave := make(chan struct{})
	defer func() { g.ws.CloseNow() }()
	for {
		_, text, err := g.ws.Read(ctx)
		if err != nil {
			select {
			case <-leave:
			default:
				g.end = err
			}
			return
		}
		var f frame
		if err := json.Unmarshal(text, &f); err != nil {
			g.end = err
			return
		}
		switch f.T {
		case "event":
			if g.last != 0 && f.Offset != g.last+1 {
				g.gap = fmt.Sprintf("%d after %d", f.Offset, g.last)
			}
			g.last = f.Offset
		case "reply":
			g.answered = g.answered || f.ID == 1 && f.OK != nil && f.OK.Data == "done"
			g.refused = g.refused || f.ID == 2 && f.Err != nil && f.Err.Code == "draining"
		case "drain":
			g.told++
			g.drain = [2]time.Duration{time.Duration(f.Reconnect[0]) * time.Millisecond, time.Duration(f.Reconnect[1]) * time.Millisecond}
			if err := g.ws.Write(ctx, websocket.MessageText, []byte(`{"t":"command","id":2,"name":"work"}`)); err != nil {
				g.end = err
				return
			}
			g.goes = time.Now().Add(g.drain[0] + rand.N(g.drain[1]-g.drain[0]+1))
		}
		if g.obeys && g.told > 0 && !g.going && !g.owes() {
			g.going = true
			time.AfterFunc(time.Until(g.goes), func() { close(leave); g.ws.CloseNow() })
		}
	}
}

// SIGTERM while a thousand sessions are there, ten of which do not read, each other
// with a command under way, and events come all the time. golang/go#17721,
// kernel/kernel-images#296
func TestB122_SIGTERMUnderLoad(t *testing.T) {
	const sessions, stuck = 1_000 / scale, 10
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	// Else the race detector takes a second to end.
	cmd.Env = append(os.Environ(), asProcess+"=loaded", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs synced
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	m := listening.FindStringSubmatch(lines.Text())
	if m == nil {
		t.Fatalf("first line %q: %s", lines.Text(), &errs)
	}
	url := m[1]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	// Those that do not read: far more waits for them than the system keeps.
	for i := range stuck {
		c, err := arrive(ctx, url, fmt.Sprint("stuck", i), "heavy:1", 8<<10)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
	}
	publisher, err := arrive(ctx, url, "publisher", "quiet:1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.CloseNow()
	publish := func(room, data string) (offset uint64, err error) {
		err = publisher.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"t":"publish","id":9,"room":%q,"event":"message","data":%q}`, room, data))
		for err == nil {
			var text []byte
			if _, text, err = publisher.Read(ctx); err == nil {
				var f frame
				if err = json.Unmarshal(text, &f); f.T == "reply" {
					if f.OK == nil {
						return 0, fmt.Errorf("%s", text)
					}
					return f.OK.Offset, err
				}
			}
		}
		return 0, err
	}
	for range 160 {
		if _, err := publish("heavy:1", strings.Repeat("x", 48<<10)); err != nil {
			t.Fatal(err)
		}
	}

	const working = 100 / scale
	var owed atomic.Uint64
	guests := make([]*guest, sessions-stuck)
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	places := make(chan struct{}, 32)
	for i := range guests {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			c, err := arrive(ctx, url, fmt.Sprint("guest", i), "chat:1", 0)
			if err != nil {
				failed.Store(&err)
				return
			}
			guests[i] = &guest{ws: c, obeys: i%2 == 0, works: i < working, owed: &owed}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
	for _, g := range guests {
		wg.Go(func() { g.stay(ctx) })
	}
	// Events come until the publisher is closed itself. What it had an answer for when
	// the clients were told to go must reach every client that stayed.
	var accepted atomic.Uint64
	published := make(chan error, 1)
	go func() {
		for {
			offset, err := publish("chat:1", "tick")
			if err != nil {
				published <- err
				return
			}
			accepted.Store(offset)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	for accepted.Load() < 3 {
		time.Sleep(10 * time.Millisecond)
	}
	for _, g := range guests[:working] { // under way when the signal comes
		if err := g.ws.Write(ctx, websocket.MessageText, []byte(`{"t":"command","id":1,"name":"work"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for range working {
		if !lines.Scan() {
			t.Fatalf("the node has ended: %s", &errs)
		}
	}
	before := accepted.Load()
	owed.Store(before)
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Log(err)
	}
	exit := cmd.Wait()
	if took := time.Since(began); exit != nil || took > loadedDrain+2*time.Second { // with the end of the process, on a machine of which others have their part
		t.Errorf("exit %v after %v: %s", exit, took, &errs)
	} else {
		t.Logf("it took %v; %d events before the signal, %d in all", took, before, accepted.Load())
	}
	wg.Wait()
	if err := <-published; websocket.CloseStatus(err) != websocket.StatusServiceRestart {
		t.Errorf("the publisher: %v", err)
	}
	const parts = 8
	var spread [parts]int
	for i, g := range guests {
		over := loadedDrain / 5 * 4
		if g.told != 1 || g.drain[1] > over || g.drain[0] > g.drain[1] {
			t.Errorf("guest %d was told %d times: %v", i, g.told, g.drain)
			continue
		}
		spread[min(int(g.drain[0]*parts/over), parts-1)]++
		if g.gap != "" || g.last < before {
			t.Errorf("guest %d: events up to %d of %d, gap %q", i, g.last, before, g.gap)
		}
		if g.works && !g.answered {
			t.Errorf("guest %d: its command was not answered", i)
		}
		if !g.refused {
			t.Errorf("guest %d: a command after the drain began was not refused", i)
		}
		var end websocket.CloseError
		closed := errors.As(g.end, &end) && end.Code == websocket.StatusServiceRestart && end.Reason == fmt.Sprintf("%d-%d", g.drain[0].Milliseconds(), g.drain[1].Milliseconds())
		// Who was to go last may, on a busy machine, be closed before it does.
		if went := g.obeys && g.end == nil; !went && !(closed && (!g.obeys || g.drain[1] > over/10*9)) {
			t.Errorf("guest %d, told %v, obeys: %v: %v", i, g.drain, g.obeys, g.end)
		}
		if t.Failed() && i > 20 {
			t.Fatal("…")
		}
	}
	for part, n := range spread {
		if n < sessions/parts/5 { // by chance twice in a million runs
			t.Errorf("%d clients in part %d of the time", n, part)
		}
	}
}
