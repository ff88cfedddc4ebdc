package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with the file of that name in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs (go test ./cmd/pulse-node -update writes it anew):\n%s", path, text)
	}
}

// What the program says of itself, and how it exits after it.
func TestGoldenHelp(t *testing.T) {
	for _, command := range []string{"", "config", "config schema", "dev", "health", "publish", "replay", "serve", "tail", "token", "version"} {
		t.Run(command, func(t *testing.T) {
			code, out, errs := runOnce(t, nil, append(strings.Fields(command), "--help")...)
			if code != exitOK || errs != "" {
				t.Errorf("exit %d, errors %q", code, errs)
			}
			if !strings.Contains(out, "Examples:") {
				t.Error("no examples")
			}
			golden(t, strings.Join(append([]string{"help"}, strings.Fields(command)...), "_")+".txt", out)
		})
	}
}

// directories of a test's own files, which are no part of a message.
var directories = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/\S*/`)

// What wrong use is told: the whole text, and exit 2 with nothing on standard output.
func TestGoldenErrors(t *testing.T) {
	empty, token := write(t, "empty.jwt", "\n"), write(t, "alice.jwt", "x.y.z\n")
	tests := []string{
		"", "run", "srve", "--verbose", "version now",
		"serve --config /no/such.yaml", "serve pulse.yaml", "serve --lisen :1", "serve --listen",
		"dev --listen 0.0.0.0:0",
		"token --tenant t --sub s", "token --config " + os.DevNull + " --tenant t --sub s",
		"config --log.level=loud", "config schema now",
		"publish chat message 1", "publish --url ws://127.0.0.1:1 chat message 1", "publish --url ws://127.0.0.1:1 --token-file /no/such chat message 1",
		"publish --url ws://127.0.0.1:1 --token-file " + empty + " chat message 1",
		"publish --url ftp://127.0.0.1:1 --token-file " + token + " chat message 1",
		"publish --url ws://127.0.0.1:1 --token-file " + token + " chat message {",
		"publish --url ws://127.0.0.1:1 --token-file " + token + " chat message",
		"replay chat:1", "replay --config " + os.DevNull + " --tenant t", "replay --config " + os.DevNull + " --tenant t chat:1",
		"replay --config " + os.DevNull + " --tenant t a b", "replay --config " + os.DevNull + " --tenant t/u chat", "replay --config " + os.DevNull + " --tenant t chat/1",
		"replay --config " + os.DevNull + " --tenant t --limit 0 chat", "replay --config " + os.DevNull + " --tenant t --since 7 chat", "replay --limt 5 chat",
		"tail --url ws://127.0.0.1:1 --token-file " + token, "tail --url ws://127.0.0.1:1 --token-file " + token + " --since 7 chat",
		"tail --url ws://127.0.0.1:1 --token-file " + token + " --since e:7 chat news",
	}
	var text strings.Builder
	for _, args := range tests {
		code, out, errs := runOnce(t, nil, strings.Fields(args)...)
		if code != exitWrong || out != "" {
			t.Errorf("%s: exit %d, output %q", args, code, out)
		}
		fmt.Fprintf(&text, "$ pulse-node %s\n%s\n", args, errs)
	}
	golden(t, "errors.txt", directories.ReplaceAllString(text.String(), ""))
}

// A file with a typo in every second line: all of it is told at once, by line.
func TestGoldenFaults(t *testing.T) {
	file := write(t, "pulse.yaml", faulty)
	code, out, errs := runOnce(t, []string{"PULSE_TRANSPORT_PONG_TIMEOUT=8", "PULSE_PING=1s"}, "config", "--config", file, "--node.workers=many", "--nod.workers=1")
	if code != exitWrong || out != "" {
		t.Errorf("exit %d, output %q", code, out)
	}
	golden(t, "faults.txt", directories.ReplaceAllString(errs, ""))
}

const faulty = `listen: ":8080"
lisen: ":8081"
tls: { cert_file: a }
origins: [ "https://good.example", "https://bad.example/path", "*" ]
transport:
  ping: 30
  pong_timeout: 10ss
  write_timeout: -1s
  handshake_timeout: inf
  max_message_bytes: 64KB
  max_frame_bytes: 1KiB
  ping: 25s
session:
  max_rooms: 1e3
  resume_ttl: ""
  queue: 5
node: { max_sessions: 0, drain_timeout: 0s }
auth:
  jwt:
    keys: [ { alg: HS255, secret: short }, { alg: HS256, secret: short } ]
tenants: { a/b: { weight: 2 }, acme: { wieght: 2 } }
rooms:
  chat: { history: { events: 0 } }
  "no kind": {}
  game: { publish: anybody, events: { move: { delivery: at_least_once, overflow: drop_oldest } } }
log: { level: loud }
`

// What config prints can be read again, and says the same; secrets it does not say.
func TestGoldenConfig(t *testing.T) {
	file := write(t, "pulse.yaml", `
auth: { jwt: { keys: [ { alg: HS256, kid: k1, secret: `+secret+` } ], issuer: https://issuer.example } }
tenants: { acme: { weight: 4, rate: { messages: 500 } } }
rooms:
  chat: { presence: true, history: { age: 1h } }
  "*": { events: { cursor: { delivery: transient, lane: lossy, overflow: coalesce_latest, coalesce_by: session }, "*": {} } }
origins: [ https://app.example ]
transport: { ping: 90s }
`)
	code, out, errs := runOnce(t, []string{"PULSE_NODE_WORKERS=3"}, "config", "--config", file, "--log.level=debug")
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, errors %q", code, errs)
	}
	if strings.Contains(out, secret) {
		t.Error("a secret is printed")
	}
	golden(t, "config.txt", out)
	again := write(t, "again.yaml", strings.Replace(out, `"***"`, secret, 1))
	if code, text, errs := runOnce(t, nil, "config", "--config", again); code != exitOK || text != out {
		t.Errorf("read again: exit %d, errors %q, output\n%s", code, errs, text)
	}
	code, out, _ = runOnce(t, nil, "config", "schema")
	if code != exitOK {
		t.Errorf("schema: exit %d", code)
	}
	golden(t, "schema.json", out)
}
