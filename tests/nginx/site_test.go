package nginx

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/client"
)

// patience is how long what must come may take.
const patience = 30 * time.Second

// program is pulse-node, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pulse-node")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "pulse-node")
	out, err := exec.Command("go", "build", "-o", path, "github.com/yaza-dev/pulse/cmd/pulse-node").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) // it is in the folder for such things
	}
	os.Exit(code)
}

// ours is an address of the loopback that nobody else uses: what ends there can
// begin again at the same port, since no outgoing connection has taken it meanwhile.
func ours() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>14&63, pid>>7&127, 1+pid&127)
}

// site is a folder with the files of a deployment, and the nginx in front of it.
type site struct {
	t    *testing.T
	dir  string
	key  auth.Key // signs tokens
	flag []string // of every node

	url     string // of nginx, https://host:port
	trusted *x509.CertPool
}

// newSite writes the files; a node has its configuration from yaml, in which
// /run/secrets stands for the folder of the secrets.
func newSite(t *testing.T, yaml string, flags ...string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), key: auth.Key{Alg: auth.HS256, Secret: []byte(rand.Text() + rand.Text())}, flag: flags}
	s.write("jwt", string(s.key.Secret))
	s.write("deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
	s.write("pulse.yaml", strings.ReplaceAll(yaml, "/run/secrets", s.dir))
	s.certificate()
	return s
}

// in is s for a part of its test.
func (s *site) in(t *testing.T) *site {
	part := *s
	part.t = t
	return &part
}

func (s *site) file(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// certificate makes one for 127.0.0.1.
func (s *site) certificate() {
	s.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		s.t.Fatal(err)
	}
	shown := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	s.trusted = x509.NewCertPool()
	s.trusted.AppendCertsFromPEM(shown)
	s.write("pulse.crt", string(shown))
	s.write("pulse.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}

// read is a file of deploy/ with parts of it replaced, each of which must be there.
func (s *site) read(name string, replace ...string) string {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../deploy", name))
	if err != nil {
		s.t.Fatal(err)
	}
	text := string(raw)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			s.t.Fatalf("deploy/%s has no %q", name, replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

// nginx runs nginx with deploy/nginx.conf in front of nodes, until the test ends. It is
// given the socket that it listens on, so that no other program takes its port.
func (s *site) nginx(nodes ...*node) {
	s.t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/nginx") // where Debian has it, which is not on every PATH
	}
	if err != nil {
		s.t.Fatal("nginx is missing: run tests/prepare, or install the package nginx")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		s.t.Fatal(err)
	}
	defer socket.Close()
	s.url = "https://" + l.Addr().String()

	second := "" // there is one node
	if len(nodes) > 1 {
		second = "server " + nodes[1].public
	}
	text := s.read("nginx.conf", "server pulse-1:8080", "server "+nodes[0].public, "server pulse-2:8080", second,
		"listen 443 ssl", "listen "+l.Addr().String()+" ssl", "/etc/nginx/pulse.crt", s.file("pulse.crt"), "/etc/nginx/pulse.key", s.file("pulse.key"))
	if second == "" {
		text = strings.Replace(text, "     max_fails=0;\n", "", 1)
	}
	s.write("pulse.conf", text)
	var scratch strings.Builder
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&scratch, "%s_temp_path %s;\n", what, s.file(what))
	}
	s.write("nginx.conf", fmt.Sprintf("daemon off; worker_processes 1; user root; pid %s;\nevents {}\nhttp { access_log off;\n%sinclude %s;\n}\n",
		s.file("pid"), &scratch, s.file("pulse.conf")))
	cmd := exec.Command(path, "-p", s.dir, "-c", s.file("nginx.conf"), "-e", "stderr")
	cmd.Env = append(os.Environ(), "NGINX=3;") // the descriptor of the socket
	cmd.ExtraFiles = []*os.File{socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // which it passes on to its workers
	cmd.Stderr = s.t.Output()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("the end of nginx: %v", err)
		}
	})
}

// node is a pulse-node.
type node struct {
	cmd              *exec.Cmd
	public, internal string // host:port
}

// node runs one, at an address, or at a free one of ours.
func (s *site) node(address string, flags ...string) *node {
	s.t.Helper()
	path, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	if address == "" {
		address = ours() + ":0"
	}
	args := append([]string{"serve", "--config", s.file("pulse.yaml"), "--listen=" + address, "--internal.listen=" + ours() + ":0"}, s.flag...)
	n := &node{cmd: exec.Command(path, append(args, flags...)...)}
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	n.cmd.Stderr = s.t.Output()
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = n.cmd.Process.Kill() // it may have ended by itself
		_ = n.cmd.Wait()         // which whoever ended it has seen
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.t.Fatalf("no node is ready: %v", err)
	}
	if _, err := fmt.Sscanf(line, "listening public=http://%s internal=http://%s", &n.public, &n.internal); err != nil {
		s.t.Fatalf("%q: %v", line, err)
	}
	return n
}

// stop ends it as whoever upgrades it does, and waits.
func (n *node) stop() error {
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return n.cmd.Wait()
}

// token is one of a subject, with all rights everywhere.
func (s *site) token(subject string) string {
	s.t.Helper()
	token, err := s.key.Sign(auth.Claims{
		Tenant: "acme", Subject: subject, Expires: time.Now().Add(time.Hour),
		Grants: []auth.Grant{{Rooms: "*", Allow: auth.Rights()}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// browser is an HTTP client that knows the certificate, and comes from an address.
func (s *site) browser(from string) *http.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := &http.Client{Transport: &http.Transport{DialContext: d.DialContext, TLSClientConfig: &tls.Config{RootCAs: s.trusted}}}
	s.t.Cleanup(c.CloseIdleConnections)
	return c
}

// client connects a subject through nginx.
func (s *site) client(subject string) *client.Client {
	s.t.Helper()
	token := s.token(subject)
	c, err := client.New(client.Options{
		URL: s.url, HTTPClient: s.browser("127.0.0.1"), Token: func(context.Context) (string, error) { return token, nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
