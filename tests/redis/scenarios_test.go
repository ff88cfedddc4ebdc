package redis_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
	"github.com/yaza-dev/pulse/transport/memory"
)

// The scenarios of the source specification, in its own words, on what redis-cli would
// show; docs/conformance.md says which others are tests of their own. Its lastEventId is the
// offset here, and its readBuffer is Read.
func TestScenarios(t *testing.T) {
	s := server.Start(t)
	for i, c := range []struct {
		name string
		does func(*testing.T, *server.Server, codec.Topic)
	}{
		{"buffer cap evicts oldest on overflow", capEvictsOldest},
		{"buffer TTL expires keys", ttlExpiresKeys},
		{"readBuffer returns events with id greater than sinceEventId", readsAfterAnID},
		{"payload above threshold is gzip-compressed end-to-end", payloadIsCompressed},
		{"payload above hard cap refused with WS_BROKER_REDIS_PAYLOAD_TOO_LARGE", payloadIsRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.does(t, s, codec.Topic{Tenant: "acme", Room: fmt.Sprintf("scenario:%d", i)})
		})
	}
}

// saying is what a publisher offers, of so many bytes that compress well.
func saying(topic codec.Topic, bytes int) bridge.Publication {
	data, err := codec.MakeData(codec.JSON, []byte(`"`+strings.Repeat("x", bytes-2)+`"`))
	if err != nil {
		panic(err)
	}
	e := event(topic, fmt.Sprintf("e%d", made.Add(1)))
	return bridge.Publication{Event: codec.NewEvent(topic, e.Name, data, e.Origin), Buffered: true}
}

func buffer(topic codec.Topic) string { return "pulse:buffer:" + topic.Tenant + ":" + topic.Room }

func capEvictsOldest(t *testing.T, s *server.Server, topic codec.Topic) {
	b := node(t, s.Address())
	four := plenty
	four.Events = 4
	for range 5 {
		answer := make(chan []bridge.Published, 1)
		b.Publish(topic, four, []bridge.Publication{kept(topic)}, func(p []bridge.Published) { answer <- p })
		if got := receive(t, answer, "the answer")[0]; got.Err != nil {
			t.Fatal(got.Err)
		}
	}
	members := strings.Fields(s.Do("ZRANGE", buffer(topic), "0", "-1"))
	if len(members) != 4 {
		t.Fatalf("%d members", len(members))
	}
	for i, m := range members {
		if want := fmt.Sprintf("%d|", i+2); !strings.HasPrefix(m, want) {
			t.Errorf("member %d begins with %.8q, want %q", i, m, want)
		}
	}
}

// The key lives a minute longer than what it holds is given out, and up to its age more, so
// that not every write sets it anew. Redis itself puts the clock on.
func ttlExpiresKeys(t *testing.T, s *server.Server, topic codec.Topic) {
	b := node(t, s.Address())
	brief := plenty
	brief.Age = time.Second
	answer := make(chan []bridge.Published, 1)
	b.Publish(topic, brief, []bridge.Publication{kept(topic)}, func(p []bridge.Published) { answer <- p })
	first := receive(t, answer, "the answer")[0].Position
	if left := ttl(t, s, buffer(topic)); left <= time.Minute-5*time.Second || left > time.Minute+2*brief.Age {
		t.Fatalf("the buffer lives %v", left)
	}
	eventually(t, "the event to be too old", func() bool {
		return len(read(t, b, topic, bridge.ReadRequest{Limit: 10}).Events) == 0
	})
	s.Do("PEXPIRE", buffer(topic), "1")
	eventually(t, "the key to be gone", func() bool { return s.Do("EXISTS", buffer(topic)) == "0" })
	before := codec.Position{Epoch: first.Epoch}
	if page := since(t, b, topic, before); page.Reset != codec.ResetExpired {
		t.Errorf("since %v: %+v", before, page)
	}
	if page := since(t, b, topic, first); page.Reset != codec.ResetNone {
		t.Errorf("since %v, after which there was nothing: %+v", first, page)
	}
}

