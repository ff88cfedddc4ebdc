package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// list reads every package of the module.
func list(t *testing.T) []Package {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", Module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []Package
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, Package{p.ImportPath, p.Imports, slices.Concat(p.TestImports, p.XTestImports)})
	}
}

func TestImportRulesHold(t *testing.T) {
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("only %d packages were found", len(packages))
	}
	for _, line := range Check(packages) {
		t.Error(line)
	}
}

// A package graph made up for the purpose breaks each rule once.
func TestEachRuleCanBeBroken(t *testing.T) {
	own := func(folder string) string { return Module + "/" + folder }
	tests := []struct {
		rule    string
		from    string
		to      string
		inTests bool
		broken  bool
	}{
		{rule: "a leaf imports nothing of the module", from: "codec", to: own("backpressure"), broken: true},
		{rule: "scheduler is a leaf", from: "scheduler", to: own("backpressure"), broken: true},
		{rule: "backpressure is a leaf", from: "backpressure", to: own("codec"), broken: true},
		{rule: "auth is a leaf", from: "auth", to: own("codec"), broken: true},
		{rule: "transport never imports actors", from: "transport/ws", to: own("actors/message"), broken: true},
		{rule: "transport imports codec", from: "transport/ws", to: own("codec")},
		{rule: "transport imports its own folders", from: "transport/ws", to: own("transport")},
		{rule: "bridge never imports transport", from: "bridge/memory", to: own("transport"), broken: true},
		{rule: "actors never import each other", from: "actors/session", to: own("actors/room"), broken: true},
		{rule: "the other way round neither", from: "actors/room", to: own("actors/session"), broken: true},
		{rule: "nor tenant its children", from: "actors/tenant", to: own("actors/room"), broken: true},
		{rule: "the vocabulary of actors", from: "actors/session", to: own("actors")},
		{rule: "the vocabulary does not know the actors", from: "actors", to: own("actors/room"), broken: true},
		{rule: "a mailbox knows no message", from: "actors/mailbox", to: own("actors/message"), broken: true},
		{rule: "supervision knows nobody", from: "actors/supervision", to: own("actors"), broken: true},
		{rule: "nor the messages", from: "actors", to: own("actors/message"), broken: true},
		{rule: "messages cross", from: "actors/session", to: own("actors/message")},
		{rule: "session reads the bridge", from: "actors/session", to: own("bridge")},
		{rule: "session does not know the bridge of one node", from: "actors/session", to: own("bridge/memory"), broken: true},
		{rule: "room does not know transport", from: "actors/room", to: own("transport"), broken: true},
		{rule: "nothing below imports engine", from: "actors/tenant", to: own("engine"), broken: true},
		{rule: "engine imports all below", from: "engine", to: own("actors/tenant")},
		{rule: "engine does not import the program", from: "engine", to: own("cmd/pulse-node"), broken: true},
		{rule: "the program builds on the engine", from: "cmd/pulse-node", to: own("engine")},
		{rule: "and on the client", from: "cmd/pulse-node", to: own("client")},
		{rule: "and not on its insides", from: "cmd/pulse-node", to: own("actors/session"), broken: true},
		{rule: "nor on the scheduler", from: "cmd/pulse-node", to: own("scheduler"), broken: true},
		{rule: "the client knows the wire", from: "client", to: own("codec")},
		{rule: "the client knows nothing of the server", from: "client", to: own("backpressure"), broken: true},
		{rule: "the server knows nothing of the client", from: "engine", to: own("client"), broken: true},
		{rule: "a name that only starts alike is another folder", from: "codec", to: own("codecs"), broken: true},
		{rule: "a folder without a rule", from: "helpers", to: "fmt", broken: true},

		{rule: "protoactor under actors", from: "actors/mailbox", to: "github.com/asynkron/protoactor-go/actor"},
		{rule: "protoactor nowhere else", from: "engine", to: "github.com/asynkron/protoactor-go/actor", broken: true},
		{rule: "protoactor in no other test", from: "engine", to: "github.com/asynkron/protoactor-go/actor", inTests: true, broken: true},
		{rule: "gws in transport/ws", from: "transport/ws", to: "github.com/lxzan/gws"},
		{rule: "gws nowhere else", from: "transport", to: "github.com/lxzan/gws", broken: true},
		{rule: "go-redis nowhere else", from: "bridge/memory", to: "github.com/redis/go-redis/v9", broken: true},
		{rule: "msgpack in codec", from: "codec", to: "github.com/vmihailenco/msgpack/v5"},
		{rule: "msgpack nowhere else", from: "engine", to: "github.com/vmihailenco/msgpack/v5", broken: true},
		{rule: "jwt nowhere but in auth", from: "engine", to: "github.com/golang-jwt/jwt/v5", broken: true},
		{rule: "testcontainers in tests", from: "tests/redis", to: "github.com/testcontainers/testcontainers-go", inTests: true},
		{rule: "testcontainers nowhere else", from: "bridge/redis", to: "github.com/testcontainers/testcontainers-go", inTests: true, broken: true},
		{rule: "YAML stays in the program", from: "engine", to: "go.yaml.in/yaml/v3", broken: true},
		{rule: "metrics and traces by the engine", from: "engine", to: "go.opentelemetry.io/otel/metric"},
		{rule: "and nowhere below it", from: "scheduler", to: "go.opentelemetry.io/otel/metric", broken: true},
		{rule: "who embeds the engine brings the providers", from: "engine", to: "go.opentelemetry.io/otel/sdk/metric", broken: true},
		{rule: "tests bring their own", from: "engine", to: "go.opentelemetry.io/otel/sdk/metric", inTests: true},
		{rule: "exporters in the program", from: "cmd/pulse-node", to: "go.opentelemetry.io/otel/exporters/prometheus"},
		{rule: "and not in the engine", from: "engine", to: "go.opentelemetry.io/otel/exporters/prometheus", inTests: true, broken: true},
		{rule: "Prometheus stays in the program", from: "engine", to: "github.com/prometheus/client_golang/prometheus", broken: true},
		{rule: "names of instruments where things are timed", from: "actors/mailbox", to: own("internal/telemetry")},
		{rule: "the scheduler knows of none", from: "scheduler", to: own("internal/telemetry"), broken: true},
		{rule: "the strict client in any test", from: "transport/ws", to: "github.com/coder/websocket", inTests: true},
		{rule: "the client's sockets", from: "client", to: "github.com/coder/websocket"},
		{rule: "the strict client in no other product code", from: "transport/ws", to: "github.com/coder/websocket", broken: true},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			p := Package{Path: own(tt.from)}
			if tt.inTests {
				p.TestImports = []string{tt.to}
			} else {
				p.Imports = []string{tt.to}
			}
			if broken := Check([]Package{p}); (len(broken) > 0) != tt.broken {
				t.Errorf("%s imports %s: %v", tt.from, tt.to, broken)
			}
		})
	}
}
