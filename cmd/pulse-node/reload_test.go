package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

// hup has the node read its configuration again, as text, and returns what it logs
// of that.
func (n *running) hup(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	before := len(n.logs.String())
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(10 * time.Second); time.Now().Before(late); time.Sleep(time.Millisecond) {
		if said := n.logs.String()[before:]; strings.Contains(said, "configuration reloaded") || strings.Contains(said, "not reloaded") {
			return said
		}
	}
	t.Fatalf("nothing was said of a reload: %s", n.logs)
	return ""
}

// logged tells whether a line of JSON in logs has all of these pairs.
func logged(logs, message string, pairs ...string) bool {
	for line := range strings.Lines(logs) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) != nil || entry["msg"] != message {
			continue
		}
		has := true
		for i := 0; i < len(pairs); i += 2 {
			has = has && fmt.Sprint(entry[pairs[i]]) == pairs[i+1]
		}
		if has {
			return true
		}
	}
	return false
}

// Each setting that a running node can take over changes what it says, from the next
// request on, and back again.
func TestReloadChangesWhatIsLive(t *testing.T) {
	const other = "fedcba9876543210fedcba9876543210"
	base := "listen: 127.0.0.1:0\ninternal: { listen: 127.0.0.1:0 }\n" + roomy
	asked := func(f *fixture, origin string) string {
		r, err := http.NewRequestWithContext(t.Context(), "GET", f.public+"/v1/negotiate", nil)
		if err != nil {
			t.Fatal(err)
		}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.Status
	}
	welcome := func(f *fixture, file string) string {
		frame, closed := hello(t, f.public, read(t, file), nil)
		if closed != 0 {
			return fmt.Sprint(int(closed))
		}
		return fmt.Sprint(frame["t"])
	}
	for _, tt := range []struct {
		setting, from, to string // replaced in the file
		try               func(*fixture) string
		before, after     string
	}{
		{"tenants.acme", "\nrooms", "\ntenants: { acme: { max_sessions: 1 } }\nrooms", func(f *fixture) string {
			held := tails(t, "--url", f.public, "--token-file", f.token, "open")
			held.until(t, "welcome")
			defer held.end()
			return welcome(f, f.token)
		}, "welcome", "4529"},
		{"tenant_defaults.max_sessions", "\nrooms", "\ntenant_defaults: { max_sessions: 1 }\nrooms", func(f *fixture) string {
			held := tails(t, "--url", f.public, "--token-file", f.token, "open")
			held.until(t, "welcome")
			defer held.end()
			return welcome(f, f.token)
		}, "welcome", "4529"},
		{"rooms.open.publish", "publish: grant", "publish: server", func(f *fixture) string {
			code, _ := f.publish(t, "open", "message", "1")
			return fmt.Sprint("exit ", code)
		}, "exit 0", "exit 1"},
		{"rooms.extra", "open: {", "extra: {}, open: {", func(f *fixture) string {
			code, _ := f.publish(t, "extra:1", "message", "1")
			return fmt.Sprint("exit ", code)
		}, "exit 1", "exit 0"},
		{"auth.jwt.keys", secret, other, func(f *fixture) string { return welcome(f, f.token) }, "welcome", "4401"},
		{"auth.jwt.audience", "audience: a", "audience: b", func(f *fixture) string { return welcome(f, f.token) }, "welcome", "4401"},
		{"origins", "\nrooms", "\norigins: [ https://app.example ]\nrooms", func(f *fixture) string { return asked(f, "https://app.example") }, "403 Forbidden", "200 OK"},
		{"allow_missing_origin", "\nrooms", "\nallow_missing_origin: false\nrooms", func(f *fixture) string { return asked(f, "") }, "200 OK", "403 Forbidden"},
		{"log.level", "\nrooms", "\nlog: { level: error }\nrooms", func(f *fixture) string {
			n := &trial{running: f.running, t: t}
			before, closes := len(f.logs.String()), n.figure("pulse_closes_total{")
			welcome(f, f.token)
			// An end that is counted has been logged.
			if !soon(trialTime, func() bool { return n.figure("pulse_closes_total{") > closes }) {
				t.Fatal("the connection does not end")
			}
			return fmt.Sprint(len(f.logs.String()) > before)
		}, "true", "false"},
	} {
		t.Run(tt.setting, func(t *testing.T) {
			f := &fixture{file: write(t, "pulse.yaml", base)}
			f.running = start(t, "serve", "--config", f.file)
			f.token = f.tokenFile(t)
			if got := tt.try(f); got != tt.before {
				t.Fatalf("before: %s, want %s", got, tt.before)
			}
			changed := strings.Replace(base, tt.from, tt.to, 1)
			if changed == base {
				t.Fatal("nothing is replaced")
			}
			if tt.setting == "log.level" { // what is logged of it is not logged any more
				if err := os.WriteFile(f.file, []byte(changed), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
				for late := time.Now().Add(10 * time.Second); tt.try(f) != tt.after && time.Now().Before(late); {
				}
			} else if said := f.hup(t, f.file, changed); !logged(said, "configuration changed", "setting", tt.setting) {
				t.Errorf("not logged: %s", said)
			} else if strings.Contains(said, secret) || strings.Contains(said, other) {
				t.Error("a secret is logged")
			}
			if got := tt.try(f); got != tt.after {
				t.Errorf("after: %s, want %s", got, tt.after)
			}
			f.hup(t, f.file, base)
			if got := tt.try(f); got != tt.before {
				t.Errorf("back again: %s, want %s", got, tt.before)
			}
		})
	}
}

// tlsClient is one that takes any certificate.
func tlsClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestReloadTellsWhatWaitsForTheNextStart(t *testing.T) {
	base := "listen: 127.0.0.1:0\ninternal: { listen: 127.0.0.1:0 }\n" + roomy
	f := &fixture{file: write(t, "pulse.yaml", base)}
	f.running = start(t, "serve", "--config", f.file)
	f.token = f.tokenFile(t)
	cert, key, _ := newCertificate(t)
	said := f.hup(t, f.file, strings.Replace(base, "open: {", "open: { presence: true,", 1)+"transport: { ping: 90s }\ntls: { cert_file: "+cert+", key_file: "+key+" }\nnode: { max_sessions: 7 }\n")
	for _, setting := range []string{"transport.ping", "node.max_sessions", "tls"} {
		if !logged(said, "setting stays as it was until the next start", "setting", setting, "level", "WARN") {
			t.Errorf("%s: not told in %s", setting, said)
		}
	}
	if !logged(said, "kind of room stays as it was until the next start", "room_kind", "open") {
		t.Errorf("the kind: not told in %s", said)
	}
	if strings.Contains(said, "tls.cert_file") {
		t.Errorf("TLS is told to have changed: %s", said)
	}
	if frame, _ := hello(t, f.public, read(t, f.token), nil); fmt.Sprint(frame["ping_ms"]) != "25000" {
		t.Errorf("welcome %v", frame)
	}
	// It is told again until it is so, or the file is as the node is.
	if said := f.hup(t, f.file, base); strings.Contains(said, "stays") {
		t.Errorf("as it was: %s", said)
	}
}

func TestReloadOfABadFileChangesNothing(t *testing.T) {
	cert, key, _ := newCertificate(t)
	base := "listen: 127.0.0.1:0\ninternal: { listen: 127.0.0.1:0 }\n" + roomy + "tls: { cert_file: " + cert + ", key_file: " + key + " }\n"
	for rule, bad := range map[string]string{
		"a typo":               base + "lisen: x\n",
		"no YAML":              base + "\t{",
		"nothing yet":          "",
		"cut before its keys":  base[:strings.Index(base, "auth:")],
		"a key that is short":  strings.Replace(base, secret, "short", 1),
		"a certificate gone":   strings.Replace(base, cert, "/no/such.pem", 1),
		"a certificate's twin": strings.Replace(base, cert, key, 1),
	} {
		t.Run(rule, func(t *testing.T) {
			f := &fixture{file: write(t, "pulse.yaml", base)}
			f.running = start(t, "serve", "--config", f.file)
			f.token = f.tokenFile(t)
			said := f.hup(t, f.file, strings.Replace(bad, "publish: grant", "publish: server", 1))
			if !logged(said, "configuration not reloaded", "level", "ERROR") || strings.Contains(said, "configuration changed") {
				t.Errorf("said %s", said)
			}
			insecure := tlsClient()
			defer insecure.CloseIdleConnections()
			if frame, closed := hello(t, f.public, read(t, f.token), &websocket.DialOptions{HTTPClient: insecure}); closed != 0 {
				t.Errorf("hello: %v %v", frame, closed)
			}
			if said := f.hup(t, f.file, base); strings.Contains(said, "configuration changed") {
				t.Errorf("something had changed: %s", said)
			}
		})
	}
}

func TestReloadOfTheCertificatesPlace(t *testing.T) {
	cert, key, _ := newCertificate(t)
	nextCert, nextKey, _ := newCertificate(t)
	text := func(c config.TLS) string {
		return "listen: 127.0.0.1:0\ninternal: { listen: 127.0.0.1:0 }\n" + roomy + "tls: { cert_file: " + c.CertFile + ", key_file: " + c.KeyFile + " }\n"
	}
	file := write(t, "pulse.yaml", text(config.TLS{CertFile: cert, KeyFile: key}))
	n := start(t, "serve", "--config", file)
	address := strings.TrimPrefix(n.public, "https://")
	before := shown(t, address)
	if said := n.hup(t, file, text(config.TLS{CertFile: nextCert, KeyFile: nextKey})); !logged(said, "configuration changed", "setting", "tls.cert_file", "to", nextCert) {
		t.Errorf("said %s", said)
	}
	if string(shown(t, address)) == string(before) {
		t.Error("the certificate is the one that there was")
	}
}
