package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// onRedis is a configuration on a server, and a bridge of it.
func onRedis(t *testing.T, address string) (file string, b *redis.Bridge) {
	t.Helper()
	key := write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
	file = write(t, "pulse.yaml", fmt.Sprintf("deployment_key_file: %s\nbridge: { redis: { addresses: [%q], key_prefix: 'k:' } }\n", key, address))
	b, err := redis.New(redis.Config{Addresses: []string{address}, KeyPrefix: "k:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return file, b
}

// keep publishes one event of a room and returns where it stands.
func keep(t *testing.T, b *redis.Bridge, topic codec.Topic, name string, data codec.Data, r bridge.Retention) codec.Position {
	t.Helper()
	done := make(chan bridge.Published, 1)
	e := codec.NewEvent(topic, name, data, codec.Origin{EID: "e-" + name, From: "alice", Session: "s1", TS: 7})
	b.Publish(topic, r, []bridge.Publication{{Event: e, Buffered: true}}, func(p []bridge.Published) { done <- p[0] })
	select {
	case p := <-done:
		if p.Err != nil {
			t.Fatal(p.Err)
		}
		return p.Position
	case <-time.After(15 * time.Second):
		t.Fatal("no answer")
	}
	return codec.Position{}
}

// The history of a room is printed as clients are sent it, whatever codec and
// compression it is kept in; nothing on the server changes by it.
func TestReplayPrintsAHistory(t *testing.T) {
	s := server.Start(t, "--enable-debug-command", "yes")
	file, b := onRedis(t, s.Address())
	r := bridge.Retention{Events: 5, Age: time.Hour}
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	data := func(c codec.Codec, raw string) codec.Data {
		d, err := codec.MakeData(c, []byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	long := `"` + strings.Repeat("x", 3000) + `"`
	first := keep(t, b, topic, "gone", codec.Data{}, r)
	keep(t, b, topic, "null", codec.Data{}, r)
	keep(t, b, topic, "json", data(codec.JSON, `{"a":[1,2]}`), r)
	keep(t, b, topic, "msgpack", data(codec.Msgpack, "\x82\xa1a\x01\xa1b\xc4\x02\xff\xfe"), r)
	keep(t, b, topic, "long", data(codec.JSON, long), r)
	last := keep(t, b, topic, "last", data(codec.JSON, "9"), r)
	line := func(offset int, name, data string) string {
		return fmt.Sprintf(`{"t":"event","room":"chat:1","event":%q,"data":%s,"eid":"e-%s","epoch":%q,"offset":%d,"from":"alice","session":"s1","ts":7}`+"\n",
			name, data, name, last.Epoch, offset)
	}
	all := []string{line(2, "null", "null"), line(3, "json", `{"a":[1,2]}`), line(4, "msgpack", `{"a":1,"b":"//4="}`), line(5, "long", long), line(6, "last", "9")}
	digest := s.Do("DEBUG", "DIGEST")
	ttl := s.Do("PEXPIRETIME", "k:meta:acme:chat:1")
	at := func(offset uint64) string { return fmt.Sprintf("--since=%s:%d", last.Epoch, offset) }
	for _, tt := range []struct {
		args string
		code int
		out  string
		errs string // a part
	}{
		{"chat:1", exitOK, strings.Join(all, ""), ""},
		{at(3) + " chat:1", exitOK, strings.Join(all[2:], ""), ""},
		{"--limit 2 chat:1", exitOK, strings.Join(all[:2], ""), "go on with --since " + last.Epoch + ":3"},
		{at(4) + " --limit 2 chat:1", exitOK, strings.Join(all[3:], ""), ""},
		{at(6) + " chat:1", exitOK, "", ""},
		{at(first.Offset-1) + " chat:1", exitFailed, "", "is not all kept"},
		{at(7) + " chat:1", exitFailed, "", "no position of this history"},
		{"--since=other:1 chat:1", exitFailed, "", "no position of this history"},
		{"chat:2", exitFailed, "", "no room chat:2 of tenant acme"},
	} {
		code, out, errs := runOnce(t, nil, append([]string{"replay", "--config", file, "--tenant", "acme"}, strings.Fields(tt.args)...)...)
		if code != tt.code || out != tt.out || !strings.Contains(errs, tt.errs) || (tt.errs == "") != (errs == "") {
			t.Errorf("%s: exit %d, output\n%s\nerrors %q", tt.args, code, out, errs)
		}
	}
	if s.Do("DEBUG", "DIGEST") != digest || s.Do("PEXPIRETIME", "k:meta:acme:chat:1") != ttl {
		t.Error("it changes what is on the server")
	}

	s.Do("ZADD", "k:buffer:acme:chat:1", "7", "7|what is this")
	if code, out, _ := runOnce(t, nil, "replay", "--config", file, "--tenant", "acme", at(6), "chat:1"); code != exitOK || !strings.HasPrefix(out, `{"epoch":"`+last.Epoch+`","error":"redis: `) {
		t.Errorf("what nobody can read: exit %d, %s", code, out)
	}
	b.Close()
	s.Kill()
	if code, out, errs := runOnce(t, nil, "replay", "--config", file, "--tenant", "acme", "chat:1"); code != exitFailed || out != "" || errs == "" {
		t.Errorf("without a server: exit %d, %s%s", code, out, errs)
	}
}

// What is too old is not printed, though it is still there, and does not stand in the
// way of what is not.
func TestReplayLeavesOutWhatIsTooOld(t *testing.T) {
	s := server.Start(t)
	file, b := onRedis(t, s.Address())
	topic := codec.Topic{Tenant: "acme", Room: "chat:1"}
	r := bridge.Retention{Events: 5, Age: 3500 * time.Millisecond}
	keep(t, b, topic, "old", codec.Data{}, r)
	<-time.After(3 * time.Second) // for as long the new one is there without the old one
	keep(t, b, topic, "new", codec.Data{}, r)
	for _, want := range []string{`"event":"new"`, ""} {
		for end := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
			_, out, _ := runOnce(t, nil, "replay", "--config", file, "--tenant", "acme", "--limit", "1", "chat:1")
			if strings.Contains(out, want) && (out == "") == (want == "") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%q, not %q", out, want)
			}
		}
	}
	if n := s.Do("ZCARD", "k:buffer:acme:chat:1"); n != "2" {
		t.Errorf("%s are there", n)
	}
}
