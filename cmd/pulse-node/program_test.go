package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/auth"
)

// The test binary is pulse-node itself where a test runs it as a process.
const asProcess = "RUN_AS_NODE"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

const secret = "0123456789abcdef0123456789abcdef"

const keys = "auth: { jwt: { keys: [ { alg: HS256, kid: k1, secret: " + secret + " } ], issuer: i, audience: a, tenant_claim: org } }\nrooms: { chat: {} }\n"

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runOnce runs a command that ends by itself.
func runOnce(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := program{args: args, environ: environ, stdout: &out, stderr: &errs}
	code = p.run(t.Context())
	return code, out.String(), errs.String()
}

// running is a node that runs within the test.
type running struct {
	lines            <-chan string // closed when the node has ended
	public, internal string
	end              func() int
}

var listening = regexp.MustCompile(`^listening public=(https?://\S+) internal=(http://\S+)$`)

// start runs a node until the test, or its end, stops it.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		p := program{args: args, stdout: w, stderr: io.Discard}
		code <- p.run(ctx)
		w.Close()
	}()
	lines := make(chan string, 16) // more than any command prints
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
	}()
	n := &running{lines: lines}
	ended := false
	n.end = func() int {
		cancel()
		ended = true
		return <-code
	}
	t.Cleanup(func() {
		if !ended {
			n.end()
		}
		http.DefaultClient.CloseIdleConnections()
	})
	m := listening.FindStringSubmatch(n.line(t))
	if m == nil {
		t.Fatal("the first line does not say where it listens")
	}
	n.public, n.internal = m[1], m[2]
	return n
}

func (n *running) line(t *testing.T) string {
	t.Helper()
	line, ok := <-n.lines
	if !ok {
		t.Fatal("the output ended")
	}
	return line
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

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
		{"an argument to serve", "serve pulse.yaml", "pulse.yaml"},
		{"an unknown flag of serve", "serve --config " + file + " --lisen :1", "lisen (flag --lisen): unknown key"},
		{"an unknown short flag of serve", "serve -x", "x (flag --x): unknown key"},
		{"a flag without its value", "serve --listen", "--listen"},
		{"a file that is not there", "serve --config /no/such.yaml", "/no/such.yaml"},
		{"a setting of the file only", "serve --tenants x", "tenants (flag --tenants)"},
		{"a certificate that is not there", "serve --tls.cert_file a --tls.key_file b", "tls (a, b)"},
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

// certificate writes a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))), pool
}

func TestServeWithTLSRefusesOldVersions(t *testing.T) {
	cert, key, pool := certificate(t)
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

// process runs serve as a process of its own.
func process(t *testing.T) (cmd *exec.Cmd, public, internal string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe, "serve", "--config", write(t, "pulse.yaml", keys), "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0")
	cmd.Env = append(os.Environ(), asProcess+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	m := listening.FindStringSubmatch(lines.Text())
	if m == nil {
		t.Fatalf("first line %q", lines.Text())
	}
	return cmd, m[1], m[2]
}

func TestSignalsEndTheProcess(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd, _, _ := process(t)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("end: %v", err)
			}
		})
	}
}

func TestSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	cmd, public, internal := process(t)
	code, token, errs := runOnce(t, nil, "token", "--config", write(t, "pulse.yaml", keys), "--tenant", "acme", "--sub", "alice")
	if code != exitOK {
		t.Fatal(errs)
	}
	// A client that does not answer the close holds the drain up.
	c, _, err := websocket.Dial(t.Context(), public+"/v1/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"t":"hello","token":"`+strings.TrimSpace(token)+`"}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	for code := 200; code != 503; { // until it drains
		code, _ = get(t, internal+"/readyz")
	}
	cmd.Process.Signal(syscall.SIGTERM)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("end: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}
