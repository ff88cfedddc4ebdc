package redis_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// secured runs a server that also takes TLS, by a certificate of its own issuer, whom
// the pool trusts.
func secured(t *testing.T) (s *server.Server, address string, issuer *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate, file := write("cert", "CERTIFICATE", der), write("key", "PRIVATE KEY", private)
	s = server.Start(t, "--tls-cert-file", certificate, "--tls-key-file", file, "--tls-auth-clients", "no")
	port := strconv.Itoa(s.SecondPort())
	s.Do("CONFIG", "SET", "tls-port", port)
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	issuer = x509.NewCertPool()
	issuer.AddCert(parsed)
	return s, net.JoinHostPort("127.0.0.1", port), issuer
}

// user makes the least user that a node needs, as docs/operations.md has it.
func user(s *server.Server, password string) {
	s.Do(append(strings.Fields("ACL SETUSER pulse on resetkeys resetchannels ~pulse:* &pulse:*"+
		" -@all +@read +@write +@pubsub +@scripting -@dangerous +info +ping +time"), ">"+password)...)
}

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// By TLS, as a user with the least rights, everything works that a node does; and
// nothing of what it does is refused.
func TestTLSAndAUserWithTheLeastRights(t *testing.T) {
	s, address, issuer := secured(t)
	user(s, "first secret")
	secure := func(c *redis.Config) {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: issuer}
		c.Username, c.Password = "pulse", "first secret"
		c.TenantBytes = func(string) int64 { return 1 << 30 }
		c.Lease = 1500 * time.Millisecond
	}
	b := node(t, address, secure)
	f := follow(t, b, room)
	fill(t, b, room, 3)
	whole(t, f, 0, 3)
	accept(t, b, room, bridge.Publication{Event: event(room, "p")})
	leases, presence := redis.NewLeases(b), redis.NewPresence(b)
	t.Cleanup(leases.Close)
	t.Cleanup(presence.Close)
	lease := bridge.Lease{Tenant: "acme", Session: "s", Generation: 1, Nonce: 1}
	failed := make(chan *codec.Error, 8)
	leases.Renew([]bridge.Lease{lease}, time.Minute, func(err *codec.Error) { failed <- err })
	leases.Acquire(bridge.Claim{Lease: lease, TTL: time.Minute}, func(_ bridge.Acquired, err *codec.Error) { failed <- err })
	leases.Lookup("acme", "s", func(_ bridge.Owner, _ bool, err *codec.Error) { failed <- err })
	leases.Release(lease, func(err *codec.Error) { failed <- err })
	presence.Change(room, 1, bridge.PresenceUpdate{Whole: true, Put: []codec.Member{{Subject: "ann", Sessions: 1}}}, func(_ bridge.Mark, err *codec.Error) { failed <- err })
	presence.List(room, "", 10, func(_ bridge.MemberPage, err *codec.Error) { failed <- err })
	for range 6 {
		if err := receive(t, failed, "an answer"); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the census", func() bool { return s.Do("ZCARD", "pulse:nodes") == "1" })
	if _, found, err := redis.Peek(t.Context(), redis.Config{
		Addresses: []string{address}, KeyPrefix: "pulse:", Username: "pulse", Password: "first secret", TLS: &tls.Config{RootCAs: issuer},
	}, room, codec.Position{}, 10); err != nil || !found {
		t.Errorf("peek: %v, %v", found, err)
	}
	if denied := s.Do("ACL", "LOG"); denied != "" {
		t.Errorf("denied: %s", denied)
	}
	if h := b.Health(); h.State != bridge.Up {
		t.Errorf("%+v", h)
	}

	// The password changes; the node is told the new one when it is started anew, and
	// until it is good again it is down for what ails it.
	user(s, "second secret")
	s.Do("ACL", "SETUSER", "pulse", "<first secret")
	s.Do("CLIENT", "KILL", "USER", "pulse")
	until(t, b, bridge.Down)
	eventually(t, "why", func() bool { return b.Health().Why == "the server denies access" })
	user(s, "first secret")
	until(t, b, bridge.Up)
	fill(t, b, room, 1)
	whole(t, f, 0, 4)
}

