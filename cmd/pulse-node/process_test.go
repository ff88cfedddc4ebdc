package main

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
)

// process runs serve as a process of its own.
func process(t *testing.T) (cmd *exec.Cmd, public, internal string) {
	t.Helper()
	cmd = serving(t, write(t, "pulse.yaml", keys))
	public, internal = listens(t, cmd)
	return cmd, public, internal
}

// serving is such a process that has not begun.
func serving(t *testing.T, file string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "serve", "--config", file, "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0")
	cmd.Env = append(os.Environ(), asProcess+"=1")
	return cmd
}

// listens begins it, and returns where it listens.
func listens(t *testing.T, cmd *exec.Cmd) (public, internal string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run(t, cmd)
	lines := bufio.NewScanner(out)
	lines.Scan()
	m := listening.FindStringSubmatch(lines.Text())
	if m == nil {
		t.Fatalf("first line %q", lines.Text())
	}
	return m[1], m[2]
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
}

// pipe is one between a process and the test.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestSignalsEndTheProcess(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd, _, _ := process(t)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("end: %v", err)
			}
		})
	}
}

func TestSecondSignalEndsTheProcessAtOnce(t *testing.T) {
	cmd, public, internal := process(t)
	code, token, errs := runOnce(t, nil, "token", "--config", write(t, "pulse.yaml", keys), "--tenant", "acme", "--sub", "alice")
	if code != exitOK {
		t.Fatal(errs)
	}
	// A client that does not answer the close holds the drain up.
	c, _, err := websocket.Dial(t.Context(), public+"/v1/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"t":"hello","token":"`+strings.TrimSpace(token)+`"}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	for code := 200; code != 503; { // until it drains
		code, _ = get(t, internal+"/readyz")
	}
	cmd.Process.Signal(syscall.SIGTERM)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("end: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Who reads what a node says may end before it: that costs the lines, and no client.
// moby/moby#19728
func TestNodeOutlivesWhoReadsItsOutput(t *testing.T) {
	end := func(t *testing.T, cmd *exec.Cmd) {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("end: %v", err)
		}
	}
	t.Run("of logs", func(t *testing.T) {
		cmd := serving(t, write(t, "pulse.yaml", keys))
		r, w := pipe(t)
		cmd.Stderr = w
		public, _ := listens(t, cmd)
		r.Close()
		for range 3 { // each is a line in the log
			if _, closed := hello(t, public, "no token", nil); closed != 4401 {
				t.Fatalf("closed with %d", closed)
			}
		}
		end(t, cmd)
	})
	t.Run("of where it listens", func(t *testing.T) {
		cmd := serving(t, write(t, "pulse.yaml", keys))
		r, w := pipe(t)
		r.Close()
		cmd.Stdout = w
		logs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		run(t, cmd)
		lines := bufio.NewScanner(logs)
		if lines.Scan(); !strings.Contains(lines.Text(), "http://127.0.0.1:") {
			t.Fatalf("first line of the log %q", lines.Text())
		}
		end(t, cmd)
	})
}

// A reload that is asked for before the configuration has been read once follows it.
func TestReloadThatComesEarly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pulse.yaml")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := serving(t, file)
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run(t, cmd)
	var reads *os.File // by whom the file is read
	if !soon(trialTime, func() bool {
		reads, err = os.OpenFile(file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	}) {
		t.Fatal(err)
	}
	defer reads.Close()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(write(t, "pulse.yaml", keys), file); err != nil { // for who reads again
		t.Fatal(err)
	}
	if _, err := reads.WriteString(keys); err != nil {
		t.Fatal(err)
	}
	reads.Close()
	lines := bufio.NewScanner(out)
	if lines.Scan(); !listening.MatchString(lines.Text()) {
		t.Fatalf("first line %q", lines.Text())
	}
	lines = bufio.NewScanner(logs)
	if lines.Scan(); !strings.Contains(lines.Text(), "configuration reloaded") {
		t.Errorf("first line of the log %q", lines.Text())
	}
}
