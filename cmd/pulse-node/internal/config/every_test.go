package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// another is a value of a setting that is not its default, and that no other setting
// makes a fault.
func another(t *testing.T, s Setting) string {
	t.Helper()
	if value, ok := map[string]string{
		"listen": ":18080", "internal.listen": "127.0.0.1:18081", "origins": "https://a.example,https://b.example:8443", "trusted_proxies": "10.0.0.0/8",
		"auth.cookie": "pulse", "auth.jwt.jwks.url": "https://issuer.example/keys", "auth.jwt.issuer": "i", "auth.jwt.audience": "a", "auth.jwt.tenant_claim": "org",
		"transport.max_message_bytes": "32KiB", "transport.max_frame_bytes": "500KiB", "session.queue.bytes": "2MiB",
		"telemetry.otlp_endpoint": "http://127.0.0.1:4318", "telemetry.trace_ratio": "0.5",
	}[s.Path]; ok {
		return value
	}
	for _, word := range s.Words {
		if word != s.Default {
			return word
		}
	}
	switch {
	case s.Default == "true":
		return "false"
	case s.Default == "false":
		return "true"
	case strings.HasSuffix(s.Default, "B"):
		return "7MiB"
	case strings.HasSuffix(s.Default, "s") || strings.HasSuffix(s.Default, "m"):
		return "7s"
	case s.Default != "" && strings.Trim(s.Default, "0123456789.") == "":
		return "7"
	}
	return ""
}

// inFile says a setting as a file does.
func inFile(path, value string) string {
	if path == "origins" || path == "trusted_proxies" {
		value = "[" + value + "]"
	}
	keys := strings.Split(path, ".")
	var b strings.Builder
	for depth, key := range keys {
		fmt.Fprintf(&b, "%s%s:", strings.Repeat("  ", depth), key)
		if depth < len(keys)-1 {
			b.WriteString("\n")
		}
	}
	return b.String() + " " + value + "\n"
}

// single are the settings whose other values stand alone: those of Redis and TLS need
// each other, and are tried where they belong.
func single(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, s := range Settings() {
		together := strings.HasPrefix(s.Path, "bridge.redis.") || strings.HasPrefix(s.Path, "tls.") || s.Path == "deployment_key_file"
		if v := another(t, s); v != "" && !together {
			values[s.Path] = v
		} else if !together {
			t.Errorf("%s: no other value is known", s.Path)
		}
	}
	return values
}

// Every setting changes itself and nothing else, and is the same from a file, a
// variable and a flag; those of parts that are not built are faults from all three.
func TestEverySettingFromEverySource(t *testing.T) {
	base := mustLoad(t, "", nil)
	laterOn := map[string]bool{"transport.websocket": true, "transport.sse": true}
	for path, value := range single(t) {
		t.Run(path, func(t *testing.T) {
			for source, from := range map[string]func() (*Config, error){
				"file":        func() (*Config, error) { return load(t, inFile(path, value), nil) },
				"environment": func() (*Config, error) { return load(t, "", []string{variable(path) + "=" + value}) },
				"flag":        func() (*Config, error) { return load(t, "", nil, Flag{path, value}) },
			} {
				c, err := from()
				if laterOn[path] {
					if f := faultsOf(t, err); len(f) != 1 || f[0].Key != path || !strings.Contains(f[0].Problem, "not in this build") {
						t.Errorf("%s: %v", source, f)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", source, err)
					continue
				}
				if got := base.Changes(c); len(got) != 1 || got[0].Path != path {
					t.Errorf("%s: it changes %+v", source, got)
				}
			}
		})
	}
}

// Two settings that are accepted together both hold: none turns another off.
// StackExchange/StackExchange.Redis#439
func TestB155_NoSettingChangesAnother(t *testing.T) {
	base := mustLoad(t, "", nil)
	values := single(t)
	var paths []string
	for path := range values {
		if _, err := load(t, "", nil, Flag{path, values[path]}); err == nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	alone := map[string]Change{}
	for _, path := range paths {
		alone[path] = base.Changes(mustLoad(t, "", nil, Flag{path, values[path]}))[0]
	}
	for i, a := range paths {
		for _, b := range paths[i+1:] {
			c, err := Load(Sources{Flags: []Flag{{a, values[a]}, {b, values[b]}}})
			if err != nil {
				t.Errorf("%s with %s: %v", a, b, err)
				continue
			}
			got := base.Changes(c)
			if len(got) != 2 || !slices.Contains(got, alone[a]) || !slices.Contains(got, alone[b]) {
				t.Errorf("%s with %s changes %+v", a, b, got)
			}
		}
	}
}

// A bad duration is refused, and is never taken for none. grafana/metrictank#818,
// daeuniverse/honk#159, elastic/apm-agent-nodejs#2120
func TestB153_BadDurations(t *testing.T) {
	durations := map[string]bool{} // by path: zero means something
	for _, f := range everyLeaf() {
		if f.value.Type() == durationType && f.tag.Get("later") == "" && !strings.HasPrefix(f.path, "bridge.") {
			_, durations[f.path] = f.tag.Lookup("zero")
		}
	}
	for path, zero := range durations {
		for value, good := range map[string]bool{
			"30": false, "30s": true, "10ss": false, "": false, "-1s": false, "inf": false, "1e3": false, "0": false, "0s": zero,
			"1h30m": true, "9999999999h": false, " 30s": false, "NaN": false, "30S": false,
		} {
			for source, from := range map[string]func() error{
				"environment": func() error { _, err := load(t, "", []string{variable(path) + "=" + value}); return err },
				"flag":        func() error { _, err := load(t, "", nil, Flag{path, value}); return err },
				"file":        func() error { _, err := load(t, inFile(path, `"`+value+`"`), nil); return err },
			} {
				err := from()
				if good && err != nil || !good && (err == nil || !strings.HasPrefix(err.Error(), path+" (")) {
					t.Errorf("%s %s=%q: %v", source, path, value, err)
				}
			}
		}
	}
	if len(durations) < 8 {
		t.Errorf("only %d settings are durations", len(durations))
	}
}

func everyLeaf() []field { return leaves(reflect.ValueOf(&Config{}).Elem(), "") }

// What docs/CONFIG.md shows as an example of rooms is one.
func TestSampleOfRoomsLoads(t *testing.T) {
	text := strings.Replace(documented(t), "rooms: {}", "rooms:", 1)
	text = regexp.MustCompile(`(?m)^#(  .*)$`).ReplaceAllString(text, "$1")
	c := mustLoad(t, text, nil)
	if chat, ok := c.Rooms["chat"]; !ok || len(chat.Events) != 6 || chat.Events["order"].Overflow != "require_ack" {
		t.Errorf("rooms %+v", c.Rooms)
	}
}