// Who cannot be sure of the server does not talk to it, and nothing that is logged has
// the password.
func TestAServerThatIsNotTrusted(t *testing.T) {
	s, address, issuer := secured(t)
	user(s, "a secret of this test")
	logged := &lines{}
	log := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	redis.LogDriver(log)
	defer redis.LogDriver(slog.New(slog.DiscardHandler))
	for name, c := range map[string]redis.Config{
		"another issuer":     {Addresses: []string{address}, TLS: &tls.Config{RootCAs: x509.NewCertPool()}},
		"another name":       {Addresses: []string{address}, TLS: &tls.Config{RootCAs: issuer, ServerName: "other"}},
		"plain where TLS is": {Addresses: []string{address}},
		"TLS where plain is": {Addresses: []string{s.Address()}, TLS: &tls.Config{RootCAs: issuer}},
		"a wrong password":   {Addresses: []string{address}, TLS: &tls.Config{RootCAs: issuer}, Password: "a secret of this test, wrong"},
	} {
		c.KeyPrefix, c.ChannelPrefix, c.Username, c.Outage.Wait, c.Logger = "pulse:", "pulse:", "pulse", -1, log
		if c.Password == "" {
			c.Password = "a secret of this test"
		}
		b, err := redis.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := publish(t, b, room, kept(room))[0]; got.Err == nil || got.Err.Code != codec.CodeUnavailable {
			t.Errorf("%s: %+v", name, got)
		}
		if h := b.Health(); h.State != bridge.Connecting {
			t.Errorf("%s: %+v", name, h)
		}
		b.Close()
	}
	if n := s.Do("DBSIZE"); n != "0" {
		t.Errorf("%s keys", n)
	}
	if text := logged.String(); strings.Contains(text, "a secret of this test") || !strings.Contains(text, "redis: driver") {
		t.Errorf("logged:\n%s", text)
	}
}

// A user who may not do all that a node does, or a server on which it was renamed, is told
// as long as it is so, also while nobody asks for anything that needs it.
func TestAUserWithoutSomethingThatANodeDoes(t *testing.T) {
	t.Parallel()
	for _, denied := range []string{"EVALSHA", "EVAL", "ZADD", "PING", "PUBLISH"} {
		t.Run(denied, func(t *testing.T) {
			t.Parallel()
			s := server.Start(t)
			user(s, "secret")
			s.Do("ACL", "SETUSER", "pulse", "-"+strings.ToLower(denied))
			as := func(c *redis.Config) { c.Username, c.Password = "pulse", "secret" }
			b := start(t, s.Address(), as)
			stays(t, s, b, bridge.Connecting)
			s.Do("ACL", "SETUSER", "pulse", "+"+strings.ToLower(denied))
			until(t, b, bridge.Up)
			s.Do("SCRIPT", "FLUSH") // so that EVAL is needed again
			s.Do("ACL", "SETUSER", "pulse", "-"+strings.ToLower(denied))
			s.Do("CLIENT", "KILL", "USER", "pulse")
			until(t, b, bridge.Down)
			eventually(t, "why", func() bool { return strings.Contains(b.Health().Why, "denies") })
			stays(t, s, b, bridge.Down)
		})
	}
	t.Run("renamed", func(t *testing.T) {
		t.Parallel()
		s := server.Start(t, "--rename-command", "EVALSHA", "ELSEWHERE")
		stays(t, s, start(t, s.Address()), bridge.Connecting)
		s = server.Start(t, "--rename-command", "ZPOPMIN", "")
		stays(t, s, start(t, s.Address()), bridge.Connecting)
	})
}

// Each prefix is all that the user may touch of its kind.
func TestAUserWithPrefixesOfTwoKinds(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	user(s, "secret")
	s.Do(strings.Fields("ACL SETUSER pulse resetkeys resetchannels ~keys: ~keys:* &channels:*")...)
	b := node(t, s.Address(), func(c *redis.Config) {
		c.Username, c.Password, c.KeyPrefix, c.ChannelPrefix = "pulse", "secret", "keys:", "channels:"
	})
	fill(t, b, room, 1)
	if denied := s.Do("ACL", "LOG"); denied != "" {
		t.Errorf("denied: %s", denied)
	}
}

// stays holds if a bridge is in a state for some of its beats.
func stays(t *testing.T, s *server.Server, b *redis.Bridge, want bridge.State) {
	t.Helper()
	left := make(chan bridge.Health, 1)
	stop := b.Watch(func(h bridge.Health) {
		if h.State != want {
			select {
			case left <- h:
			default:
			}
		}
	})
	defer stop()
	begin := asked(s)
	eventually(t, "beats", func() bool { return asked(s) >= begin+4 })
	select {
	case h := <-left:
		t.Errorf("%+v, not %v", h, want)
	default:
	}
}

// asked is how many commands of a bridge's beats a server has done or refused.
func asked(s *server.Server) (n int) {
	for _, m := range regexp.MustCompile(`(?:cmdstat_(?:evalsha|eval|publish):calls=|total_error_replies:)(\d+)`).FindAllStringSubmatch(s.Do("INFO", "all"), -1) {
		more, _ := strconv.Atoi(m[1])
		n += more
	}
	return n
}
