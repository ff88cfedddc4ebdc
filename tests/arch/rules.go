package arch

import "slices"

// Module is the path of this module.
const Module = "github.com/yaza-dev/pulse"

// layer says what the packages under one folder may import of this module
// outside tests: exact folders, or with "/..." all below one too. A folder may
// always import what lies below itself. Of several layers that fit a package the
// longest folder counts.
type layer struct {
	folder string
	may    []string
}

// public is what a program or an embedder builds on.
var public = []string{"engine/...", "actors/room", "auth", "bridge/...", "transport/...", "codec", "backpressure"}

// vocabulary is what the actors share: they know each other by messages only.
var vocabulary = []string{
	"actors", "actors/mailbox", "actors/message", "actors/supervision",
	"backpressure", "scheduler", "codec", "auth",
}

var layers = []layer{
	{"backpressure", nil},
	{"codec", nil},
	{"scheduler", nil},
	{"auth", nil},
	{"internal", nil},

	{"bridge", []string{"codec", "backpressure"}},
	{"bridge/redis", []string{"bridge", "actors/supervision", "codec", "backpressure"}},
	{"transport", []string{"codec", "backpressure"}},

	{"actors", []string{"actors/mailbox", "actors/supervision", "backpressure", "scheduler", "codec"}},
	{"actors/mailbox", []string{"backpressure", "scheduler", "codec", "internal/telemetry"}},
	{"actors/supervision", nil},
	{"actors/message", []string{"actors", "actors/mailbox", "backpressure", "scheduler", "codec", "auth", "bridge", "transport", "internal/telemetry"}},
	{"actors/session", slices.Concat(vocabulary, []string{"bridge", "transport"})},
	{"actors/room", slices.Concat(vocabulary, []string{"bridge"})},
	{"actors/tenant", slices.Concat(vocabulary, []string{"bridge"})},

	{"engine", []string{"actors/...", "scheduler", "backpressure", "codec", "bridge/...", "transport/...", "auth", "internal/..."}},

	{"client", []string{"codec"}},
	{"cmd", slices.Concat(public, []string{"client"})},
	{"examples", public},
	{"soak", slices.Concat(public, []string{"client", "tests/redis/..."})},
	{"tests", slices.Concat(public, []string{"cmd/...", "client"})},
}

// exclusive says which folders alone may import an outside module.
type exclusive struct {
	module  string
	folders []string
	// tests: tests of other folders may import it too.
	tests bool
}

// exclusives: the first that fits counts, so that parts of a module come before it.
var exclusives = []exclusive{
	{module: "github.com/asynkron/protoactor-go", folders: []string{"actors"}},
	// gws's own client is one of those that the behaviour script is run by.
	{module: "github.com/lxzan/gws", folders: []string{"transport/ws", "tests/behaviour"}},
	{module: "github.com/redis/go-redis", folders: []string{"bridge/redis"}},
	{module: "github.com/vmihailenco/msgpack", folders: []string{"codec"}},
	{module: "github.com/golang-jwt/jwt", folders: []string{"auth"}},
	{module: "github.com/testcontainers/testcontainers-go", folders: []string{"tests"}},
	{module: "github.com/spf13/cobra", folders: []string{"cmd"}},
	{module: "go.opentelemetry.io/otel/sdk", folders: []string{"cmd"}, tests: true},
	{module: "go.opentelemetry.io/otel/exporters", folders: []string{"cmd"}},
	{module: "go.opentelemetry.io/otel", folders: []string{"engine", "cmd"}},
	{module: "github.com/prometheus", folders: []string{"cmd"}},
	{module: "go.yaml.in/yaml", folders: []string{"cmd"}},
	{module: "github.com/coder/websocket", folders: []string{"client", "tests"}, tests: true},
}
