package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/auth"
)

func TestWrongUseIsExit2(t *testing.T) {
	file := write(t, "pulse.yaml", keys)
	tests := []struct {
		rule string
		args string
		says string
	}{
		{"no command", "", "a command is missing"},
		{"an unknown command", "run", `unknown command "run"`},
		{"an unknown flag of the program", "--verbose", "--verbose"},
		{"an unknown flag", "version --short", "--short"},
		{"an argument too many", "version now", "now"},
		{"help for what there is not", "help serf", `unknown command "serf"`},
		{"completion for no shell", "completion", "a shell is missing"},
		{"completion for no such shell", "completion bsh", `unknown command "bsh"`},
		{"health of an address", "health --url 127.0.0.1:8081", "--url must be http://host:port"},
		{"health by another scheme", "health --url ftp://127.0.0.1:8081", "--url must be http://host:port"},
		{"an argument to serve", "serve pulse.yaml", "pulse.yaml"},
		{"an unknown flag of serve", "serve --config " + file + " --lisen :1", "lisen (flag --lisen): unknown key"},
		{"an unknown short flag of serve", "serve -x", "-x (flag -x): unknown key"},
		{"a setting with one dash", "serve -listen :0", "-listen (flag -listen): unknown key"},
		{"a file with one dash", "serve -config " + file, "-config (flag -config): unknown key"},
		{"a setting with one dash and its value", "serve -listen=:0", "-listen (flag -listen): unknown key"},
		{"an unknown flag before the command", "--lisen=:1 serve --config " + file, "lisen (flag --lisen): unknown key"},
		{"an unknown flag and its value before the command", "--lisen :1 serve --config " + file, "lisen (flag --lisen): unknown key"},
		{"a flag without its value", "serve --listen", "--listen"},
		{"a file that is not there", "serve --config /no/such.yaml", "/no/such.yaml"},
		{"a setting of the file only", "serve --tenants x", "tenants (flag --tenants)"},
		{"a certificate that is not there", "serve --tls.cert_file a --tls.key_file b", "tls (flag --tls.cert_file): open a"},
		{"config with a certificate that is not there", "config --tls.cert_file a --tls.key_file b", "tls (flag --tls.cert_file): open a"},
		{"dev on an outside address", "dev --listen 0.0.0.0:0", "--insecure-listen"},
		{"dev on every address", "dev --listen :0", "--insecure-listen"},
		{"dev on no address", "dev --listen nowhere", "loopback"},
		{"a token without tenant", "token --config " + file + " --sub s", "--tenant is missing"},
		{"a token without subject", "token --config " + file + " --tenant t", "--sub is missing"},
		{"a token without configuration", "token --tenant t --sub s", "--config is missing"},
		{"a token that ends at once", "token --config " + file + " --tenant t --sub s --ttl 0s", "--ttl"},
		{"a token that ended before", "token --config " + file + " --tenant t --sub s --ttl -1h", "--ttl"},
		{"a ttl without unit", "token --config " + file + " --tenant t --sub s --ttl 60", "--ttl"},
		{"a right that is none", "token --config " + file + " --tenant t --sub s --allow join,kick", `"kick" is no right`},
		{"rooms that are no pattern", "token --config " + file + " --tenant t --sub s --rooms a*b", "ending in *"},
		{"a tenant that is no name", "token --config " + file + " --tenant a/b --sub s", "tenant"},
		{"no key to sign with", "token --config " + os.DevNull + " --tenant t --sub s", "auth.jwt.keys"},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			code, out, errs := runOnce(t, nil, strings.Fields(tt.args)...)
			if code != exitWrong || out != "" || !strings.Contains(errs, tt.says) {
				t.Errorf("exit %d, output %q, errors %q", code, out, errs)
			}
		})
	}
}

// What cannot be printed has failed, and was used rightly.
func TestOutputThatIsNotTakenIsExit1(t *testing.T) {
	for _, args := range []string{"version", "config", "config schema", "completion bash", "completion fish"} {
		r, w := io.Pipe()
		r.Close()
		p := program{args: strings.Fields(args), stdout: w, stderr: t.Output()}
		if code := p.run(t.Context()); code != exitFailed {
			t.Errorf("%s: exit %d", args, code)
		}
	}
}

func TestServeReportsFaultsOfAllSourcesAtOnce(t *testing.T) {
	file := write(t, "pulse.yaml", "listen: nowhere\n")
	code, _, errs := runOnce(t, []string{"PULSE_PING=1s"}, "serve", "--config", file, "--no.such=1", "--log.level=loud", "--nor.such", "1")
	if code != exitWrong {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{
		"pulse-node: PULSE_PING (environment PULSE_PING)", "pulse-node: listen (" + file + ":1)",
		"pulse-node: no.such (flag --no.such)", "pulse-node: nor.such (flag --nor.such)", "pulse-node: log.level (flag --log.level)",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in\n%s", want, errs)
		}
	}
	if n := strings.Count(errs, "\n"); n != 5 {
		t.Errorf("%d lines:\n%s", n, errs)
	}
}

