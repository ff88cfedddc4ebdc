package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// roomy lets members talk in chat, and everybody in open.
var roomy = strings.Replace(keys, "chat: {}", "chat: {}, open: { publish: grant }", 1)

// fixture is a node and a token of alice.
type fixture struct {
	*running
	file, token string
}

func fixed(t *testing.T, yaml string, allow ...string) *fixture {
	t.Helper()
	f := &fixture{file: write(t, "pulse.yaml", yaml)}
	f.running = start(t, "serve", "--config", f.file, "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0", "--node.drain_timeout=1s")
	f.token = f.tokenFile(t, allow...)
	return f
}

func (f *fixture) tokenFile(t *testing.T, allow ...string) string {
	t.Helper()
	code, token, errs := runOnce(t, nil, append([]string{"token", "--config", f.file, "--tenant", "acme", "--sub", "alice", "--rooms", "*"}, allow...)...)
	if code != exitOK {
		t.Fatal(errs)
	}
	return write(t, "alice.jwt", token)
}

func (f *fixture) publish(t *testing.T, args ...string) (int, map[string]any) {
	t.Helper()
	code, out, errs := runOnce(t, nil, append([]string{"publish", "--url", f.public, "--token-file", f.token}, args...)...)
	var answer map[string]any
	if err := json.Unmarshal([]byte(out), &answer); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("publish %v: output %q, errors %q", args, out, errs)
	}
	return code, answer
}

func TestPublishPrintsOneLine(t *testing.T) {
	f := fixed(t, roomy)
	for rule, tt := range map[string]struct {
		args []string
		code int
		says string // of the answer, as fmt prints it
	}{
		"by a grant":                  {[]string{"open", "message", `{"n":9007199254740993}`}, exitOK, "offset:1"},
		"as a member, which it joins": {[]string{"chat:1", "message", `"hi"`}, exitOK, "outcome:accepted"},
		"to a kind that is none":      {[]string{"nowhere", "message", `1`}, exitFailed, "code:not_found"},
		"to a room that is no name":   {[]string{"a b", "message", `1`}, exitFailed, "code:bad_request"},
		"an event that is no name":    {[]string{"open", "a b", `1`}, exitFailed, "code:bad_request"},
	} {
		t.Run(rule, func(t *testing.T) {
			if code, answer := f.publish(t, tt.args...); code != tt.code || !strings.Contains(fmt.Sprint(answer), tt.says) {
				t.Errorf("exit %d, %v", code, answer)
			}
		})
	}
	first, again := func() (map[string]any, map[string]any) {
		_, a := f.publish(t, "--dedup-key", "k", "open", "message", "1")
		_, b := f.publish(t, "--dedup-key", "k", "open", "message", "2")
		return a["ok"].(map[string]any), b["ok"].(map[string]any)
	}()
	if first["eid"] != again["eid"] || again["duplicate"] != true {
		t.Errorf("a repeat: %v, then %v", first, again)
	}
}

func TestPublishAndTailThatCannotConnectAreExit1(t *testing.T) {
	f := fixed(t, roomy)
	bad := write(t, "bad.jwt", "x.y.z")
	for _, tt := range []struct{ rule, url, token, says string }{
		{"nobody listens", "ws://127.0.0.1:1", f.token, "refused"},
		{"a bad token", f.public, bad, "4401"},
	} {
		for _, command := range []string{"publish", "tail"} {
			args := []string{command, "--url", tt.url, "--token-file", tt.token, "open"}
			if command == "publish" {
				args = append(args, "message", "1")
			}
			if code, out, errs := runOnce(t, nil, args...); code != exitFailed || out != "" || !strings.Contains(errs, tt.says) {
				t.Errorf("%s, %s: exit %d, output %q, errors %q", command, tt.rule, code, out, errs)
			}
		}
	}
}

// tailing is a tail that runs within the test.
type tailing struct {
	lines <-chan map[string]any
	errs  *synced
	end   func() int
}

// synced is a buffer that a program writes and a test reads.
type synced struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (s *synced) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *synced) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func tails(t *testing.T, args ...string) *tailing {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, w := io.Pipe()
	lines, code, errs := make(chan map[string]any, 64), make(chan int, 1), new(synced)
	go func() {
		p := program{args: append([]string{"tail"}, args...), stdout: w, stderr: errs}
		code <- p.run(ctx)
		w.Close()
	}()
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			var frame map[string]any
			if err := json.Unmarshal(s.Bytes(), &frame); err != nil {
				t.Errorf("line %q: %v", s.Text(), err)
			}
			lines <- frame
		}
	}()
	return &tailing{lines, errs, func() int { cancel(); return <-code }}
}

// until skips frames until one of type kind.
func (tl *tailing) until(t *testing.T, kind string) map[string]any {
	t.Helper()
	for late := time.After(10 * time.Second); ; {
		select {
		case f, ok := <-tl.lines:
			if !ok {
				t.Fatalf("it ended before a %s: %s", kind, tl.errs)
			}
			if f["t"] == kind {
				return f
			}
		case <-late:
			t.Fatalf("no %s", kind)
		}
	}
}

func TestTailPrintsEveryFrameAndGoesOnFromAPosition(t *testing.T) {
	f := fixed(t, roomy)
	tl := tails(t, "--url", f.public, "--token-file", f.token, "open", "chat:1")
	if w := tl.until(t, "welcome"); w["tenant"] != "acme" {
		t.Errorf("%v", w)
	}
	f.publish(t, "open", "message", `"one"`)
	first := tl.until(t, "event")
	if first["data"] != "one" || first["room"] != "open" {
		t.Errorf("%v", first)
	}
	f.publish(t, "open", "message", `"two"`)
	tl.until(t, "event")
	if code := tl.end(); code != exitOK {
		t.Errorf("exit %d: %s", code, tl.errs)
	}
	since := tails(t, "--url", f.public, "--token-file", f.token, "--since", fmt.Sprint(first["epoch"], ":", first["offset"]), "open")
	if e := since.until(t, "event"); e["data"] != "two" {
		t.Errorf("since the first: %v", e)
	}
	since.end()
}

func TestTailEndsWhenARoomIsRefused(t *testing.T) {
	f := fixed(t, roomy)
	tl := tails(t, "--url", f.public, "--token-file", f.token, "open", "nowhere")
	for range tl.lines { // to its end
	}
	if code := tl.end(); code != exitFailed || !strings.Contains(tl.errs.String(), "nowhere") {
		t.Errorf("exit %d: %s", code, tl.errs)
	}
}
