package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// issuer is a key pair on P-256: both halves as files, and as a key set.
type issuer struct{ private, public, set string }

func newIssuer(t *testing.T) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	coordinate := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	return issuer{
		private: write(t, "private.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))),
		public:  write(t, "public.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))),
		set:     fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"k9","x":%q,"y":%q}]}`, coordinate(point[1:33]), coordinate(point[33:])),
	}
}

func (i issuer) token(t *testing.T, keys string) string {
	t.Helper()
	file := write(t, "issuer.yaml", "auth: { jwt: { keys: ["+keys+"] } }")
	code, token, errs := runOnce(t, nil, "token", "--config", file, "--tenant", "acme", "--sub", "alice", "--rooms", "chat:*")
	if code != exitOK {
		t.Fatal(errs)
	}
	return strings.TrimSpace(token)
}

func opens(t *testing.T, file, token string, want bool) {
	t.Helper()
	n := start(t, "serve", "--config", file, "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0")
	welcome, closed := hello(t, n.public, token, nil)
	if (closed == 0) != want || !want && closed != 4401 {
		t.Errorf("%v, closed with %d", welcome, closed)
	}
}

// The first key that can sign need not be the first, and a node that has the
// public half alone takes what it signs.
func TestTokenIsSignedByTheFirstKeyThatCan(t *testing.T) {
	one, other := newIssuer(t), newIssuer(t)
	token := one.token(t, "{ alg: ES256, kid: k8, public_key_file: "+other.public+" }, { alg: ES256, kid: k9, secret_file: "+one.private+" }")
	opens(t, write(t, "pulse.yaml", "auth: { jwt: { keys: [ { alg: ES256, kid: k9, public_key_file: "+one.public+" } ] } }"), token, true)
	opens(t, write(t, "pulse.yaml", "auth: { jwt: { keys: [ { alg: ES256, kid: k9, public_key_file: "+other.public+" } ] } }"), token, false)

	file := write(t, "public.yaml", "auth: { jwt: { keys: [ { alg: ES256, public_key_file: "+one.public+" } ] } }")
	if code, _, errs := runOnce(t, nil, "token", "--config", file, "--tenant", "acme", "--sub", "alice"); code != exitWrong || !strings.Contains(errs, "auth.jwt.keys") {
		t.Errorf("with public keys alone: exit %d, %s", code, errs)
	}
}

// A node without keys of its own takes tokens by the key set, and is closed
// without waiting for one that does not come.
func TestKeySetVerifiesTokens(t *testing.T) {
	of := newIssuer(t)
	token := of.token(t, "{ alg: ES256, kid: k9, secret_file: "+of.private+" }")
	set := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, of.set) }))
	defer set.Close()
	opens(t, write(t, "pulse.yaml", "auth: { jwt: { jwks: { url: '"+set.URL+"' } } }"), token, true)

	asked, left := make(chan struct{}, 8), make(chan struct{}, 8)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	defer hanging.Close()
	n := start(t, "serve", "--config", write(t, "pulse.yaml", "auth: { jwt: { jwks: { url: '"+hanging.URL+"' } } }"), "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0")
	c, _, err := websocket.Dial(t.Context(), n.public+"/v1/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"t":"hello","token":"`+token+`"}`)); err != nil {
		t.Fatal(err)
	}
	<-asked
	closed := make(chan error, 1)
	go func() {
		_, _, err := c.Read(t.Context())
		closed <- err
	}()
	if code := n.end(); code != exitOK {
		t.Errorf("exit %d", code)
	}
	select {
	case <-left:
	case <-time.After(4 * time.Second): // a fetch may take five
		t.Error("the node has ended, and fetches keys")
	}
	if err := <-closed; websocket.CloseStatus(err) != 1012 {
		t.Errorf("who waited for the key set: %v", err)
	}
}

func TestCompressionIsNegotiatedWhereItIsOn(t *testing.T) {
	for flag, want := range map[string]bool{"--transport.compression.enabled=true": true, "--transport.compression.enabled=false": false} {
		file := write(t, "pulse.yaml", keys)
		_, token, _ := runOnce(t, nil, "token", "--config", file, "--tenant", "acme", "--sub", "alice")
		n := start(t, "serve", "--config", file, "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0", flag)
		welcome, _ := hello(t, n.public, strings.TrimSpace(token), &websocket.DialOptions{CompressionMode: websocket.CompressionNoContextTakeover})
		if welcome["compression"] != want {
			t.Errorf("%s: %v", flag, welcome)
		}
	}
}
