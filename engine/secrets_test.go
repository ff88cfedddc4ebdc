package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// hush is in everything that a client, or a program's secrets, bring.
const hush = "hush"

// keyring knows one token, and fails in as telling a way as it can.
type keyring struct{}

func (keyring) Authenticate(_ context.Context, c auth.Credentials) (*auth.Identity, error) {
	switch c.Token {
	case "hush-token", "hush-token-2":
		return &auth.Identity{Tenant: "acme", Subject: "hush-subject", Grants: auth.AllowAll()}, nil
	case "hush-panic":
		panic("no token " + c.Token)
	case "hush-broken":
		return nil, fmt.Errorf("cannot ask about %q", c.Token)
	}
	return nil, fmt.Errorf("%w: no token %q", auth.ErrUnauthenticated, c.Token)
}

// chatty is a handler that panics with what it has.
type chatty struct{}

func (chatty) Publish(_ *room.Context, e *room.Event) error {
	switch e.Name {
	case "hush-panic":
		panic(fmt.Sprintf("%s %s of %s", e.Name, e.Data.In(codec.JSON), e.From))
	case "hush-error":
		return fmt.Errorf("%s of %s", e.Data.In(codec.JSON), e.From)
	}
	return nil
}

func (chatty) Command(_ *room.Context, c *room.Command) (any, error) {
	panic(fmt.Sprintf("%s %s", c.Name, c.Data.In(codec.JSON)))
}

// buffer is a log that goroutines share.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(strings.Lines(b.b.String()))
}

