package telemetry

import (
	"fmt"
	"strings"
)

// Prometheus is the instrument's name there.
func (i *Instrument) Prometheus() string {
	name := strings.ReplaceAll(i.Name, ".", "_")
	switch i.Unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	}
	if i.Kind == Counter && !strings.HasSuffix(name, "_total") {
		name += "_total"
	}
	return name
}

// Document is docs/metrics.md.
func Document() string {
	var b strings.Builder
	b.WriteString(preface)
	for _, i := range All() {
		labels := "–"
		if len(i.Labels) > 0 {
			labels = "`" + strings.Join(i.Labels, "`, `") + "`"
		}
		doc := i.Doc
		if i.Sampled > 0 {
			doc += fmt.Sprintf(" One in %d is measured.", i.Sampled)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", i.Prometheus(), i.Kind, labels, doc)
	}
	b.WriteString(traces)
	return b.String()
}

const preface = `# Metrics, traces, logs

<!-- Made from internal/telemetry by go test ./internal/telemetry -update. -->

` + "`pulse-node` serves the metrics on `/metrics` of its internal listener. A program that embeds the engine gives it an" + `
OpenTelemetry MeterProvider and has the same instruments; without one nothing is measured and nothing is paid.

Gauges are counted from what there is at the moment of a scrape, so that they cannot drift. Times are sampled, at
random or by turns: shares and quantiles hold, and ` + "`_count`" + ` is of what was measured. No label holds what a client chose.
What is told of single tenants is told of so many as ` + "`telemetry.tenant_labels`" + ` says; a tenant keeps its label while it is
on the node.

| metric | type | labels | what |
|---|---|---|---|
`

const traces = `
# Traces

One publish in 1/` + "`telemetry.trace_ratio`" + ` is traced, by a decision at its beginning:

| span | what | child of |
|---|---|---|
| ` + "`publish`" + ` | from the request, or the call, to its answer; ` + "`room_kind`, `lane`, `outcome`" + ` | – |
| ` + "`queue`" + ` | from there until the room turns to it | ` + "`publish`" + ` |
| ` + "`handler`" + ` | the handler's decision, where there is a handler | ` + "`publish`" + ` |
| ` + "`fan-out`" + ` | giving it to the members of this node, until the last has it in its queue | ` + "`publish`" + ` |

Spans hold no names of rooms, subjects or events, and no data. The event carries the trace to the other nodes: each that
traces and has members of its room has a ` + "`fan-out`" + ` of its own, a trace by itself with a link to the ` + "`publish`" + `.

# Logs

Lines go to standard error, as JSON or text. Keys mean the same everywhere: ` + "`tenant`, `room_kind`, `session`, `cause`, `err`" + `.
Each connection has one line when it ends, at level info: ` + "`connection ended`" + ` with ` + "`cause`, `tenant`, `session`, `lasted_ms`" + `, or
` + "`connection refused`" + ` with ` + "`cause`" + ` where it never got as far as a session. Causes are those of ` + "`pulse_closes_total`" + `.

No line, at any level, holds what a client sent, a token or a query. What a program's own handlers and authenticator
return as errors is logged as it is, but for the token: they should say nothing in it that is not for the log.
`
