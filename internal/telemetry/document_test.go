package telemetry

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

func TestDocumentIsCurrent(t *testing.T) {
	const file = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(file, []byte(Document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Document() {
		t.Error("docs/metrics.md is not what the table says: go test ./internal/telemetry -update")
	}
}

var name = regexp.MustCompile(`^(pulse|ws\.broker)(\.[a-z][a-z_]*)+$`)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range All() {
		switch p := i.Prometheus(); {
		case !name.MatchString(i.Name):
			t.Errorf("%s: no name of an instrument", i.Name)
		case seen[p]:
			t.Errorf("%s is there twice", p)
		case i.Doc == "":
			t.Errorf("%s says nothing", i.Name)
		case (i.Kind == Histogram) != (i.Buckets != nil):
			t.Errorf("%s: buckets are for histograms", i.Name)
		case !slices.IsSorted(i.Buckets):
			t.Errorf("%s: buckets rise", i.Name)
		}
		seen[i.Prometheus()] = true
	}
}

func TestPrometheusNames(t *testing.T) {
	for want, i := range map[string]*Instrument{
		"pulse_connections":         &Connections,
		"pulse_queue_delay_seconds": &QueueDelay,
		"pulse_ledger_bytes":        &Ledger,
		"pulse_outcomes_total":      &Outcomes,
		"pulse_sent_bytes_total":    &Sent,
		"ws_broker_publishes_total": &BrokerPublishes,
	} {
		if got := i.Prometheus(); got != want {
			t.Errorf("%s: %s, want %s", i.Name, got, want)
		}
	}
}
