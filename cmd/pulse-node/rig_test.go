package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is pulse-node itself where a test runs it as a process.
const asProcess = "RUN_AS_NODE"

func TestMain(m *testing.M) {
	switch os.Getenv(asProcess) {
	case "":
		// Tests that run beside each other wait more than they work.
		flag.Parse()
		if err := flag.Set("test.parallel", "12"); err != nil {
			panic(err)
		}
	case "loaded":
		asMain(loadedNode)
	default:
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
	logs             *synced // standard error
	end              func() int
}

var listening = regexp.MustCompile(`^listening public=(https?://\S+) internal=(http://\S+)$`)

// start runs a node until the test, or its end, stops it.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return launch(t, nil, args...)
}

// launch is start with an environment.
func launch(t *testing.T, environ []string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	code, logs := make(chan int, 1), new(synced)
	go func() {
		p := program{args: args, environ: environ, stdout: w, stderr: logs}
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
	n := &running{lines: lines, logs: logs}
	n.end = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() {
		n.end()
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

// newCertificate writes a self-signed certificate for 127.0.0.1 and its key.
func newCertificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
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
