package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/tests/redis/server"
)

// A node is not called well before what it publishes has come back to it by Redis, and
// says why it is not: here its user may do everything but one thing. What is off in
// silence is found by who needs it. StackExchange/StackExchange.Redis#439
func TestB155_TheBridgeHearsItselfBeforeItIsReady(t *testing.T) {
	deployment := write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
	password := write(t, "password", "secret\n")
	redis := server.Start(t)
	for user, rules := range map[string][]string{
		"all":         {"~*", "&*", "+@all"},
		"unpublished": {"~*", "&*", "+@all", "-publish"},
		"elsewhere":   {"~*", "resetchannels", "&other:*", "+@all"},
	} {
		redis.Do(append([]string{"ACL", "SETUSER", user, "on", ">secret"}, rules...)...)
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			n := &trial{running: start(t, "serve", "--config", write(t, "pulse.yaml", trialYAML), "--bridge.redis.addresses="+redis.Address(),
				"--deployment_key_file="+deployment, "--bridge.redis.username="+user, "--bridge.redis.password_file="+password), t: t}
			var well bool
			var text string
			look := awhile
			if user == "all" {
				look = trialTime
			}
			soon(look, func() bool {
				_, text = get(t, n.internal+"/readyz")
				well = strings.Contains(text, `"ok"`)
				return well
			})
			if want := user == "all"; well != want || !want && !strings.Contains(text, `"why":"`) {
				t.Errorf("it says %s", text)
			}
		})
	}
}

// Why there is no Redis is in the log, once: an address, a certificate, a name that is
// wrong is not found by guessing.
func TestLogTellsWhyThereIsNoRedis(t *testing.T) {
	deployment := write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
	plain := server.Start(t)
	group := server.StartSentinels(t, time.Second)
	strangers := byTLS(t, plain)
	for _, tt := range []struct {
		rule  string
		flags []string
		says  string
	}{
		{"nobody is there", []string{"bridge.redis.addresses=127.0.0.1:1"}, "connection refused"},
		{"a certificate of somebody else", []string{"bridge.redis.addresses=" + strangers.address, "bridge.redis.tls=true"}, "certificate"},
		{"a cluster that is none", []string{"bridge.redis.addresses=" + plain.Address(), "bridge.redis.mode=cluster"}, "cluster support disabled"},
		{"a master by another name", []string{"bridge.redis.addresses=" + strings.Join(group.Addresses, ","), "bridge.redis.mode=sentinel", "bridge.redis.master_name=other"}, `knows no master "other"`},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			n := start(t, append([]string{"serve", "--config", write(t, "pulse.yaml", trialYAML), "--deployment_key_file=" + deployment}, flagsOf(tt.flags)...)...)
			said := func() (lines []string) {
				for line := range strings.Lines(n.logs.String()) {
					var entry struct{ Level, Msg, Err string }
					if err := json.Unmarshal([]byte(line), &entry); err != nil {
						t.Fatal(err)
					}
					if entry.Level == "WARN" && entry.Err != "" {
						lines = append(lines, entry.Err)
					}
				}
				return lines
			}
			if !soon(trialTime, func() bool {
				return slices.ContainsFunc(said(), func(line string) bool { return strings.Contains(line, tt.says) })
			}) {
				t.Errorf("%s", n.logs)
			}
		})
	}
}

// front is a Redis that is reached by TLS.
type front struct{ address, cert string }

// byTLS ends TLS before a server, for as long as the test runs.
func byTLS(t *testing.T, redis *server.Server) front {
	t.Helper()
	cert, key, _ := newCertificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for client, err := l.Accept(); err == nil; client, err = l.Accept() {
			all.Go(func() {
				defer client.Close()
				behind, err := net.Dial("tcp", redis.Address())
				if err != nil {
					return
				}
				defer behind.Close()
				all.Go(func() {
					_, _ = io.Copy(behind, client) // until either ends
					_ = behind.Close()
				})
				_, _ = io.Copy(client, behind)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait() // for nodes that have ended
	})
	return front{l.Addr().String(), cert}
}

// Redis may be reached by TLS: by whom the system trusts, or the file that SSL_CERT_FILE
// names.
func TestRedisByTLS(t *testing.T) {
	redis := byTLS(t, server.Start(t))
	cmd := serving(t, write(t, "pulse.yaml", keys))
	cmd.Args = append(cmd.Args, "--bridge.redis.addresses="+redis.address, "--bridge.redis.tls=true",
		"--deployment_key_file="+write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"))
	cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+redis.cert)
	_, internal := listens(t, cmd)
	defer http.DefaultClient.CloseIdleConnections()
	text := ""
	if !soon(trialTime, func() bool {
		_, text = get(t, internal+"/readyz")
		return strings.Contains(text, `"ok"`)
	}) {
		t.Errorf("it says %s", text)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("end: %v", err)
	}
}
