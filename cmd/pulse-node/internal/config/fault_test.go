package config

import (
	"strings"
	"testing"
)

const someSecret = "0123456789abcdef0123456789abcdef"

func key(fields string) string { return "auth: { jwt: { keys: [ { " + fields + " } ] } }" }

func kind(fields string) string { return "rooms: { chat: { " + fields + " } }" }

// Every case has exactly one fault, at the named key, that says so much.
func TestFaults(t *testing.T) {
	tests := []struct {
		rule string
		yaml string
		key  string
		says string
	}{
		{"an unknown key", "listn: x", "listn", "unknown key; known here: listen, tls"},
		{"an unknown key below", "node: { worker: 1 }", "node.worker", "known here: max_sessions"},
		{"an unknown key in a map", "tenants: { acme: { wait: 1 } }", "tenants.acme.wait", "unknown key"},
		{"an unknown key in a list", key("alg: HS256, secret: " + someSecret + ", use: sig"), "auth.jwt.keys[0].use", "unknown key"},
		{"keys have their own case", "Listen: ':1'", "Listen", "unknown key"},
		{"a key twice", "listen: ':1'\nlisten: ':2'", "listen", "given twice, first in line 1"},
		{"a key twice below", "log: { level: info, level: warn }", "log.level", "given twice"},
		{"a name twice in a map", "rooms:\n  a: {}\n  a: {}", "rooms.a", "given twice"},
		{"a mapping where one value belongs", "listen: {}", "listen", "one value"},
		{"a list where one value belongs", "listen: [':1']", "listen", "one value"},
		{"nothing where one value belongs", "listen:", "listen", "one value"},
		{"one value where a mapping belongs", "tls: on", "tls", "mapping"},
		{"one value where a list belongs", "origins: https://a", "origins", "list"},
		{"a list where a map belongs", "rooms: [chat]", "rooms", "mapping"},
		{"a key that is no text", "? [a]\n: 1", "--config", "a key must be text"},

		{"a duration without unit", "transport: { ping: 25 }", "transport.ping", `"25" must be a duration with its unit`},
		{"a duration of zero without unit", "auth: { jwt: { leeway: 0 } }", "auth.jwt.leeway", "unit"},
		{"a duration of zero that means nothing", "transport: { ping: 0s }", "transport.ping", "above zero"},
		{"a negative duration", "transport: { ping: -1s }", "transport.ping", "not negative"},
		{"an endless duration", "transport: { ping: .inf }", "transport.ping", "duration"},
		{"a duration that overflows", "transport: { ping: 9999999h }", "transport.ping", "duration"},
		{"an empty duration", "transport: { ping: '' }", "transport.ping", "duration"},
		{"a size without unit", "transport: { max_message_bytes: 65536 }", "transport.max_message_bytes", `"65536" must be a size with its unit`},
		{"a size of zero without unit", "tenant_defaults: { rate: { bytes: 0 } }", "tenant_defaults.rate.bytes", "unit"},
		{"a size of zero that means nothing", "node: { queue_bytes: 0B }", "node.queue_bytes", "above zero"},
		{"a size in decimal units", "node: { queue_bytes: 1GB }", "node.queue_bytes", "KiB, MiB, GiB"},
		{"a size with a fraction", "node: { queue_bytes: 1.5GiB }", "node.queue_bytes", "size"},
		{"a size with a space", "node: { queue_bytes: 1 GiB }", "node.queue_bytes", "size"},
		{"a size with a sign", "node: { queue_bytes: +1GiB }", "node.queue_bytes", "size"},
		{"a negative size", "node: { queue_bytes: -1GiB }", "node.queue_bytes", "size"},
		{"a size that overflows", "node: { queue_bytes: 9223372036854775807GiB }", "node.queue_bytes", "size"},
		{"a count that is negative", "node: { workers: -1 }", "node.workers", "zero or above"},
		{"a count with a fraction", "node: { workers: 1.0 }", "node.workers", "whole number"},
		{"a count that overflows", "node: { workers: 99999999999999999999 }", "node.workers", "whole number"},
		{"a count of zero that means nothing", "node: { max_sessions: 0 }", "node.max_sessions", "above zero"},
		{"a switch that is neither", "allow_missing_origin: yes", "allow_missing_origin", "true or false"},
		{"a word that is none", "log: { level: trace }", "log.level", "debug, info, warn, error"},

		{"a list where the file's mapping belongs", "- listen", "--config", "mapping"},
		{"half of tls", "tls: { cert_file: a.pem }", "tls", "both cert_file and key_file"},
		{"a certificate that is not there", "tls: { cert_file: /nowhere/a.pem, key_file: /nowhere/b.pem }", "tls", "/nowhere/a.pem: no such file"},
		{"a certificate that is none", "tls: { cert_file: $KEYS, key_file: $KEYS }", "tls", "PEM"},
		{"an address without port", "listen: localhost", "listen", "host:port"},
		{"a port out of range", "listen: ':65536'", "listen", "0 to 65535"},
		{"a port by name", "listen: ':http'", "listen", "0 to 65535"},
		{"equal listeners", "internal: { listen: '0.0.0.0:8080' }", "internal.listen", "another address"},
		{"origins of a domain", "origins: ['https://*.example.com']", "origins[0]", "exactly"},
		{"any origin", "origins: ['*']", "origins[0]", "dev only"},
		{"an origin with a path", "origins: ['https://a/']", "origins[0]", "scheme://host"},
		{"an origin of another scheme", "origins: ['ftp://a']", "origins[0]", "scheme://host"},
		{"an origin without a scheme", "origins: ['a.example.com']", "origins[0]", "scheme://host"},
		{"an origin with a pattern", "origins: ['https://ok', 'https://*.a:x']", "origins[1]", "scheme://host"},
		{"an origin in letters that browsers do not send", "origins: ['https://bücher.example']", "origins[0]", "scheme://host"},
		{"the null origin", "origins: ['null']", "origins[0]", "scheme://host"},
		{"a tenant that is no name", "tenants: { 'a b': {} }", "tenants.a b", "must be a tenant"},
		{"a cookie that is no name", "auth: { cookie: 'a b' }", "auth.cookie", "name of a cookie"},
		{"a key set at no URL", "auth: { jwt: { jwks: { url: keys } } }", "auth.jwt.jwks.url", "https://host/path"},
		{"a key set in the clear", "auth: { jwt: { jwks: { url: 'http://issuer.example/keys' } } }", "auth.jwt.jwks.url", "takes https"},
		{"a key set that is never fetched again", "auth: { jwt: { jwks: { refresh: 0s } } }", "auth.jwt.jwks.refresh", "above zero"},
		{"a proxy that is no CIDR", "trusted_proxies: [10.0.0.0/8, 10.0.0.1]", "trusted_proxies[1]", "must be a CIDR"},
		{"a proxy mapped into IPv6", "trusted_proxies: ['::ffff:10.0.0.0/104']", "trusted_proxies[0]", "must be a CIDR"},
		{"a threshold of nothing", "transport: { compression: { threshold: 0B } }", "transport.compression.threshold", "above zero"},
		{"a rate without its unit", "tenants: { acme: { session_rate: { bytes: 1 } } }", "tenants.acme.session_rate.bytes", "unit"},
		{"a deployment key file that is not there", "deployment_key_file: /no/such/file", "deployment_key_file", "open /no/such/file"},
		{"no tenant claim", "auth: { jwt: { tenant_claim: '' } }", "auth.jwt.tenant_claim", "must name a claim"},

		{"a key without alg", key("secret: " + someSecret), "auth.jwt.keys[0].alg", "HS256"},
		{"a key of an unknown alg", key("alg: none, secret: " + someSecret), "auth.jwt.keys[0].alg", "HS256"},
		{"a key without secret", key("alg: HS256"), "auth.jwt.keys[0]", "exactly one of"},
		{"a secret for a public algorithm", key("alg: EdDSA, secret: " + someSecret), "auth.jwt.keys[0]", "no PEM"},
		{"a public key for HS256", key("alg: HS256, public_key_file: f"), "auth.jwt.keys[0]", "HS256 takes a secret"},
		{"a key file that is not there", key("alg: RS256, public_key_file: /no/such/file"), "auth.jwt.keys[0]", "public_key_file: open /no/such/file"},
		{"a public key beside a secret", key("alg: ES256, public_key_file: f, secret_env: E"), "auth.jwt.keys[0]", "exactly one of"},
		{"two sources of one secret", key("alg: HS256, secret_file: f, secret_env: E"), "auth.jwt.keys[0]", "exactly one of"},
		{"a secret of 31 bytes", key("alg: HS256, secret: " + someSecret[1:]), "auth.jwt.keys[0]", "at least 32 bytes, this one has 31"},
		{"a secret file that is not there", key("alg: HS256, secret_file: /no/such/file"), "auth.jwt.keys[0]", "no such file"},
		{"a secret variable that is not set", key("alg: HS256, secret_env: NO_SUCH"), "auth.jwt.keys[0]", "NO_SUCH is not set"},

		{"a frame too small for a message", "transport: { max_frame_bytes: 387KiB }", "transport.max_frame_bytes", "six times"},
		{"a message too large for a frame", "transport: { max_message_bytes: 1MiB }\nrooms: {}", "transport.max_frame_bytes", "six times"},
		{"a queue too small for a frame", "session: { queue: { bytes: 575KiB } }", "session.queue.bytes", "64KiB"},
		{"a history too small for a message", kind("history: { bytes: 63KiB }"), "rooms.chat.history.bytes", "max_message_bytes"},
		{"a kind that is no name", "rooms: { 'a:b': {} }", "rooms.a:b", "name of a kind"},
		{"an event that is no name", kind("events: { 'a b': {} }"), "rooms.chat.events.a b", "name of an event"},
		{"buffered events in two lanes", kind("events: { a: {}, b: { lane: bulk } }"), "rooms.chat.events.b", "another lane"},
		{"a history of 0 with a buffered event", kind("history: { events: 0 }, events: { a: {} }"), "rooms.chat.events.a", "needs a history"},
		{"a history of 0 and no events", kind("history: { events: 0 }"), "rooms.chat.events.*", "needs a history"},
		{"require_ack on what is not kept", kind("events: { a: { delivery: transient, overflow: require_ack } }"), "rooms.chat.events.a", "require_ack"},
		{"drop_oldest on a buffered event", kind("events: { a: { overflow: drop_oldest } }"), "rooms.chat.events.a", "buffered"},
		{"coalesce_latest on a buffered event", kind("events: { a: { overflow: coalesce_latest, coalesce_by: event } }"), "rooms.chat.events.a", "buffered"},
		{"coalesce_latest by nothing", kind("events: { a: { delivery: transient, overflow: coalesce_latest } }"), "rooms.chat.events.a", "coalesce_by"},
		{"the control lane", kind("events: { a: { lane: control } }"), "rooms.chat.events.a.lane", "interactive, bulk, lossy"},

		{"Redis without a deployment key", "bridge: { redis: { addresses: ['127.0.0.1:6379'] } }", "deployment_key_file", "every node"},
		{"an address that is none", "deployment_key_file: $KEYS\nbridge: { redis: { addresses: ['127.0.0.1'] } }", "bridge.redis.addresses[0]", "host:port"},
		{"a port of Redis that is none", "deployment_key_file: $KEYS\nbridge: { redis: { addresses: ['127.0.0.1:99999'] } }", "bridge.redis.addresses[0]", "host:port"},
		{"two servers that stand alone", "deployment_key_file: $KEYS\nbridge: { redis: { addresses: ['127.0.0.1:6379', '127.0.0.1:6380'] } }", "bridge.redis.addresses", "one"},
		{"sentinel without a name", "deployment_key_file: $KEYS\nbridge: { redis: { addresses: ['127.0.0.1:6379'], mode: sentinel } }", "bridge.redis.master_name", "sentinel"},
		{"a name without sentinel", "deployment_key_file: $KEYS\nbridge: { redis: { addresses: ['127.0.0.1:6379'], master_name: m } }", "bridge.redis.master_name", "sentinel"},
		{"a prefix that is a hash tag", "bridge: { redis: { key_prefix: 'p{1}:' } }", "bridge.redis.key_prefix", "'{'"},
		{"a channel prefix that is a hash tag", "bridge: { redis: { channel_prefix: '}' } }", "bridge.redis.channel_prefix", "'{'"},
		{"a password that cannot be read", "deployment_key_file: $KEYS\nbridge: { redis: { addresses: ['127.0.0.1:6379'], password_file: /nowhere } }", "bridge.redis.password_file", "no such file"},
		{"a payload over the cap", "bridge: { redis: { payload_max: 5MiB } }", "bridge.redis.payload_max", "4MiB"},
		{"API keys", "internal: { api_keys: [ { name: a } ] }", "internal.api_keys", "not in this build"},
		{"without WebSocket", "transport: { websocket: false }", "transport.websocket", "not in this build"},
		{"no limit of presence", kind("presence_limit: 0"), "rooms.chat.presence_limit", "0"},
		{"a lease that is too short", "node: { lease: 1s }", "node.lease", "3s"},
	}
	deployment := write(t, "keys", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n")
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			_, err := load(t, strings.ReplaceAll(tt.yaml, "$KEYS", deployment), nil)
			faults := faultsOf(t, err)
			if len(faults) != 1 || faults[0].Key != tt.key || !strings.Contains(faults[0].Problem, tt.says) {
				t.Errorf("%v\nwant one at %q that says %q", err, tt.key, tt.says)
			}
			if !strings.Contains(faults[0].Source, "pulse.yaml:") && faults[0].Source != "default" {
				t.Errorf("source %q", faults[0].Source)
			}
		})
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	for name, file := range map[string]string{
		"not there": "/no/such/file.yaml",
		"no YAML":   write(t, "a.yaml", "a: [1"),
		"two":       write(t, "b.yaml", "listen: ':1'\n---\nlisten: ':2'\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(Sources{File: file, Environ: []string{"PULSE_X=1"}})
			faults := faultsOf(t, err)
			if len(faults) != 2 || faults[0].Key != "--config" || faults[0].Source != file {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestMapsAndListsOfObjectsLiveInTheFileOnly(t *testing.T) {
	_, err := Load(Sources{
		Environ: []string{"PULSE_TENANTS=x", "PULSE_ROOMS=x", "PULSE_AUTH_JWT_KEYS=x", "PULSE_INTERNAL_API_KEYS="},
		Flags:   []Flag{{"tenants", "x"}},
	})
	faults := faultsOf(t, err)
	if len(faults) != 5 {
		t.Errorf("%v", err)
	}
	for _, f := range faults {
		if !strings.Contains(f.Problem, "in the file") {
			t.Errorf("%v", f)
		}
	}
}

func TestSourceOfAGroupIsThatOfItsPart(t *testing.T) {
	_, err := Load(Sources{Environ: []string{"PULSE_TLS_KEY_FILE=key.pem"}})
	if faults := faultsOf(t, err); len(faults) != 1 || faults[0].Source != "environment PULSE_TLS_KEY_FILE" {
		t.Errorf("%v", err)
	}
}

func TestTwoKeysWithOneKid(t *testing.T) {
	one := "{ alg: HS256, kid: a, secret: " + someSecret + " }"
	_, err := load(t, "auth: { jwt: { keys: [ "+one+", "+one+" ] } }", nil)
	if faults := faultsOf(t, err); len(faults) != 1 || faults[0].Key != "auth.jwt.keys[1].kid" {
		t.Errorf("%v", err)
	}
}

func TestFaultsNeverShowASecret(t *testing.T) {
	_, err := load(t, key("alg: HS256, secret: hush-hush, secret_env: E"), []string{"PULSE_AUTH_JWT_KEYS=hush-hush", "E=hush-hush", "PULSE_SECRET=hush-hush"},
		Flag{"auth.jwt.keys.secret", "hush-hush"})
	if len(faultsOf(t, err)) < 4 || strings.Contains(err.Error(), "hush-hush") {
		t.Errorf("%v", err)
	}
}

func TestZeroIsTakenWhereItMeansSomething(t *testing.T) {
	c := mustLoad(t, "auth: { jwt: { leeway: 0s } }\nnode: { workers: 0 }\ntenant_defaults: { new_rooms: 0 }\n"+
		"rooms: { a: { dedup_window: 0s, history: { events: 0 }, events: { '*': { delivery: transient } } } }", nil)
	if k := c.Rooms["a"].Kind("a"); !k.NoHistory || k.DedupWindow >= 0 {
		t.Errorf("%+v", k)
	}
	if c.Auth.JWT.Leeway != 0 {
		t.Errorf("leeway %v", c.Auth.JWT.Leeway)
	}
}

// FuzzLoad: no file makes Load panic, and one that loads has no half-read key.
func FuzzLoad(f *testing.F) {
	f.Add(documented(f))
	f.Add(kind("history: { events: 0 }"))
	f.Add("a: &a [*a]")
	f.Add("rooms: &a { chat: *a }")
	f.Add("? [a]\n: 1")
	f.Fuzz(func(t *testing.T, yaml string) {
		c, err := load(t, yaml, nil)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v, %v", c, err)
		}
	})
}

// grafana-cold-storage/metrictank#818, daeuniverse/honk#159,
// elastic/apm-agent-nodejs#2120: a duration that cannot be read became 0.
func TestB153_DurationThatCannotBeReadNamesItsKey(t *testing.T) {
	for _, text := range []string{"30", "10ss", "", "-1s", "inf", "1e3", "0", "0s", "NaN", " 30s"} {
		_, err := Load(Sources{Environ: []string{"PULSE_TRANSPORT_PING=" + text}})
		if faults := faultsOf(t, err); len(faults) != 1 || faults[0].Key != "transport.ping" || faults[0].Source != "environment PULSE_TRANSPORT_PING" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Load(Sources{Environ: []string{"PULSE_TRANSPORT_PING=30s"}}); err != nil {
		t.Error(err)
	}
}
