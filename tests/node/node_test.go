package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waitDelay is how long what a program has begun may hold its output after its end.
const waitDelay = 10 * time.Second

func TestClientsInNodeJS(t *testing.T) { script(t, nil, "node.test.mjs") }

// The page's client on its own, with sockets and a clock that the test holds.
func TestTheDemoPagesClient(t *testing.T) {
	page, err := filepath.Abs("../../cmd/pulse-node/internal/demo/page")
	if err != nil {
		t.Fatal(err)
	}
	needs(t, "node")
	run(t.Context(), t, ".", []string{"PAGE=" + page}, "client.test.mjs")
}

func TestTheDemoPageInABrowser(t *testing.T) {
	for _, name := range []string{"chromium", "google-chrome"} {
		if browser, err := exec.LookPath(name); err == nil {
			script(t, []string{"CHROMIUM=" + browser}, "browser.test.mjs")
			return
		}
	}
	t.Skip("no chromium is installed: the demo page is not tried in a browser")
}

// script runs a test in Node.js against a node of its own.
func script(t *testing.T, env []string, file string) {
	needs(t, "node", "npm")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	// Where no registry answers, that is said before npm's own patience of minutes ends.
	install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000")
	install.Dir, install.WaitDelay = dir, waitDelay
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("the packages of package.json are not to be had from npm's registry: %v\n%s", err, out)
	}
	run(ctx, t, dir, append(env, startDev(ctx, t, dir)...), file)
}

func needs(t *testing.T, tools ...string) {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
}

func run(ctx context.Context, t *testing.T, dir string, env []string, file string) {
	t.Helper()
	c := exec.CommandContext(ctx, "node", "--test", "--test-timeout=240000", file)
	c.Dir, c.Env, c.WaitDelay = dir, append(os.Environ(), env...), waitDelay
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// startDev runs `pulse-node dev` until the test ends, and returns its address and
// tokens as variables.
func startDev(ctx context.Context, t *testing.T, dir string) (env []string) {
	t.Helper()
	program := filepath.Join(dir, "pulse-node")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../../cmd/pulse-node").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dev := exec.Command(program, "dev", "--listen", "127.0.0.1:0")
	var logs strings.Builder
	dev.Stderr = &logs
	stdout, err := dev.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	t.Cleanup(func() {
		_ = dev.Process.Signal(syscall.SIGTERM) // it may have failed already, as Wait says
		_, _ = io.Copy(io.Discard, stdout)      // up to its end
		if err := dev.Wait(); err != nil {
			t.Errorf("pulse-node dev: %v", err)
		}
		if t.Failed() {
			t.Log(logs.String())
		}
	})
	for range 3 {
		if !lines.Scan() {
			t.Fatalf("pulse-node dev ended: %v", lines.Err())
		}
		var a, b, c string
		fmt.Sscan(lines.Text(), &a, &b, &c) // what is missing is empty
		switch a + " " + b {
		case "token alice":
			env = append(env, "ALICE="+c)
		case "token bob":
			env = append(env, "BOB="+c)
		default:
			env = append(env, "URL=ws"+strings.TrimPrefix(strings.TrimPrefix(b, "public="), "http"))
		}
	}
	return env
}
