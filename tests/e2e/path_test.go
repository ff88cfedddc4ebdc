package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/transport/ws"
)

// The whole path: hello, join, publish, every event in order, the connection lost,
// and resumed from the position without a gap; in both codecs and mixed in one room,
// plain and under TLS.
func TestTheWholePath(t *testing.T) {
	certificate, roots := selfSigned(t)
	secured := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}
	for name, change := range map[string]func(*setup){
		"plain": nil,
		"TLS":   func(s *setup) { s.listen, s.tls = new(ws.Handshakes).Listener, secured },
		"foreign TLS": func(s *setup) { // an embedder's, which the engine knows nothing of
			s.tls = secured
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := serve(t, change)
			n.trust = &tls.Config{RootCAs: roots}
			for _, from := range wires {
				for _, to := range wires {
					t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
						path(t, n, from, to)
					})
				}
			}
		})
	}
}

func path(t *testing.T, n *node, from, to wire) {
	tenant := fmt.Sprintf("%s-%s", from, to)
	alice, _ := enter(t, n, from, tenant+"/alice")
	if r := alice.ask(`{"t":"join","room":"chat:1"}`); r["ok"] == nil {
		t.Fatalf("join: %v", r)
	}
	bob, w := enter(t, n, to, tenant+"/bob", "chat:1")
	last := frame(w["rooms"].([]any)[0].(map[string]any)["ok"].(map[string]any))
	const text = "żółć 世界 \U0001f600"
	said, heard := 0, 0
	say := func(count int) {
		t.Helper()
		for range count {
			said++
			r := alice.ask(`{"t":"publish","room":"chat:1","event":"message","data":{"n":%d,"exact":%d,"text":%q}}`, said, 1<<53+int64(said), text)
			if frame(r["ok"].(map[string]any)).offset() != uint64(said) {
				t.Fatalf("publish: %v", r)
			}
			alice.until("event")
		}
	}
	hear := func(upTo int) {
		t.Helper()
		for heard < upTo {
			heard++
			last = bob.until("event")
			data := last["data"].(map[string]any)
			if last.offset() != uint64(heard) || fmt.Sprint(data["n"]) != fmt.Sprint(heard) ||
				fmt.Sprint(data["exact"]) != fmt.Sprint(1<<53+int64(heard)) || data["text"] != text || last["from"] != "alice" {
				t.Fatalf("event %d: %v", heard, last)
			}
		}
	}
	say(20)
	hear(20)
	for range 3 {
		say(5)
		hear(heard + 3) // it has processed some of what it was sent
		bob.cut()
		say(60) // more than a room keeps at hand
		bob, w = enter(t, n, to, tenant+"/bob", fmt.Sprintf(`{"room":"chat:1","epoch":%q,"offset":%d}`, last.text("epoch"), last.offset()))
		if ok := frame(w["rooms"].([]any)[0].(map[string]any)["ok"].(map[string]any)); ok["recovered"] != true || ok.offset() != last.offset() {
			t.Fatalf("resumed: %v", ok)
		}
		say(5)
		hear(said)
	}
	bob.quiet()
	alice.quiet()
}

// selfSigned is a certificate for 127.0.0.1 and who trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
