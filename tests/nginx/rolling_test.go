package nginx

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// shared is the configuration that deploy/ gives the nodes of compose.yaml, in front
// of a Redis of this test.
func shared(t *testing.T, flags ...string) *site {
	t.Helper()
	redis := server.Start(t)
	s := newSite(t, (&site{t: t}).read("pulse.yaml"), append([]string{
		"--bridge.redis.addresses=" + redis.Address(), "--trusted_proxies=127.0.0.1/32", "--node.drain_timeout=1s",
	}, flags...)...)
	return s
}

// ready waits until a node says that it is.
func (n *node) ready(t *testing.T) {
	t.Helper()
	for ctx := within(t, patience); ; {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.internal+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"ok"`) {
			return
		}
	}
}

// tail is a process that follows a room through nginx.
type tail struct {
	cmd   *exec.Cmd
	lines chan []byte // closed with its output
	errs  bytes.Buffer
}

func (s *site) tail(room string) *tail {
	s.t.Helper()
	path, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("tail.jwt", s.token("tail"))
	tl := &tail{cmd: exec.Command(path, "tail", "--url", s.url, "--token-file", s.file("tail.jwt"), room), lines: make(chan []byte, 10_000)}
	tl.cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+s.file("pulse.crt"))
	tl.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	tl.cmd.Stderr = &tl.errs
	out, err := tl.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := tl.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = tl.cmd.Process.Kill() }) // it may have ended
	go func() {
		defer close(tl.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			tl.lines <- bytes.Clone(lines.Bytes())
		}
	}()
	return tl
}

// give ends tail, and is what it said of errors: it is read when nothing writes any more.
func (tl *tail) give(t *testing.T) string {
	_ = tl.cmd.Process.Kill() // it may have ended
	t.Log("tail:", tl.cmd.Wait())
	return tl.errs.String()
}

// told is a frame that tail has printed.
type told struct {
	T, Room, Epoch, Session string
	Offset                  uint64
	Data                    string
	Resumed                 bool
	OK                      *place
	Rooms                   []struct{ OK *place }
}

type place struct {
	Epoch            string
	Offset           uint64
	Recovered, Reset any
}

// follower checks what tail prints, line by line.
type follower struct {
	t        *testing.T
	at       place // of the last event
	seen     map[string]int
	welcomes int
	resumed  int
}

func (f *follower) take(line []byte) {
	f.t.Helper()
	var got told
	if err := json.Unmarshal(line, &got); err != nil {
		f.t.Fatalf("%s: %v", line, err)
	}
	switch got.T {
	case "welcome":
		f.welcomes++
		if got.Resumed {
			f.resumed++
		}
		for _, room := range got.Rooms {
			f.joined(room.OK, line)
		}
	case "reply":
		f.joined(got.OK, line)
	case "event":
		if got.Epoch != f.at.Epoch || got.Offset != f.at.Offset+1 {
			f.t.Errorf("after %v comes %s", f.at, line)
		}
		f.at.Offset = got.Offset
		f.seen[got.Data]++
	case "drain", "ping", "position", "status":
	default: // reset, left, error
		f.t.Errorf("it is told %s", line)
	}
}

// joined is the answer to a join: the first, or one that goes on where it was.
func (f *follower) joined(at *place, line []byte) {
	f.t.Helper()
	switch {
	case at == nil:
		f.t.Errorf("a join is refused: %s", line)
	case f.at.Epoch == "":
		f.at = *at
	case at.Recovered != true || at.Reset != nil || at.Epoch != f.at.Epoch || at.Offset != f.at.Offset:
		f.t.Errorf("at %v it joins so: %s", f.at, line)
	}
}

// publisher publishes a numbered event over and over until it is told to stop, each
// until it is in, and returns their names.
func publisher(t *testing.T, stop <-chan struct{}, name string, publish func(data string) error) (names []string) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return names
		case <-time.After(10 * time.Millisecond): // not to be the one thing that the machine does
		}
		data := fmt.Sprint(name, " ", i)
		if err := publish(data); err != nil {
			t.Errorf("%s: %v", data, err)
			return names
		}
		names = append(names, data)
	}
}

// byRequest publishes as a server does that has no connection: it asks again, with the
// same key, for as long as it is told to, or nginx has nobody who answers.
func (s *site) byRequest(room string) func(data string) error {
	browser, token := s.browser("127.0.0.1"), s.token("requests")
	return func(data string) error {
		ctx, cancel := context.WithTimeout(s.t.Context(), patience)
		defer cancel()
		for {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/rooms/"+room+"/publish",
				strings.NewReader(fmt.Sprintf(`{"event":"message","data":%q,"dedup_key":%[1]q}`, data)))
			if err != nil {
				return err
			}
			r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
			answer, err := browser.Do(r)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			switch again := answer.Header.Get("Retry-After") != "" || answer.StatusCode == http.StatusBadGateway; {
			case err != nil:
				return err
			case answer.StatusCode == http.StatusOK:
				return nil
			case !again:
				return fmt.Errorf("%s: %s", answer.Status, text)
			}
			select {
			case <-time.After(100 * time.Millisecond): // what a client waits before it asks again
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// Each of two nodes is ended and begins anew, as for an upgrade, while clients publish
// and tail follows a room, all of them through nginx. Every event is in once, and tail
// prints each once and in order, whatever node it is at.
func TestRollingRestart(t *testing.T) {
	const room = "chat:1"
	s := shared(t)
	nodes := [2]*node{s.node(""), s.node("")}
	s.nginx(nodes[:]...)
	for _, n := range nodes {
		n.ready(t)
	}
	followed := s.tail(room)
	f := &follower{t: t, seen: map[string]int{}}
	for f.at.Epoch == "" {
		f.take(<-followed.lines)
	}

	stop := make(chan struct{})
	lists := make(chan []string, 2)
	var wg sync.WaitGroup
	c := s.client("publisher")
	byClient := func(data string) error {
		_, err := c.Publish(within(t, patience), client.Publish{Room: room, Event: "message", Data: data})
		return err
	}
	if _, err := c.Join(within(t, patience), client.Join{Room: room, NoEcho: true}); err != nil {
		t.Fatal(err)
	}
	for name, publish := range map[string]func(string) error{"client": byClient, "request": s.byRequest(room)} {
		wg.Go(func() { lists <- publisher(t, stop, name, publish) })
	}
	for range 2 {
		for i, n := range nodes {
			if err := n.stop(); err != nil {
				t.Errorf("the end of node %d: %v", i, err)
			}
			nodes[i] = s.node(n.public)
			nodes[i].ready(t)
		}
	}
	close(stop)
	wg.Wait()
	published := append(<-lists, <-lists...)

	late := time.After(patience)
	for len(f.seen) < len(published) {
		select {
		case line, ok := <-followed.lines:
			if !ok {
				t.Fatalf("tail has ended: %s", followed.give(t))
			}
			f.take(line)
		case <-late:
			t.Fatalf("tail has printed %d of %d events: %s", len(f.seen), len(published), followed.give(t))
		}
	}
	for _, data := range published {
		if f.seen[data] != 1 {
			t.Errorf("%s was printed %d times", data, f.seen[data])
		}
	}
	// Two nodes were ended twice: it was at one of them at least once each time.
	if f.welcomes < 3 || f.resumed != f.welcomes-1 {
		t.Errorf("%d welcomes, %d of them to the same session", f.welcomes, f.resumed)
	}
	if err := followed.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for line := range followed.lines {
		f.take(line)
	}
	if err := followed.cmd.Wait(); err != nil {
		t.Errorf("the end of tail: %v: %s", err, &followed.errs)
	}
	for i, n := range nodes {
		if err := n.stop(); err != nil {
			t.Errorf("the end of node %d: %v", i, err)
		}
	}
	t.Logf("%d events, %d welcomes", len(published), f.welcomes)
	http.DefaultClient.CloseIdleConnections()
}
