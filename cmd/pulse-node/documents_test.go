package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// block is the first part of a document that is marked as of a language, of those that
// have text in them.
func block(t *testing.T, document, language, text string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("../..", document))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(page), "```"+language+"\n")[1:] {
		if shown, _, _ := strings.Cut(part, "```"); strings.Contains(shown, text) {
			return shown
		}
	}
	t.Fatalf("%s has no %s with %q", document, language, text)
	return ""
}

// What README and the operations guide tell a newcomer to type works, word for word but
// for the places of files and the addresses.
func TestCommandsOfDocuments(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ document, file, of string }{
		{"README.md", "pulse.yaml", "bin/pulse-node serve"},
		{"docs/operations.md", "/etc/pulse/pulse.yaml", "pulse-node serve"},
	} {
		t.Run(tt.document, func(t *testing.T) {
			dir := t.TempDir()
			here := strings.NewReplacer("/etc/pulse/", dir+"/etc/")
			for _, folder := range []string{"bin", "etc"} {
				if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(exe, filepath.Join(dir, "bin/pulse-node")); err != nil {
				t.Fatal(err)
			}
			yaml := filepath.Join(dir, "pulse.yaml")
			if tt.file != "pulse.yaml" {
				yaml = here.Replace(tt.file)
			}
			if err := os.WriteFile(yaml, []byte(here.Replace(block(t, tt.document, "yaml", "auth:"))), 0o600); err != nil {
				t.Fatal(err)
			}
			run := func(line string) *exec.Cmd {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", "exec "+line)
				if strings.ContainsAny(line, "|>") {
					cmd = exec.CommandContext(t.Context(), "sh", "-c", line)
				}
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), asProcess+"=1", "PATH="+dir+"/bin:"+os.Getenv("PATH"),
					"PULSE_LISTEN=127.0.0.1:0", "PULSE_INTERNAL_LISTEN=127.0.0.1:0")
				cmd.Stderr = t.Output()
				return cmd
			}
			commands := block(t, tt.document, "sh", tt.of)
			if tt.document != "README.md" {
				commands += block(t, tt.document, "sh", "pulse-node tail")
			}
			url := ""
			for line := range strings.Lines(here.Replace(commands)) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
				line = strings.ReplaceAll(line, "wss://pulse.example.com", url)
				background := strings.Contains(line, " serve ") || strings.HasSuffix(line, "&")
				line = strings.TrimSuffix(line, "&")
				cmd := run(line)
				switch {
				case line == "" || strings.HasPrefix(line, "make "):
				case background:
					first := begin(t, cmd)
					if m := listening.FindStringSubmatch(first); m != nil {
						url = m[1]
					} else if !strings.Contains(first, `"welcome"`) {
						t.Fatalf("%s: %s", line, first)
					}
				default:
					out, err := cmd.Output()
					if err != nil || !strings.Contains(line, ">") && len(out) == 0 {
						t.Fatalf("%s: %v, output %q", line, err, out)
					}
				}
			}
			if url == "" {
				t.Error("no node was run")
			}
		})
	}
}

// begin runs a command until the test ends, and returns its first line.
func begin(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // killed
	})
	ctx, cancel := context.WithTimeout(t.Context(), trialTime)
	defer cancel()
	context.AfterFunc(ctx, func() { out.Close() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return strings.TrimSpace(line)
}
