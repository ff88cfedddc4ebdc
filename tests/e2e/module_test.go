package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/auth"
)

// shown is the program of the README's part about embedding: the code that it
// shows, with the imports that it needs.
func shown(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(readme), "\n## Embed it\n")
	_, code, found := strings.Cut(part, "```go\n")
	code, _, closed := strings.Cut(code, "```")
	if !found || !closed {
		t.Fatal("the README shows no program")
	}
	var imports strings.Builder
	for name, path := range map[string]string{
		"context": "context", "log": "log", "http": "net/http", "os": "os", "auth": module + "/auth",
		"codec": module + "/codec", "engine": module + "/engine", "room": module + "/actors/room",
	} {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(code) {
			fmt.Fprintf(&imports, "\t%q\n", path)
		}
	}
	return "package main\n\nimport (\n" + imports.String() + ")\n\n" + code
}

const module = "github.com/yaza-dev/pulse"

// A module of somebody else's, outside the repository, with what the README shows:
// it compiles, runs and plays an auction.
func TestAFreshModuleEmbedsWhatTheReadmeShows(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// Of an address of the loopback that nobody else uses, no port is taken by the time
	// that the program has been built.
	address := fmt.Sprintf("127.%d.%d.%d:8080", 1+rand.N(254), rand.N(256), 1+rand.N(254))
	program := strings.Replace(shown(t), "127.0.0.1:8080", address, 1)
	if !strings.Contains(program, address) {
		t.Fatal("the README's program listens elsewhere than at 127.0.0.1:8080")
	}
	// The versions of this repository, so that nothing is looked up elsewhere.
	ours, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(ours), "\n\ngo ")
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": program,
		"go.mod":  "module example.com/auction\n\ngo " + requires + "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n",
		"go.sum":  string(sums),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", "auction", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, program)
	}
	key := auth.Key{Alg: auth.HS256, Secret: []byte(strings.Repeat("k", 32))}
	run := exec.CommandContext(ctx, filepath.Join(dir, "auction"))
	run.Env = append(os.Environ(), "AUCTION_KEY="+string(key.Secret))
	var said strings.Builder
	run.Stderr = &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill() // it has no end of its own
		_ = run.Wait()         // says that it was killed
		if t.Failed() {
			t.Log(said.String())
		}
	})
	awaitListener(ctx, t, address)
	n := &node{url: "http://" + address}
	for _, in := range wires {
		token, err := key.Sign(auth.Claims{
			Tenant: "acme", Subject: "alice", Expires: time.Now().Add(time.Hour),
			Grants: []auth.Grant{{Rooms: "auction:*", Allow: []auth.Right{auth.Join, auth.Publish}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := enter(t, n, in, token, "auction:"+string(in))
		for _, bid := range []struct {
			amount int
			code   any
		}{{10, nil}, {9, "conflict"}, {10, "conflict"}, {11, nil}} {
			r := c.ask(`{"t":"publish","room":"auction:%s","event":"bid","data":%d}`, in, bid.amount)
			err, _ := r["err"].(map[string]any)
			if got := err["code"]; got != bid.code {
				t.Errorf("a bid of %d: %v", bid.amount, r)
			}
		}
		late, w := enter(t, n, in, token, "auction:"+string(in))
		if state := fmt.Sprint(w["rooms"].([]any)[0].(map[string]any)["ok"].(map[string]any)["data"]); state != "map[by:alice high:11]" {
			t.Errorf("who comes late is told %s", state)
		}
		late.cut()
		c.cut()
	}
}

// awaitListener waits until something listens.
func awaitListener(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("nothing listens: %v", err)
		}
	}
}
