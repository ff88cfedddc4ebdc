package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// write puts text into a file of the test's own.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t testing.TB, yaml string, environ []string, flags ...Flag) (*Config, error) {
	t.Helper()
	return Load(Sources{File: write(t, "pulse.yaml", yaml), Environ: environ, Flags: flags})
}

func mustLoad(t testing.TB, yaml string, environ []string, flags ...Flag) *Config {
	t.Helper()
	c, err := load(t, yaml, environ, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// documented returns the settings that docs/CONFIG.md shows.
func documented(t testing.TB) string {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/CONFIG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```yaml\n")
	block, _, closed := strings.Cut(block, "\n```")
	if !found || !closed {
		t.Fatal("docs/CONFIG.md has no block of settings")
	}
	return block
}

func TestDocumentedSettingsAreTheDefaults(t *testing.T) {
	defaults, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	got := mustLoad(t, documented(t), nil)
	// An empty list or map in the file is the same as none.
	got.Bridge.Redis.Addresses = nil
	got.Rooms, got.Tenants, got.Auth.JWT.Keys, got.Origins, got.TrustedProxies = nil, nil, nil, nil, nil
	if !reflect.DeepEqual(got, defaults) {
		t.Errorf("documented\n%+v\nbuilt in\n%+v", got, defaults)
	}
}

func TestEverySettingIsDocumented(t *testing.T) {
	l := &loader{config: &Config{}, file: "CONFIG.md", sources: map[string]string{}}
	node, err := document([]byte(documented(t)))
	if err != nil {
		t.Fatal(err)
	}
	l.mapping(node, reflect.ValueOf(l.config).Elem(), "")
	for _, f := range leaves(reflect.ValueOf(l.config).Elem(), "") {
		// What inherits is read after the rest.
		if _, ok := l.sources[f.path]; !ok {
			t.Errorf("docs/CONFIG.md does not show %s", f.path)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	const yaml = "transport:\n  ping: 1s\n  pong_timeout: 2s\n  write_timeout: 3s\norigins: [\"https://file\"]\n"
	c := mustLoad(t, yaml,
		[]string{"PULSE_TRANSPORT_PONG_TIMEOUT=20s", "PULSE_TRANSPORT_WRITE_TIMEOUT=30s", "PULSE_ORIGINS=https://a,https://b:8443"},
		Flag{"transport.write_timeout", "300s"}, Flag{"log.format", "json"}, Flag{"log.format", "text"})
	got := []any{c.Transport.Ping, c.Transport.PongTimeout, c.Transport.WriteTimeout, c.Log.Format, strings.Join(c.Origins, " ")}
	want := []any{time.Second, 20 * time.Second, 300 * time.Second, "text", "https://a https://b:8443"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTenantsStartFromTenantDefaults(t *testing.T) {
	const yaml = `
tenants:            # stands before what it inherits
  acme: { weight: 4 }
  plain:
tenant_defaults: { max_rooms: 7, queue_bytes: 1MiB }
`
	c := mustLoad(t, yaml, []string{"PULSE_TENANT_DEFAULTS_MAX_SESSIONS=9"}, Flag{"tenant_defaults.new_rooms", "0"})
	want := c.TenantDefaults
	if want.MaxRooms != 7 || want.MaxSessions != 9 || want.NewRooms != 0 || want.Weight != 1 {
		t.Errorf("tenant_defaults %+v", want)
	}
	if c.Tenants["plain"] != want {
		t.Errorf("plain %+v", c.Tenants["plain"])
	}
	want.Weight = 4
	if c.Tenants["acme"] != want {
		t.Errorf("acme %+v", c.Tenants["acme"])
	}
}

func TestEntriesStartFromTheDefaults(t *testing.T) {
	c := mustLoad(t, "rooms:\n  chat: { history: { events: 1 }, events: { message: {} } }\n  game:\n", nil)
	if h := c.Rooms["chat"].History; h != (History{Events: 1, Age: 5 * time.Minute, Bytes: 1 << 20}) {
		t.Errorf("history %+v", h)
	}
	if e := c.Rooms["chat"].Events["message"]; e != (Event{Delivery: "at_least_once", Lane: "interactive", Overflow: "reject"}) {
		t.Errorf("event %+v", e)
	}
	if g := c.Rooms["game"]; g.DedupWindow != 2*time.Minute || g.Publish != "members" || g.Events != nil {
		t.Errorf("a kind that says nothing: %+v", g)
	}
}

func TestAliasesStandForWhatTheyName(t *testing.T) {
	c := mustLoad(t, "rooms:\n  a: &a { linger: 1s }\n  b: *a\n", nil)
	if c.Rooms["b"].Linger != time.Second {
		t.Errorf("%+v", c.Rooms["b"])
	}
}

func TestEmptyFileIsNoFault(t *testing.T) {
	for _, yaml := range []string{"", "# nothing\n", "---\n", "tls:\nrooms:\ntenants:\norigins:\n"} {
		if _, err := load(t, yaml, nil); err != nil {
			t.Errorf("%q: %v", yaml, err)
		}
	}
}

func TestForeignVariablesAreNoFault(t *testing.T) {
	environ := []string{
		"PATH=/bin", "PULSEX=1", "pulse_listen=x",
		"PULSE_PORT=tcp://10.0.0.1:80", "PULSE_PORT_80_TCP_ADDR=10.0.0.1", "PULSE_SERVICE_HOST=10.0.0.1", "PULSE_SERVICE_PORT_HTTP=80",
		"PULSE_JWT_KEY=0123456789abcdef0123456789abcdef",
	}
	c := mustLoad(t, "auth: { jwt: { keys: [ { alg: HS256, secret_env: PULSE_JWT_KEY } ] } }", environ)
	if string(c.Auth.JWT.Keys[0].Key.Secret) != "0123456789abcdef0123456789abcdef" {
		t.Errorf("keys %+v", c.Auth.JWT.Keys)
	}
}

func TestSecretFileIsRawButForOneLineBreak(t *testing.T) {
	const raw = "0123456789abcdef\x00\xff23456789abcdef"
	for content, want := range map[string]string{
		raw: raw, raw + "\n": raw, raw + "\r\n": raw, raw + "\n\n": raw + "\n", raw + " \n": raw + " ", raw + "\r": raw + "\r",
	} {
		c := mustLoad(t, "auth: { jwt: { keys: [ { alg: HS256, secret_file: '"+write(t, "key", content)+"' } ] } }", nil)
		if got := string(c.Auth.JWT.Keys[0].Key.Secret); got != want {
			t.Errorf("%q gives %q, want %q", content, got, want)
		}
	}
}

func TestVariablesAndFlagsNameDifferentSettings(t *testing.T) {
	seen := map[string]string{}
	for _, s := range Settings() {
		if other, twice := seen[variable(s.Path)]; twice {
			t.Errorf("%s and %s have the same variable", s.Path, other)
		}
		seen[variable(s.Path)] = s.Path
		if s.Doc == "" {
			t.Errorf("%s says nothing of itself", s.Path)
		}
		if isInjected(variable(s.Path)) {
			t.Errorf("%s has a variable that Kubernetes may set", s.Path)
		}
	}
	for _, path := range []string{"listen", "internal.listen", "session.queue.bytes", "bridge.redis.outage_queue.wait", "origins"} {
		if seen[variable(path)] != path {
			t.Errorf("no setting %s", path)
		}
	}
}

// faultsOf returns the faults of err, which must be some.
func faultsOf(t *testing.T, err error) Faults {
	t.Helper()
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("no faults: %v", err)
	}
	return faults
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	_, err := load(t, "listen: nowhere\ntransport: { ping: 25, pingg: 1s }\nlog: { level: loud }\n",
		[]string{"PULSE_LOG_FORMAT=xml", "PULSE_NO_SUCH=1"}, Flag{"node.workers", "-1"}, Flag{"no.such", "1"})
	var got []string
	for _, f := range faultsOf(t, err) {
		got = append(got, f.Key+" "+regexp.MustCompile(`/.*/`).ReplaceAllString(f.Source, ""))
	}
	want := []string{
		"PULSE_NO_SUCH environment PULSE_NO_SUCH",
		"listen pulse.yaml:1",
		"log.format environment PULSE_LOG_FORMAT",
		"log.level pulse.yaml:3",
		"no.such flag --no.such",
		"node.workers flag --node.workers",
		"transport.ping pulse.yaml:2",
		"transport.pingg pulse.yaml:2",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
