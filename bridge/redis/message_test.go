package redis

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/codec"
)

var topicOne = codec.Topic{Tenant: "acme", Room: "chat:1"}

func sample(size int) *codec.Event {
	data, err := codec.MakeData(codec.JSON, []byte(`"`+strings.Repeat("x", size)+`"`))
	if err != nil {
		panic(err)
	}
	return codec.NewEvent(topicOne, "message", data, codec.Origin{EID: "e1", From: "alice", Session: "s1", TS: 5})
}

// A text is base64 without padding, and so is a member's second part, which the rules of
// the source's tools read: "<eventId>|<base64>".
func TestTexts(t *testing.T) {
	w := &texts{limits: codec.EnvelopeLimits{CompressAbove: 1024, MaxData: 1 << 20}}
	for size := range 64 {
		e := sample(size)
		text, err := w.of(e, true)
		if err != nil {
			t.Fatal(err)
		}
		member := "17|" + text + "1765432100000" + "0000450"
		raw, err := base64.StdEncoding.DecodeString(strings.SplitN(member, "|", 2)[1])
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		v, err := codec.DecodeEnvelope(raw)
		if err != nil || v.EID != "e1" || v.Name != "message" || !v.Buffered {
			t.Fatalf("%d bytes: %+v, %v", size, v, err)
		}
		offset, inner, err := memberOf(member)
		if err != nil || offset != 17 || inner != text {
			t.Fatalf("%d bytes: %d, %v", size, offset, err)
		}
		got, err := event(topicOne, codec.Position{Epoch: "e", Offset: 17}, inner, 1<<20)
		if err != nil || got.EID != e.EID || !bytes.Equal(got.Data.Raw(), e.Data.Raw()) || got.Position.Offset != 17 {
			t.Fatalf("%d bytes: %+v, %v", size, got, err)
		}
	}
}

// The scenarios of the specification.
func TestPayloadAboveThresholdIsGzipCompressedEndToEnd(t *testing.T) {
	w := &texts{limits: codec.EnvelopeLimits{CompressAbove: 1024, MaxData: payloadCap}}
	e := sample(2048)
	text, err := w.of(e, true)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := codec.DecodeEnvelope(raw); err != nil || v.Compression != codec.Gzip || !bytes.HasPrefix(v.Data, []byte{0x1f, 0x8b}) || len(text) > 512 {
		t.Errorf("%d characters, %v, %v", len(text), v.Compression, err)
	}
	got, err := event(topicOne, codec.Position{}, text, payloadCap)
	if err != nil || !bytes.Equal(got.Data.Raw(), e.Data.Raw()) {
		t.Errorf("%v", err)
	}
	if _, err := event(topicOne, codec.Position{}, text, 1024); err == nil {
		t.Error("inflated beyond the cap")
	}
}

func TestPayloadAboveHardCapIsRefused(t *testing.T) {
	w := &texts{limits: codec.EnvelopeLimits{MaxData: 1000}}
	_, err := w.of(sample(1000), true)
	var refusal *codec.Error
	if !errors.As(err, &refusal) || refusal.Code != codec.CodeTooLarge {
		t.Errorf("%v", err)
	}
}

func TestNotices(t *testing.T) {
	for _, c := range []struct {
		text   string
		ok     bool
		first  codec.Position
		before codec.Position
		texts  int
	}{
		{"1 n1 abc 5 - 0\nX\nY", true, codec.Position{Epoch: "abc", Offset: 5}, codec.Position{}, 2},
		{"1 n1 abc 5 old 4\nX", true, codec.Position{Epoch: "abc", Offset: 5}, codec.Position{Epoch: "old", Offset: 4}, 1},
		{"1 n1 abc 5 old 4 later fields\nX", true, codec.Position{Epoch: "abc", Offset: 5}, codec.Position{Epoch: "old", Offset: 4}, 1},
		{"1 n1 - 0 - 0\nX\nY\nZ", true, codec.Position{}, codec.Position{}, 3},
		{"2 n1 abc 5 - 0\nX", false, codec.Position{}, codec.Position{}, 0},
		{"1 n1 abc x - 0\nX", false, codec.Position{}, codec.Position{}, 0},
		{"1 n1 abc 9007199254740992 - 0\nX", false, codec.Position{}, codec.Position{}, 0},
		{"1 n1 abcdefghijklmnopq 5 - 0\nX", false, codec.Position{}, codec.Position{}, 0},
		{"1 n1 abc 5 - 0", false, codec.Position{}, codec.Position{}, 0},
		{"", false, codec.Position{}, codec.Position{}, 0},
	} {
		n, err := readNotice(c.text)
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		count := 0
		for _, more := n.next(); more; _, more = n.next() {
			count++
		}
		if c.ok && (n.first != c.first || n.previous != c.before || count != c.texts || n.node != "n1") {
			t.Errorf("%q: %+v, %d texts", c.text, n, count)
		}
	}
}

// Whatever is written to a channel or a buffer, nothing panics, and what is taken is
// within bounds.
func FuzzMessages(f *testing.F) {
	w := &texts{limits: codec.EnvelopeLimits{CompressAbove: 16, MaxData: 1 << 20}}
	text, err := w.of(sample(64), true)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("1 n1 abc 5 - 0\n" + text)
	f.Add("17|" + text + "17654321000000000450")
	f.Add("1 n1 - 0 - 0\n\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := readNotice(s); err == nil {
			if n.first.Offset > codec.MaxOffset || len(n.first.Epoch) > 16 {
				t.Errorf("%+v", n)
			}
			for text, ok := n.next(); ok; text, ok = n.next() {
				if e, err := event(topicOne, n.first, text, 1000); err == nil && e.Data.Len() > 1000 {
					t.Errorf("%d bytes", e.Data.Len())
				}
			}
		}
		if offset, _, err := memberOf(s); err == nil && offset > codec.MaxOffset {
			t.Error(offset)
		}
		readResult(s)
	})
}
