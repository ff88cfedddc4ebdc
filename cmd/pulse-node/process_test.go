package main

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
)

// process runs serve as a process of its own.
func process(t *testing.T) (cmd *exec.Cmd, public, internal string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe, "serve", "--config", write(t, "pulse.yaml", keys), "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0")
	cmd.Env = append(os.Environ(), asProcess+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	m := listening.FindStringSubmatch(lines.Text())
	if m == nil {
		t.Fatalf("first line %q", lines.Text())
	}
	return cmd, m[1], m[2]
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
