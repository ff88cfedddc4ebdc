package main

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

// pairFiles are a certificate and its key where a node looks for them.
type pairFiles struct {
	t *testing.T
	config.TLS
}

func newPairFiles(t *testing.T) pairFiles {
	dir := t.TempDir()
	return pairFiles{t, config.TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}}
}

// put puts files in the place of those that there are, as programs that renew
// certificates do. Time stands still for them: what is seen is not the clock.
func (p pairFiles) put(cert, key string) {
	p.t.Helper()
	for to, from := range map[string]string{p.CertFile: cert, p.KeyFile: key} {
		text, err := os.ReadFile(from)
		if err != nil {
			p.t.Fatal(err)
		}
		next := write(p.t, "next", string(text))
		if err := os.Chtimes(next, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			p.t.Fatal(err)
		}
		if err := os.Rename(next, to); err != nil {
			p.t.Fatal(err)
		}
	}
}

// shown is the certificate that a handshake shows.
func shown(t *testing.T, address string) []byte {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Raw
}

func TestCertificateIsReadAnewWhenItsFilesChange(t *testing.T) {
	firstCert, firstKey, _ := newCertificate(t)
	secondCert, secondKey, _ := newCertificate(t)
	files := newPairFiles(t)
	files.put(firstCert, firstKey)
	n := start(t, "serve", "--config", write(t, "pulse.yaml", keys), "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0",
		"--tls.cert_file="+files.CertFile, "--tls.key_file="+files.KeyFile)
	address := strings.TrimPrefix(n.public, "https://")
	first := shown(t, address)

	for rule, replace := range map[string]func(){
		"no certificate":         func() { files.put(firstKey, firstKey) },
		"one without its key":    func() { files.put(secondCert, firstKey) },
		"the key alone is new":   func() { files.put(firstCert, secondKey) },
		"one that is written to": func() { os.WriteFile(files.CertFile, []byte("-----BEGIN"), 0o600) },
		"none":                   func() { os.Remove(files.KeyFile) },
	} {
		if replace(); !bytes.Equal(shown(t, address), first) {
			t.Errorf("%s: the certificate is not the one that there was", rule)
		}
	}
	files.put(secondCert, secondKey)
	second := shown(t, address)
	if bytes.Equal(second, first) {
		t.Error("the new certificate is not shown")
	}
	files.put(firstCert, firstKey)
	if !bytes.Equal(shown(t, address), first) {
		t.Error("the next one is not shown")
	}
}

// A bad file is told of once, not at every handshake, and by a signal each time.
func TestBadCertificateIsToldOfOnce(t *testing.T) {
	cert, key, _ := newCertificate(t)
	files := newPairFiles(t)
	files.put(cert, key)
	var log bytes.Buffer
	c, err := loadCertificate(files.TLS, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	told := func(want int, text string) {
		t.Helper()
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("%q %d times, want %d:\n%s", text, got, want, &log)
		}
	}
	handshake := func() {
		if got, err := c.config().GetCertificate(nil); got == nil || err != nil {
			t.Errorf("no certificate: %v", err)
		}
	}
	handshake()
	told(0, "certificate")
	files.put(key, key)
	handshake()
	handshake()
	told(1, "certificate not read")
	c.reload()
	told(2, "certificate not read")
	files.put(cert, key)
	handshake()
	handshake()
	told(1, "certificate read")
}

// SIGHUP ends nothing.
func TestSIGHUPReloads(t *testing.T) {
	cmd, _, internal := process(t)
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, internal+"/healthz"); code != 200 {
		t.Errorf("health %d", code)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("end: %v", err)
	}
}
