package behaviour

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// variant is one way to meet a node.
type variant struct {
	codec            codec.Codec
	compression, tls bool
}

func (v variant) String() string {
	name := v.codec.String()
	if v.compression {
		name += " compressed"
	}
	if v.tls {
		name += " tls"
	}
	return name
}

func eachVariant(t *testing.T, p *program, test func(t *testing.T, v variant, n *node)) {
	for _, c := range []codec.Codec{codec.JSON, codec.Msgpack} {
		for _, compression := range []bool{false, true} {
			for _, secure := range []bool{false, true} {
				v := variant{c, compression, secure}
				t.Run(v.String(), func(t *testing.T) {
					t.Parallel()
					test(t, v, p.serve(t, v))
				})
			}
		}
	}
}

// Three clients that share no code with each other see the same node.
func TestOneScriptForEveryClient(t *testing.T) {
	p := build(t)
	for name, dial := range map[string]dialer{"gws": dialGWS, "coder": dialCoder} {
		t.Run(name, func(t *testing.T) {
			eachVariant(t, p, func(t *testing.T, v variant, n *node) { perform(t, v, n, dial) })
		})
	}
	t.Run("npm ws", func(t *testing.T) {
		dir := packages(t)
		eachVariant(t, p, func(t *testing.T, v variant, n *node) { performInNode(t, dir, v, n) })
	})
}

// packages is a folder with the driver for Node.js, its packages and the script.
func packages(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	dir := t.TempDir()
	for _, file := range []string{"../node/package.json", "../node/package-lock.json", "../node/behaviour.mjs", "script.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.Base(file)), string(text))
	}
	// Where no registry answers, that is said before npm's own patience of minutes ends.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000")
	install.Dir, install.WaitDelay = dir, 10*time.Second // for what npm has begun
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("the packages of tests/node are not to be had from npm's registry: %v\n%s", err, out)
	}
	return dir
}

// performInNode has behaviour.mjs perform the script.
func performInNode(t *testing.T, dir string, v variant, n *node) {
	setting, err := json.Marshal(map[string]any{
		"url": n.url, "pid": n.process.Pid, "alice": n.tokens["alice"], "bob": n.tokens["bob"],
		"codec": v.codec.String(), "compression": v.compression, "ca": n.cert,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "node", "behaviour.mjs")
	c.Dir = dir
	c.Env = append(os.Environ(), fmt.Sprintf("BEHAVIOUR=%s", setting))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, strings.TrimSpace(string(out)))
	}
}
