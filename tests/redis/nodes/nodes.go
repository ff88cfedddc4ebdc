// Package nodes runs real pulse-node processes for tests: several of one deployment, which
// share a Redis and a configuration, and are killed where it matters that nothing of a node
// is left.
package nodes

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/yaza-dev/pulse/tests/redis/server"
)

// TB is what a test gives, or a program that runs nodes.
type TB interface {
	server.TB
	Output() io.Writer // where nodes write their logs
}

// Deployment is a folder with the program and what its nodes share.
type Deployment struct {
	tb  TB
	dir string
}

// Deploy builds pulse-node from this module's source. config is YAML, to which what every
// node needs is added: listeners on free ports, a key for tokens, a deployment key.
func Deploy(tb TB, config string) *Deployment {
	tb.Helper()
	d := &Deployment{tb, tb.TempDir()}
	build := exec.Command("go", "build", "-o", d.path("pulse-node"), "github.com/yaza-dev/pulse/cmd/pulse-node")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	d.write("jwt", "a secret of the nodes of this test only")
	d.write("deployment", base64.StdEncoding.EncodeToString([]byte("another secret, of 32 bytes just"))+"\n")
	d.write("pulse.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
internal: { listen: 127.0.0.1:0 }
auth: { jwt: { keys: [ { alg: HS256, secret_file: %[1]s } ] } }
deployment_key_file: %[2]s
%[3]s`, d.path("jwt"), d.path("deployment"), config))
	return d
}

func (d *Deployment) path(name string) string { return filepath.Join(d.dir, name) }

func (d *Deployment) write(name, text string) {
	d.tb.Helper()
	if err := os.WriteFile(d.path(name), []byte(text), 0o600); err != nil {
		d.tb.Fatal(err)
	}
}

// command is one of the program's. What the tests' own environment says is no setting.
func (d *Deployment) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(d.path("pulse-node"), append([]string{name, "--config", d.path("pulse.yaml")}, args...)...)
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PULSE_") })
	return c
}

// Token lets a subject of the tenant acme do everything in every room, for an hour.
func (d *Deployment) Token(subject string) string {
	d.tb.Helper()
	out, err := d.command("token", "--tenant", "acme", "--sub", subject, "--rooms", "*").Output()
	if err != nil {
		d.tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Node is a running pulse-node.
type Node struct {
	Public, Internal string // host:port

	tb    TB
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start runs one more node, and returns when clients may come. It ends with the test.
func (d *Deployment) Start() *Node {
	d.tb.Helper()
	n := &Node{tb: d.tb, cmd: d.command("serve"), ended: make(chan struct{})}
	n.cmd.Stderr = d.tb.Output()
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		d.tb.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		d.tb.Fatal(err)
	}
	d.tb.Cleanup(n.Kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { defer close(n.ended); _ = n.cmd.Wait() }() // how it ends is the test's doing
	if err != nil {
		d.tb.Fatalf("no node is ready: %v", err)
	}
	for _, field := range strings.Fields(line) {
		if address, ok := strings.CutPrefix(field, "public=http://"); ok {
			n.Public = address
		}
		if address, ok := strings.CutPrefix(field, "internal=http://"); ok {
			n.Internal = address
		}
	}
	return n
}

// Kill ends it at once.
func (n *Node) Kill() {
	_ = n.cmd.Process.Kill() // it may have ended
	<-n.ended
}

// Freeze stops it in the middle of whatever it does, until Thaw.
func (n *Node) Freeze() { n.signal(syscall.SIGSTOP) }
func (n *Node) Thaw()   { n.signal(syscall.SIGCONT) }

func (n *Node) signal(what syscall.Signal) {
	n.tb.Helper()
	if err := n.cmd.Process.Signal(what); err != nil {
		n.tb.Fatal(err)
	}
}

// Ready is what /readyz says; empty where it does not answer with 200.
func (n *Node) Ready() string {
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	r, err := c.Get("http://" + n.Internal + "/readyz")
	if err != nil {
		return ""
	}
	defer func() { _ = r.Body.Close() }() // read as far as it matters
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}