func TestTakenPortIsExit1(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for rule, args := range map[string][]string{
		"public":   {"--listen", taken.Addr().String(), "--internal.listen", "127.0.0.1:0"},
		"internal": {"--listen", "127.0.0.1:0", "--internal.listen", taken.Addr().String()},
	} {
		t.Run(rule, func(t *testing.T) {
			code, out, errs := runOnce(t, nil, append([]string{"serve"}, args...)...)
			if code != exitFailed || out != "" || !strings.Contains(errs, "in use") {
				t.Errorf("exit %d, output %q, errors %q", code, out, errs)
			}
		})
	}
}

func TestServeRunsUntilItIsToldToEnd(t *testing.T) {
	n := start(t, "serve", "--config", write(t, "pulse.yaml", keys), "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0")
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, text := get(t, n.internal+path); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
		if code, _ := get(t, n.public+path); code != 404 {
			t.Errorf("%s on the public listener: %d", path, code)
		}
	}
	if code, text := get(t, n.public+"/v1/ws"); code != 400 {
		t.Errorf("no upgrade: %d %s", code, text)
	}
	if code, _ := get(t, n.public+"/demo/token/alice"); code != 404 {
		t.Errorf("serve hands out tokens: %d", code)
	}
	if code := n.end(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestServeWithTLSRefusesOldVersions(t *testing.T) {
	cert, key, pool := newCertificate(t)
	n := start(t, "serve", "--config", write(t, "pulse.yaml", keys), "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0", "--tls.cert_file="+cert, "--tls.key_file="+key)
	address, ok := strings.CutPrefix(n.public, "https://")
	if !ok {
		t.Fatalf("public=%s", n.public)
	}
	for version, accepted := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, MinVersion: version, MaxVersion: version})
		if (err == nil) != accepted {
			t.Errorf("version %x: %v", version, err)
		}
		if err == nil {
			c.Close()
		}
	}
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer browser.CloseIdleConnections()
	if _, closed := hello(t, n.public, "no token", &websocket.DialOptions{HTTPClient: browser}); closed != 4401 {
		t.Errorf("over TLS a bad token is closed with %d", closed)
	}
}

func TestDevPrintsTokensAndServesThePage(t *testing.T) {
	n := start(t, "dev", "--listen", "127.0.0.1:0")
	for _, subject := range []string{"alice", "bob"} {
		if line := n.line(t); !regexp.MustCompile(`^token ` + subject + ` \S+\.\S+\.\S+$`).MatchString(line) {
			t.Errorf("line %q", line)
		}
	}
	if code, text := get(t, n.public+"/"); code != 200 || !strings.Contains(text, "<title>Pulse demo</title>") {
		t.Errorf("page: %d %s", code, text)
	}
	code, text := get(t, n.public+"/demo/token/alice")
	var answer struct{ Token string }
	if err := json.Unmarshal([]byte(text), &answer); code != 200 || err != nil || answer.Token == "" {
		t.Errorf("token: %d %s", code, text)
	}
	if code := n.end(); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestSecondDevTakesAnotherInternalPort(t *testing.T) {
	first := start(t, "dev", "--listen", "127.0.0.1:0")
	second := start(t, "dev", "--listen", "127.0.0.1:0")
	if first.internal == second.internal {
		t.Errorf("both at %s", first.internal)
	}
	if code, _ := get(t, second.internal+"/healthz"); code != 200 {
		t.Errorf("health of the second: %d", code)
	}
}

func TestToken(t *testing.T) {
	file := write(t, "pulse.yaml", keys)
	jwt, err := auth.NewJWT(auth.JWTConfig{
		Keys: []auth.Key{{Alg: auth.HS256, ID: "k1", Secret: []byte(secret)}}, Issuer: "i", Audience: "a", TenantClaim: "org",
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rule  string
		args  []string
		right auth.Right
		room  string
		want  bool
	}{
		{"no room unless named", nil, auth.Join, "chat", false},
		{"all rights unless named", []string{"--rooms", "chat:*"}, auth.History, "chat:1", true},
		{"several rooms", []string{"--rooms", "chat:*,lobby"}, auth.Join, "lobby", true},
		{"the rights that are named", []string{"--rooms", "chat:*", "--allow", "join,publish"}, auth.Publish, "chat:1", true},
		{"no other right", []string{"--rooms", "chat:*", "--allow", "join,publish"}, auth.History, "chat:1", false},
		{"no other room", []string{"--rooms", "chat:*"}, auth.Join, "chat", false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			args := append([]string{"token", "--config", file, "--tenant", "acme", "--sub", "alice", "--ttl", "90s"}, tt.args...)
			code, out, errs := runOnce(t, nil, args...)
			if code != exitOK || strings.Count(out, "\n") != 1 {
				t.Fatalf("exit %d, output %q, errors %q", code, out, errs)
			}
			id, err := jwt.Authenticate(t.Context(), auth.Credentials{Token: strings.TrimSpace(out)})
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(id.Expires); left > 90*time.Second || left < 80*time.Second || id.Tenant != "acme" || id.Subject != "alice" || id.TokenID == "" {
				t.Errorf("%+v", id)
			}
			if got := id.Grants.Allows(tt.right, tt.room); got != tt.want {
				t.Errorf("%v in %s: %v", tt.right, tt.room, got)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := runOnce(t, nil, "version")
	if code != exitOK || !regexp.MustCompile(`^pulse-node \S+\ncommit \S+\ngo go1\.\S+.*\nprotocols pulse\.v1\n$`).MatchString(out) {
		t.Errorf("exit %d, output %q", code, out)
	}
}
