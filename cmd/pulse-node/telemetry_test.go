package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// publishing runs a node and publishes to a room of it, over HTTP.
func publishing(t *testing.T, flags ...string) (n *running, publish func()) {
	t.Helper()
	file := write(t, "pulse.yaml", keys)
	code, token, errs := runOnce(t, nil, "token", "--config", file, "--tenant", "acme", "--sub", "alice", "--rooms", "chat:*")
	if code != exitOK {
		t.Fatal(errs)
	}
	n = start(t, append([]string{"serve", "--config", file, "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0"}, flags...)...)
	return n, func() {
		t.Helper()
		r, _ := http.NewRequest(http.MethodPost, n.public+"/v1/rooms/chat:1/publish", strings.NewReader(`{"event":"message","data":1}`))
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
	}
}

var metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|")

// What /metrics says is read by Prometheus's own parser, and has the names, types and
// labels of docs/metrics.md.
func TestMetricsAreWhatTheirReferenceSays(t *testing.T) {
	n, publish := publishing(t)
	for range 200 { // enough for each time that is sampled but those of handlers and clients
		publish()
	}
	status, text := get(t, n.internal+"/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if status != http.StatusOK || err != nil {
		t.Fatal(status, err)
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := metricRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 30 {
		t.Fatalf("only %d rows", len(rows))
	}
	seldom := map[string]bool{ // has no value in a run without handlers, clients and overflow
		"pulse_handler_seconds": true, "pulse_write_seconds": true, "pulse_overflow_total": true,
	}
	known := map[string]bool{}
	for _, row := range rows {
		name, kind, labels := row[1], row[2], row[3]
		known[name] = true
		f := families[name]
		if f == nil {
			if !seldom[name] {
				t.Errorf("%s is missing", name)
			}
			continue
		}
		if got := strings.ToLower(f.GetType().String()); got != kind {
			t.Errorf("%s is a %s, not a %s", name, got, kind)
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if !strings.Contains(labels, "`"+l.GetName()+"`") {
					t.Errorf("%s has the label %s", name, l.GetName())
				}
			}
		}
	}
	for name := range families {
		if !known[name] && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s stands nowhere", name)
		}
	}
	if v := families["pulse_outcomes_total"].Metric[0].Counter.GetValue(); v != 200 {
		t.Errorf("%v publishes", v)
	}
	if !strings.Contains(text, `pulse_build_info{go="go1.`) || !strings.Contains(text, `version="`+version+`"`) {
		t.Error("nothing tells the build")
	}
}

func TestWhatIsForOperatorsIsOnTheInternalListener(t *testing.T) {
	n, _ := publishing(t)
	for path, want := range map[string]int{
		"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/goroutine?debug=1": 200, "/healthz": 200, "/readyz": 200,
		"/debug/pprof/cmdline": 404, // flags may hold secrets
	} {
		if status, _ := get(t, n.internal+path); status != want {
			t.Errorf("%s inside: %d", path, status)
		}
		if status, _ := get(t, n.public+path); status != http.StatusNotFound {
			t.Errorf("%s outside: %d", path, status)
		}
	}
}

// Traces go to the collector that is named, all by the end of the node; without one,
// or without a share, there are none.
func TestTracesGoToTheCollector(t *testing.T) {
	for _, tt := range []struct {
		ratio string
		path  string
		want  string // where they came; empty: none did
	}{
		{"1", "", "/v1/traces"},
		{"1", "/own", "/own"},
		{"0", "", ""},
	} {
		came := make(chan string, 100)
		bodies := make(chan []byte, 100)
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			came <- r.URL.Path
			bodies <- body
		}))
		n, publish := publishing(t, "--telemetry.otlp_endpoint="+collector.URL+tt.path, "--telemetry.trace_ratio="+tt.ratio)
		publish()
		if code := n.end(); code != exitOK {
			t.Errorf("exit %d", code)
		}
		collector.Close()
		switch path, body := "", []byte(nil); {
		case tt.want == "" && len(came) > 0:
			t.Errorf("ratio %s: something came to %s", tt.ratio, <-came)
		case tt.want == "":
		case len(came) == 0:
			t.Errorf("ratio %s: nothing came", tt.ratio)
		default:
			if path, body = <-came, <-bodies; path != tt.want || !bytes.Contains(body, []byte("publish")) || !bytes.Contains(body, []byte("queue")) {
				t.Errorf("%q came to %s", body, path)
			}
		}
	}
}

// A collector that is away is told of once, and when it is back.
func TestCollectorThatIsAway(t *testing.T) {
	var log bytes.Buffer
	exporter := &failing{InMemoryExporter: tracetest.NewInMemoryExporter()}
	c := &collector{SpanExporter: exporter, log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, away := range []bool{false, true, true, true, false, false} {
		exporter.away = away
		if err := c.ExportSpans(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	if lines := strings.Split(strings.TrimSpace(log.String()), "\n"); len(lines) != 2 ||
		!strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[1], "again") {
		t.Errorf("%q", lines)
	}
}

type failing struct {
	*tracetest.InMemoryExporter
	away bool
}

func (f *failing) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	if f.away {
		return errors.New("away")
	}
	return f.InMemoryExporter.ExportSpans(ctx, spans)
}
