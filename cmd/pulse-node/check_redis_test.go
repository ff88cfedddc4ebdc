package main

import (
	"crypto/tls"
	"encoding/json"
	"slices"
	"strings"
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
			soon(awhile, func() bool {
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
	cert, key, _ := newCertificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	strangers, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // until the listener is closed
		for c, err := strangers.Accept(); err == nil; c, err = strangers.Accept() {
			_ = c.(*tls.Conn).Handshake() // which the client breaks off
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { strangers.Close() })
	for _, tt := range []struct {
		rule  string
		flags []string
		says  string
	}{
		{"nobody is there", []string{"bridge.redis.addresses=127.0.0.1:1"}, "connection refused"},
		{"a certificate of somebody else", []string{"bridge.redis.addresses=" + strangers.Addr().String(), "bridge.redis.tls=true"}, "certificate"},
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
