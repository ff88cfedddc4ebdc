package e2e

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/yaza-dev/pulse/actors/room"
)

// Tenants with names that differ in a case, a dot or an end, that are words of keys,
// of metrics and of JSON, or that look like one of them and its room.
var lookAlikes = []string{
	"acme", "Acme", "ACME", "acme.", ".acme", "acme.chat", "acme-chat", "acme_chat", "acme1", "acm", "chat", "chat.1",
	"pulse", "room", "buffer", "meta", "dedup", "presence", "session", "node", "nodes", "other", "all", "tenant",
	"null", "true", "0", "-1", "...", "-", "_", "__proto__", "constructor", "NaN", strings.Repeat("a", 63), strings.Repeat("a", 64),
}

// Names that are none: no session is of such a tenant, whoever says so.
var noTenants = []string{
	"", ".", "..", "acme:chat", "acme:", ":acme", "acme ", " acme", "acme\n", "acme\x00", "acme\\", "acme~", "~other", "acme*", "*",
	"{acme}", "acmé", "acme\u0301", "ａcme", "\u0430cme", "acme\u200b", "acme\"", strings.Repeat("a", 65),
}

// logBook has the lines of a log, one JSON object each.
type logBook struct {
	mu    sync.Mutex
	lines []map[string]any // guarded by mu
}

func (l *logBook) Write(b []byte) (int, error) {
	var line map[string]any
	err := json.Unmarshal(b, &line)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return len(b), err
}

func (l *logBook) all() []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Tenants whose names are alike have rooms, subjects, keys of repetition and
// positions of the same names, and share nothing: no event, no history, no member, no
// repetition, no session, no line of the log, no metric.
func TestTenantsOfAnyNamesNeverMeet(t *testing.T) {
	var log logBook
	reader := metric.NewManualReader()
	n := serve(t, func(s *setup) {
		s.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		s.MeterProvider, s.TenantLabels = metric.NewMeterProvider(metric.WithReader(reader)), len(lookAlikes)
		s.Kinds = append(s.Kinds, room.Kind{Name: "club", Presence: true})
	})
	rooms := []string{"club", "club:1", "club:acme", "club:acme:chat:1"}
	type member struct {
		*client
		session, resume string
	}
	members := map[string]member{}
	for i, tenant := range lookAlikes {
		c, w := enter(t, n, wires[i%2], tenant+"/same", `{"room":"club","presence":true}`, `{"room":"club:1","presence":true}`, `{"room":"club:acme"}`, `{"room":"club:acme:chat:1"}`)
		if w.text("tenant") != tenant {
			t.Fatalf("%q is told that it is %q", tenant, w.text("tenant"))
		}
		members[tenant] = member{c, w.text("session"), w.text("resume")}
	}

	for _, tenant := range lookAlikes {
		for _, r := range rooms {
			f := members[tenant].ask(`{"t":"publish","room":%q,"event":"said","data":%q,"dedup_key":"k"}`, r, tenant)
			if ok, _ := f["ok"].(map[string]any); fmt.Sprint(ok["offset"]) != "1" || ok["duplicate"] != nil {
				t.Errorf("%q in %s: %v", tenant, r, f)
			}
		}
	}
	for _, tenant := range lookAlikes {
		m := members[tenant]
		for range rooms {
			if f := m.until("event"); f["data"] != tenant {
				t.Errorf("%q got %v", tenant, f)
			}
		}
		for _, r := range rooms {
			f := m.ask(`{"t":"history","room":%q}`, r)
			events, _ := f["ok"].(map[string]any)["events"].([]any)
			if len(events) != 1 || events[0].(map[string]any)["data"] != tenant {
				t.Errorf("history of %q in %s: %v", tenant, r, f)
			}
		}
		f := m.ask(`{"t":"presence","room":"club"}`)
		if count := f["ok"].(map[string]any)["count"]; fmt.Sprint(count) != "1" {
			t.Errorf("members of %q: %v", tenant, f)
		}
		m.quiet()
	}

	want := map[string]float64{}
	for _, tenant := range lookAlikes {
		want[tenant] = 1
	}
	if got := perTenant(t, reader, "pulse.tenant.sessions"); !maps.Equal(got, want) {
		t.Errorf("sessions by tenant: %v", got)
	}
	for _, tenant := range lookAlikes {
		want[tenant] = float64(len(rooms))
	}
	if got := perTenant(t, reader, "pulse.tenant.rooms"); !maps.Equal(got, want) {
		t.Errorf("rooms by tenant: %v", got)
	}

	// A session is its tenant's, also for who has its token and the same subject.
	sessions := map[string]string{} // to tenants
	for i, tenant := range lookAlikes {
		sessions[members[tenant].session] = tenant
		thief := dial(t, n, inJSON)
		other := lookAlikes[(i+1)%len(lookAlikes)]
		thief.say(`{"t":"hello","token":%q,"resume":%q}`, other+"/thief", members[tenant].resume)
		w := thief.next()
		if w["resumed"] != false || w.text("session") == members[tenant].session || w.text("tenant") != other {
			t.Errorf("%q resumed a session of %q: %v", other, tenant, w)
		}
		sessions[w.text("session")] = other
		members[tenant].quiet()
	}
	for _, name := range noTenants {
		token, err := json.Marshal(name + "/same")
		if err != nil {
			t.Fatal(err)
		}
		nobody := dial(t, n, inJSON)
		nobody.say(`{"t":"hello","token":%s}`, token)
		if code, _ := nobody.closed(); code != 1011 { // the authenticator's fault
			t.Errorf("as tenant %q: closed %d", name, code)
		}
	}

	// What is done to one is done to no other, and said of no other.
	for _, tenant := range lookAlikes {
		members[tenant].quiet()
		if k, err := n.Disconnect(t.Context(), tenant, "same"); err != nil || k != 1 {
			t.Fatalf("%q: %d, %v", tenant, k, err)
		}
		members[tenant].closed()
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := map[string]string{}
	for _, line := range log.all() {
		if session, ok := line["session"].(string); ok && line["msg"] == "connection ended" {
			ended[session], _ = line["tenant"].(string)
		}
		if tenant, ok := line["tenant"].(string); ok && !slices.Contains(lookAlikes, tenant) {
			t.Errorf("a line of nobody: %v", line)
		}
	}
	if !maps.Equal(ended, sessions) {
		t.Errorf("the log tells of %v, there were %v", ended, sessions)
	}
}

// perTenant are the values of a gauge by tenant, of the tenants that have some.
func perTenant(t *testing.T, reader *metric.ManualReader, name string) map[string]float64 {
	t.Helper()
	var read metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &read); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, scope := range read.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			for _, p := range m.Data.(metricdata.Gauge[float64]).DataPoints {
				tenant, _ := p.Attributes.Value("tenant")
				if p.Value != 0 {
					got[tenant.AsString()] += p.Value
				}
			}
		}
	}
	return got
}