func readsAfterAnID(t *testing.T, s *server.Server, topic codec.Topic) {
	b := node(t, s.Address())
	last := fill(t, b, topic, 10)
	page := since(t, b, topic, codec.Position{Epoch: last.Epoch, Offset: 7})
	if len(page.Events) != 3 {
		t.Fatalf("%d events", len(page.Events))
	}
	for i, e := range page.Events {
		if e.Position.Offset != uint64(8+i) {
			t.Errorf("%v at place %d", e.Position, i)
		}
	}
}

func payloadIsCompressed(t *testing.T, s *server.Server, topic codec.Topic) {
	a, b := node(t, s.Address()), node(t, s.Address())
	f := follow(t, b, topic)
	small, large := saying(topic, 500), saying(topic, 2048)
	accept(t, a, topic, small, large)
	whole(t, f, 0, 2)
	for i, p := range []bridge.Publication{small, large} {
		if got := f.Log()[i].Data.Raw(); !bytes.Equal(got, p.Event.Data.Raw()) {
			t.Errorf("a subscriber has %d bytes, not the %d that were sent", len(got), p.Event.Data.Len())
		}
		member := strings.Fields(s.Do("ZRANGE", buffer(topic), fmt.Sprint(i), fmt.Sprint(i)))[0]
		_, text, _ := strings.Cut(member, "|")
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if zipped, want := bytes.Contains(raw, []byte{0x1f, 0x8b, 8}), i == 1; zipped != want {
			t.Errorf("%d bytes of data are gzip in Redis: %v", p.Event.Data.Len(), zipped)
		}
	}
}

func payloadIsRefused(t *testing.T, s *server.Server, topic codec.Topic) {
	a, b := node(t, s.Address()), node(t, s.Address())
	f := follow(t, b, topic)
	got := publish(t, a, topic, saying(topic, 5<<20))[0]
	if got.Err == nil || got.Err.Code != codec.CodeTooLarge || !strings.HasPrefix(got.Err.Message, "WS_BROKER_REDIS_PAYLOAD_TOO_LARGE") {
		t.Fatalf("%+v", got)
	}
	if s.Do("EXISTS", buffer(topic)) != "0" {
		t.Error("it is in the buffer")
	}
	fill(t, a, topic, 1)
	whole(t, f, 0, 1)
}

// The scenario "healthz reflects Redis connection state". Here liveness stays up, since
// restarting every node would help nobody: readiness tells.
func TestHealthzReflectsRedisConnectionState(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	h := newHost(t, s.Address())
	says := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.InternalHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	ready := func(status string) {
		t.Helper()
		eventually(t, "a node that is "+status, func() bool {
			code, text := says("/readyz")
			return code == http.StatusOK && strings.Contains(text, `"`+status+`"`)
		})
		if code, _ := says("/healthz"); code != http.StatusOK {
			t.Errorf("liveness is %d while it is %s", code, status)
		}
	}
	ready("ok")
	s.Stop()
	ready("degraded")
	if _, text := says("/readyz"); !strings.Contains(text, `"why"`) || !strings.Contains(text, `"since_ms"`) {
		t.Errorf("%s", text)
	}
	s.Restart()
	ready("ok")
}

// The scenario "single broker serves both WS and SSE engines", as far as there is a second
// transport: one broker serves members over WebSocket and over the memory transport alike.
func TestSingleBrokerServesEveryTransport(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	a, b := newHost(t, s.Address()), newHost(t, s.Address())
	overWS, err := dial(t, a, "ann").Join(t.Context(), client.Join{Room: "chat:1"})
	if err != nil {
		t.Fatal(err)
	}
	link := memory.Dial(b.Engine, codec.Protocols()[0], memory.Options{})
	t.Cleanup(func() { link.Cut(); <-link.Done() })
	if err := link.Send([]byte(`{"t":"hello","token":"bob","rooms":[{"room":"chat:1"}]}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := link.Recv(t.Context()); err != nil { // the welcome
		t.Fatal(err)
	}
	if err := link.Send([]byte(`{"t":"publish","id":1,"room":"chat:1","event":"message","data":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := events(t, overWS, 1)[0]; got.From != "bob" || got.Position.Offset != 1 {
		t.Errorf("over WebSocket: %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		frame, err := link.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(frame, []byte(`"event"`)) && bytes.Contains(frame, []byte(`"offset":1`)) {
			break
		}
	}
}
