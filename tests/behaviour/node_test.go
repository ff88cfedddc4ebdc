package behaviour

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is pulse-node, and what its nodes and their clients share.
type program struct {
	path   string
	tokens map[string]string
	cert   string // files
	key    string
	trust  *tls.Config
}

// build builds pulse-node and makes tokens and a certificate for its nodes.
func build(t *testing.T) *program {
	t.Helper()
	dir := t.TempDir()
	p := &program{
		path: filepath.Join(dir, "pulse-node"), cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"),
		tokens: map[string]string{},
	}
	p.output(t, "go", "build", "-o", p.path, "../../cmd/pulse-node")
	config := filepath.Join(dir, "tokens.yaml")
	write(t, config, keys)
	for _, subject := range []string{"alice", "bob"} {
		p.tokens[subject] = strings.TrimSpace(p.output(t, p.path, "token", "--config", config, "--tenant", "acme", "--sub", subject, "--rooms", "chat:*"))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pulse"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, p.cert, string(cert))
	write(t, p.key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
	p.trust = &tls.Config{RootCAs: x509.NewCertPool()}
	p.trust.RootCAs.AppendCertsFromPEM(cert)
	return p
}

const keys = `auth: { jwt: { keys: [ { alg: HS256, secret: "the secret of nodes that live for a test" } ] } }`

func (*program) output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// node is one that runs, as its clients see it.
type node struct {
	*program
	url     string
	process *os.Process
	trust   *tls.Config // nil without TLS
}

// serve runs a node until it is drained, which the script does.
func (p *program) serve(t *testing.T, v variant) *node {
	t.Helper()
	text := keys + "\nlisten: 127.0.0.1:0\ninternal: { listen: 127.0.0.1:0 }\nrooms: { chat: {} }\nnode: { drain_timeout: 1s }\n" +
		fmt.Sprintf("transport: { ping: 300ms, pong_timeout: 8s, compression: { enabled: %t, threshold: 64B } }\n", v.compression)
	if v.tls {
		text += fmt.Sprintf("tls: { cert_file: %q, key_file: %q }\n", p.cert, p.key)
	}
	config := filepath.Join(t.TempDir(), "pulse.yaml")
	write(t, config, text)
	cmd := exec.Command(p.path, "serve", "--config", config)
	var logs strings.Builder
	cmd.Stderr = &logs
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithTimeout(context.Background(), 2*time.Minute)
	context.AfterFunc(ended, func() { _ = cmd.Process.Kill() }) // one that hangs, or is left by a failed script
	t.Cleanup(func() {
		if t.Failed() {
			end()
		}
		_, _ = io.Copy(io.Discard, stdout)
		if err := cmd.Wait(); err != nil {
			t.Errorf("pulse-node serve: %v", err)
		}
		end()
		if t.Failed() {
			t.Log(logs.String())
		}
	})
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	_, address, _ := strings.Cut(lines.Text(), "public=http")
	address, _, _ = strings.Cut(address, " ")
	if address == "" {
		t.Fatalf("pulse-node serve says %q", lines.Text())
	}
	n := &node{program: p, url: "ws" + address, process: cmd.Process}
	if v.tls {
		n.trust = p.trust
	}
	return n
}

func (n *node) drain() { _ = n.process.Signal(syscall.SIGTERM) }