// An engine is given nothing but secrets, in every place where a client or a program
// can put one, and what it tells operators and strangers has none of them, at any level.
func TestNothingTellsSecrets(t *testing.T) {
	var logged buffer
	logger := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	reader := sdk.NewManualReader()
	spans := tracetest.NewInMemoryExporter()
	e := start(t, func(c *Config) {
		c.Authenticator, c.Logger, c.Cookie = keyring{}, logger, "session"
		c.Kinds = []room.Kind{{Name: room.Any, New: func() room.Handler { return chatty{} }, Presence: true, Events: openKind.Events}}
		c.Commands = func(_ context.Context, c Command) (any, error) {
			panic(fmt.Sprintf("%s %s", c.Name, c.Data.In(codec.JSON)))
		}
		c.DeploymentKeys = [][]byte{[]byte("hush-key-of-32-bytes-hush-hush-h")}
		c.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader))
		c.TracerProvider, c.TraceRatio = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), 1
		c.TenantDefaults.SessionRate = backpressure.Rate{Messages: -1, Bytes: -1}
	})

	// Over frames.
	for _, in := range bothCodecs {
		c := dial(t, e, in, memory.Options{Header: http.Header{
			"Cookie": {"session=hush-cookie"}, "User-Agent": {"hush-agent"}, "X-Forwarded-For": {"hush-proxy"},
		}})
		c.send(`{"t":"hello","token":"hush-token","client":"hush-client","resume":"hush-resume",
			"rooms":[{"room":"chat:hush-room","presence":true,"data":{"hush":"hush-presence"}},{"room":"chat:hush room"}]}`)
		if w := c.until("welcome"); w.at("subject") != "hush-subject" {
			t.Fatal(w)
		}
		for _, doc := range []string{
			`{"t":"publish","room":"chat:hush-room","event":"hush-event","data":"hush-data","dedup_key":"hush-dedup"}`,
			`{"t":"publish","room":"chat:hush-room","event":"typing","data":"hush-data"}`,
			`{"t":"publish","room":"chat:hush-room","event":"hush-panic","data":"hush-data"}`,
			`{"t":"publish","room":"chat:hush-room","event":"hush-error","data":"hush-data"}`,
			`{"t":"publish","room":"chat:hush-other","event":"hush-event","data":"hush-data"}`,
			`{"t":"publish","room":"hush room","event":"hush event","data":"hush-data"}`,
			`{"t":"command","room":"chat:hush-room","name":"hush-command","data":"hush-data"}`,
			`{"t":"command","name":"hush-command","data":"hush-data"}`,
			`{"t":"join","room":"chat:hush-joined","epoch":"hush-epoch","offset":3}`,
			`{"t":"history","room":"chat:hush-room","epoch":"hush-epoch","offset":3}`,
			`{"t":"presence","room":"chat:hush-room","after":"hush-after"}`,
			`{"t":"leave","room":"chat:hush-none"}`,
			`{"t":"token","token":"hush-wrong"}`,
			`{"t":"token","token":"hush-broken"}`,
			`{"t":"token","token":"hush-panic"}`,
			`{"t":"token","token":"hush-token-2"}`,
			`{"t":"hush-type","hush":"hush"}`,
		} {
			c.ask(doc)
		}
		c.send(`{"t":"publish","room":"chat:hush-none","event":"hush-event","data":"hush-data"}`)
		c.until("error")
		if err := c.conn.Send([]byte(`{"t":"ping","hush":"hush","hush":"hush"}`)); err != nil { // malformed in both codecs
			t.Fatal(err)
		}
		for err := error(nil); err == nil; {
			var end *memory.CloseError
			if _, err = c.conn.Recv(t.Context()); errors.As(err, &end) && strings.Contains(end.Reason, hush) {
				t.Errorf("a close tells: %v", end)
			}
		}
	}
	for _, token := range []string{"hush-wrong", "hush-broken", "hush-panic"} {
		c := dial(t, e, codec.JSON, memory.Options{})
		c.send(fmt.Sprintf(`{"t":"hello","token":%q}`, token))
		c.closed()
		c.conn.Cut()
	}

	// Over HTTP, on both listeners.
	public := httptest.NewUnstartedServer(e.Handler())
	public.Config.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
	public.Start()
	defer public.Close()
	internal := httptest.NewServer(e.InternalHandler())
	defer internal.Close()
	// A redirect is a page too.
	direct := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, tt := range []struct{ method, path, token, body string }{
		{"GET", "/v1/ws?token=hush-token", "", ""},
		{"GET", "/v1/ws?hush=%zz", "hush-wrong", ""},
		{"GET", "/v1/ws", "hush-wrong", ""},
		{"GET", "/hush?token=hush-token", "", ""},
		{"GET", "/v1//ws?x=hush", "", ""},
		{"GET", "/v1/../hush/../v1/ws?x=hush", "", ""},
		{"PUT", "/v1/negotiate?x=hush", "", ""},
		{"GET", "/v1/negotiate?x=hush", "", ""},
		{"POST", "/v1/rooms/chat:hush-room/publish?x=hush", "hush-token", `{"event":"hush-event","data":"hush"}`},
		{"POST", "/v1/rooms/chat:hush-room/publish", "hush-token", `{"event":"hush-panic","data":"hush"}`},
		{"POST", "/v1/rooms/chat:hush-room/publish", "hush-broken", `{"event":"hush-event","data":"hush"}`},
		{"POST", "/v1/rooms/chat:hush-room/publish", "hush-panic", `{"event":"hush-event","data":"hush"}`},
		{"POST", "/v1/rooms/chat:hush-room/publish", "hush-wrong", `{"event":"hush-event","data":"hush"}`},
		{"POST", "/v1/rooms/chat:hush-room/publish", "hush-token", `{"event":"hush-event","data":hush}`},
		{"POST", "/v1/rooms/hush%20room/publish", "hush-token", `{"event":"hush-event","data":"hush"}`},
		{"POST", "/v1/rooms/chat:hush-room/commands/hush-command", "hush-token", `{"data":"hush"}`},
		{"GET", "/v1/rooms/chat:hush-room/history?hush=hush&limit=0", "hush-token", ""},
		{"GET", "/v1/rooms/chat:hush-room/presence?token=hush", "hush-token", ""},
		{"GET", "internal/hush?x=hush", "", ""},
		{"GET", "internal/readyz?x=hush", "", ""},
		{"GET", "internal//readyz?x=hush", "", ""},
		{"POST", "internal/healthz?x=hush", "", "hush"},
		{"GET", "internal/debug/pprof/hush?x=hush", "", ""},
	} {
		base := public.URL
		path, inside := strings.CutPrefix(tt.path, "internal")
		if inside {
			base = internal.URL
		}
		r, err := http.NewRequest(tt.method, base+path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Cookie", "session=hush-cookie")
		resp, err := direct.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode >= 300 && (bytes.Contains(page, []byte(hush)) || strings.Contains(fmt.Sprint(resp.Header), hush)) {
			t.Errorf("%s %s: %d %v\n%s", tt.method, tt.path, resp.StatusCode, resp.Header, page)
		}
	}

	// What operators see.
	for k := range (&scraper{t, reader}).scrape() {
		if strings.Contains(k, hush) {
			t.Errorf("a metric tells: %s", k)
		}
	}
	if all := spans.GetSpans(); len(all) < 10 {
		t.Errorf("%d spans", len(all))
	} else if text := fmt.Sprintf("%+v", all); strings.Contains(text, hush) {
		t.Errorf("a span tells: %s", text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Error(err)
	}
	lines := logged.lines()
	if len(lines) < 10 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if strings.Contains(line, hush) {
			t.Errorf("a line tells: %s", line)
		}
	}
}
