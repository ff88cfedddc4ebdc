package redis_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// later is a node of a later build, which writes by hand what it would.
type later struct {
	t *testing.T
	s *server.Server
}

// publish puts an event where the next one goes, its envelope changed, and tells of it.
func (l later) publish(change func(envelope []byte) []byte) {
	l.t.Helper()
	const meta, buffer = "pulse:meta:acme:chat:1", "pulse:buffer:acme:chat:1"
	envelope, err := codec.AppendEnvelope(nil, event(room, "later"), true, codec.EnvelopeLimits{MaxData: 1 << 20})
	if err != nil {
		l.t.Fatal(err)
	}
	envelope = change(envelope)
	for len(envelope)%3 != 0 {
		envelope = append(envelope, 0)
	}
	text := base64.StdEncoding.EncodeToString(envelope)
	head, err := strconv.Atoi(l.s.Do("HGET", meta, "o"))
	if err != nil {
		l.t.Fatal(err)
	}
	offset, epoch := strconv.Itoa(head+1), l.s.Do("HGET", meta, "e")
	l.s.Do("ZADD", buffer, offset, fmt.Sprintf("%s|%s%013d%07d", offset, text, time.Now().UnixMilli(), 500))
	l.s.Do("HSET", meta, "o", offset, "field-of-a-later-version", "1")
	l.s.Do("PUBLISH", "pulse:room:acme:chat:1", fmt.Sprintf("1 later %s %s - 0 words of a later version\n%s", epoch, offset, text))
}

// Two builds on one Redis understand each other: what a later one adds to messages,
// records and envelopes is passed over, live and from the history.
func TestALaterVersionThatOnlyAdds(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address())
	f := follow(t, b, room)
	fill(t, b, room, 1)
	l := later{t, s}
	l.publish(func(e []byte) []byte {
		e[1] |= 0xf0 // flags
		return append(e, "\xc8\x00\x05later\x02\x00\x00"...)
	})
	fill(t, b, room, 1)
	whole(t, f, 0, 3)
	if e := f.Log()[1]; e.EID != "later" || e.From != "alice" {
		t.Errorf("%+v", e)
	}
	page := since(t, b, room, codec.Position{Epoch: f.Position().Epoch})
	if page.Reset != codec.ResetNone || len(page.Events) != 3 || page.Events[1].EID != "later" {
		t.Errorf("%+v", page)
	}
	s.Do("PUBLISH", "pulse:ctl:"+b.Node(), "1 word of a later version")
	if n := b.Counts().Unreadable; n != 0 {
		t.Errorf("%d were not readable", n)
	}
}

// What a build must not read it does not: that is counted, and told as a reset to who
// would have got it. Everything else goes on.
func TestALaterVersionThatMayNotBeRead(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address())
	f := follow(t, b, room)
	fill(t, b, room, 2)
	reach(t, f, 2)
	l := later{t, s}
	l.publish(func(e []byte) []byte { e[0] = 2; return e })
	meet(t, f, "a reset", func(_ codec.Position, resets int) bool { return resets == 1 })
	fill(t, b, room, 1)
	reach(t, f, 4)
	if log := f.Log(); len(log) != 3 || log[2].Position.Offset != 4 {
		t.Errorf("%d events", len(log))
	}
	if n := b.Counts().Unreadable; n == 0 {
		t.Error("it was not counted")
	}
	before := b.Counts().Unreadable
	s.Do("PUBLISH", "pulse:room:acme:chat:1", "2 later "+f.Position().Epoch+" 5 - 0\nwho knows")
	eventually(t, "it to be counted", func() bool { return b.Counts().Unreadable == before+1 })
	fill(t, b, room, 1)
	reach(t, f, 5)
	if n := len(f.Resets()); n != 1 {
		t.Errorf("%d resets", n)
	}
	if h := b.Health(); h.State != bridge.Up {
		t.Errorf("%+v", h)
	}
}

// What was written when this was recorded is read: members and the record of a room, and
// a message. Whoever changes the format keeps this.
func TestARecordedBufferIsRead(t *testing.T) {
	const (
		plain  = "AQEAAAAAAZrUZU0AAAIABwAFAAIAAAAEZTFtZXNzYWdlYWxpY2VzMSJoaSIA"
		packed = "AQEAAQAAAZrUZU0AAAIABwAFAAIAAAArZTJtZXNzYWdlYWxpY2VzMR+LCAAAAAAABP/swIEMAAAMBDGXwxz9OD5pOwBgTh8AAP//vVF/3MIHAAAA"
	)
	s := server.Start(t)
	now := fmt.Sprintf("%013d", time.Now().UnixMilli())
	s.Do("ZADD", "pulse:buffer:acme:chat:1", "41", "41|"+plain+now+"0000800", "42", "42|"+packed+now+"0002800")
	s.Do("HSET", "pulse:meta:acme:chat:1", "e", "recorded", "o", "42", "low", "41", "r", "", "l", "", "b", "3600", "a", "3600000", "d", "9007199254740991")
	b := node(t, s.Address())
	f := follow(t, b, room)
	page := read(t, b, room, bridge.ReadRequest{Limit: 10})
	if page.Head.Offset != 42 || len(page.Events) != 2 {
		t.Fatalf("%+v", page)
	}
	for i, want := range []string{`"hi"`, `"` + strings.Repeat("z", 1984) + `"`} {
		if e := page.Events[i]; !bytes.Equal(e.Data.Raw(), []byte(want)) || e.EID != fmt.Sprintf("e%d", i+1) || e.From != "alice" || e.TS != 1764500000000 {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	s.Do("PUBLISH", "pulse:room:acme:chat:1", "1 node-a "+page.Head.Epoch+" 43 - 0\n"+plain)
	reach(t, f, 43)
	if e := f.Log()[0]; e.EID != "e1" || string(e.Data.Raw()) != `"hi"` {
		t.Errorf("%+v", e)
	}
}

// Buffers are read by the rules of the source's own tools: a sorted set, scored by id,
// members "<eventId>|<base64>", and after an id comes what has a higher score.
func TestBuffersAreReadByTheSourcesDecoder(t *testing.T) {
	s := server.Start(t)
	b := node(t, s.Address())
	fill(t, b, room, 5)
	accept(t, b, room, saying(room, 2048))
	members := strings.Fields(s.Do("ZRANGEBYSCORE", "pulse:buffer:acme:chat:1", "(3", "+inf"))
	if len(members) != 3 {
		t.Fatalf("%d members after 3", len(members))
	}
	for i, member := range members {
		id, text, ok := strings.Cut(member, "|")
		if score := s.Do("ZSCORE", "pulse:buffer:acme:chat:1", member); !ok || id != strconv.Itoa(4+i) || score != id {
			t.Errorf("member %q has score %s", id, score)
		}
		payload, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := codec.DecodeEnvelope(payload)
		if err != nil || v.Name != "message" || v.From != "alice" || !v.Buffered {
			t.Errorf("%+v, %v", v, err)
		}
		if zipped := bytes.HasPrefix(v.Data, []byte{0x1f, 0x8b}); zipped != (i == 2) || zipped != (v.Compression == codec.Gzip) {
			t.Errorf("data of %d bytes, gzip %v", len(v.Data), zipped)
		}
	}
}
