package codec

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var (
	envelopeTopic = Topic{"acme", "chat:lobby"}
	openLimits    = EnvelopeLimits{MaxData: 4 << 20}
)

func envelopeEvent(data Data) *Event {
	return NewEvent(envelopeTopic, "said", data, Origin{EID: "01JD3Q8R6V", From: "Zoë", Session: "s-12", TS: 1764500000000})
}

func appendEnvelope(t testing.TB, e *Event, buffered bool, limits EnvelopeLimits) []byte {
	t.Helper()
	b, err := AppendEnvelope(nil, e, buffered, limits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decodeEnvelope(t testing.TB, b []byte) Envelope {
	t.Helper()
	v, err := DecodeEnvelope(b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sameEvent compares what travels of two events.
func sameEvent(a, b *Event) bool {
	x, y := a.Origin, b.Origin
	x.Trace, y.Trace = nil, nil
	return x == y && reflect.DeepEqual(a.Trace, b.Trace) && a.Name == b.Name && a.Topic == b.Topic && a.Position == b.Position &&
		a.Data.codec == b.Data.codec && bytes.Equal(a.Data.raw, b.Data.raw) && a.Data.IsZero() == b.Data.IsZero()
}

// envelopeCases are golden vectors: testdata/golden/envelope/NAME.hex.
var envelopeCases = []struct {
	name     string
	event    *Event
	buffered bool
	above    int
}{
	{"buffered", envelopeEvent(jsonData(`{"text":"hi"}`)), true, 0},
	{"transient", NewEvent(envelopeTopic, "moved", Data{Msgpack, []byte{0xc4, 1, 0xff}}, Origin{EID: "e2", From: "a", Session: "s", TS: -1}), false, 0},
	{"server", NewEvent(envelopeTopic, "said", jsonData(`null`), Origin{EID: "e3"}), true, 0},
	{"absent", NewEvent(envelopeTopic, "said", Data{}, Origin{EID: "e4"}), true, 0},
	{"secret", NewEvent(envelopeTopic, "code", jsonData(`"`+strings.Repeat("0", 80)+`"`), Origin{EID: "e5", Secret: true}), true, 16},
	{"traced", NewEvent(envelopeTopic, "said", jsonData(`1`), Origin{EID: "e6", Trace: &Trace{ID: [16]byte{1, 15: 16}, Span: [8]byte{17, 7: 24}}}), true, 0},
	{"gzip", envelopeEvent(jsonData(`"` + strings.Repeat("again and ", 20) + `"`)), true, 16},
}

// What was recorded stays readable, and what is written stays what it is. (How
// gzip packs may change with Go; that it is read may not.)
func TestGoldenEnvelopes(t *testing.T) {
	for _, c := range envelopeCases {
		t.Run(c.name, func(t *testing.T) {
			b := appendEnvelope(t, c.event, c.buffered, EnvelopeLimits{CompressAbove: c.above, MaxData: 1 << 10})
			file := filepath.Join("testdata", "golden", "envelope", c.name+".hex")
			if *update {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(hex.EncodeToString(b)+"\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden := unhex(t, strings.TrimSpace(string(recorded)))
			v := decodeEnvelope(t, golden)
			if v.Compression != Gzip && !bytes.Equal(golden, b) {
				t.Errorf("got  %x\nwant %x", b, golden)
			}
			if v.Compression != decodeEnvelope(t, b).Compression {
				t.Errorf("the recorded one is compressed by %s", v.Compression)
			}
			at := Position{"ep1", 7}
			e, err := v.Event(envelopeTopic, at, 1<<10)
			if err != nil || !sameEvent(e, c.event.At(at)) || v.Buffered != c.buffered {
				t.Errorf("%+v, %v, buffered %v", e, err, v.Buffered)
			}
		})
	}
}

func TestEnvelopeRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	text := func(most int) string {
		return strings.Repeat([]string{"a", "é", "名"}[r.IntN(3)], r.IntN(most+1))
	}
	for i := range 2000 {
		data, err := NewData(randomValue(r, 3))
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(2) == 0 {
			data = Data{Msgpack, data.In(Msgpack)}
		}
		if i%50 == 0 {
			data = jsonData(`"` + strings.Repeat("x", r.IntN(200_000)) + `"`)
		}
		want := NewEvent(envelopeTopic, "e"+strings.Repeat("x", r.IntN(63)), data, Origin{
			EID: text(20), From: text(60), Session: text(20), TS: r.Int64() - r.Int64(), Secret: r.IntN(4) == 0,
		}).At(Position{"ep1", r.Uint64() >> 11})
		buffered := r.IntN(2) == 0
		limits := EnvelopeLimits{CompressAbove: r.IntN(3) * 100, MaxData: max(1, data.Len())}
		before := []byte("before")
		b, err := AppendEnvelope(before, want, buffered, limits)
		if err != nil || string(b[:6]) != "before" {
			t.Fatalf("%v, %q", err, b[:6])
		}
		// Later fields stand behind, and are passed over.
		b = append(b[6:], make([]byte, r.IntN(3)*r.IntN(20))...)
		v := decodeEnvelope(t, b)
		if v.EID != want.EID || v.From != want.From || v.Session != want.Session || v.TS != want.TS || v.Secret != want.Secret || v.Name != want.Name || v.Buffered != buffered || v.Codec != data.Codec() {
			t.Fatalf("%+v of %+v", v, want)
		}
		got, err := v.Event(want.Topic, want.Position, limits.MaxData)
		clear(b) // which the event keeps nothing of
		if err != nil || !sameEvent(got, want) {
			t.Fatalf("%+v, %v\nwant %+v", got, err, want)
		}
	}
}

func TestEnvelopeThatIsCutShortIsNone(t *testing.T) {
	for _, c := range envelopeCases {
		b := appendEnvelope(t, c.event, c.buffered, openLimits)
		if c.event.Trace != nil {
			continue // without its last field it is one all the same
		}
		for n := range b {
			if v, err := DecodeEnvelope(b[:n]); !errors.Is(err, ErrEnvelope) || !reflect.DeepEqual(v, Envelope{}) {
				t.Fatalf("%s, %d bytes: %+v, %v", c.name, n, v, err)
			}
		}
	}
}

// Kind and sender are read whatever is in the data, and by whatever later build
// it was made; only what an old reader must not read is refused.
func TestEnvelopeIsAdditive(t *testing.T) {
	made := appendEnvelope(t, envelopeEvent(jsonData(`1`)), true, openLimits)
	for _, tt := range []struct {
		rule            string
		at              int
		value           byte
		decodes, events bool
	}{
		{"this version", 0, 1, true, true},
		{"version 0", 0, 0, false, false},
		{"a later version", 0, 2, false, false},
		{"flags of later versions", 1, 0xfd, true, true},
		{"msgpack, in which 0x31 is a value too", 2, 1, true, true},
		{"another codec", 2, 2, true, false},
		{"another compression", 3, 2, true, false},
		{"gzip that is none", 3, 1, true, false},
		{"a length beyond the end", 13, 0xff, false, false},
		{"a data length beyond the end", 20, 0xff, false, false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			b := bytes.Clone(made)
			b[tt.at] = tt.value
			v, err := DecodeEnvelope(b)
			if (err == nil) != tt.decodes || err != nil && !errors.Is(err, ErrEnvelope) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if v.Name != "said" || v.From != "Zoë" {
				t.Errorf("%+v", v)
			}
			if _, err := v.Event(envelopeTopic, Position{}, 100); (err == nil) != tt.events || err != nil && !errors.Is(err, ErrEnvelope) {
				t.Error(err)
			}
		})
	}
}

// Fields that came later stand in any order behind the data; what is none ends them.
func TestEnvelopeOfALaterVersion(t *testing.T) {
	event := envelopeEvent(jsonData(`1`))
	plain := appendEnvelope(t, event, true, openLimits)
	event.Trace = &Trace{ID: [16]byte{9}, Span: [8]byte{8}}
	trace := string(appendEnvelope(t, event, true, openLimits)[len(plain):])
	const other, empty = "\xc8\x00\x05later", "\x02\x00\x00"
	for rule, tt := range map[string]struct {
		behind string
		traced bool
	}{
		"nothing":                      {"", false},
		"a trace":                      {trace, true},
		"filled up":                    {trace + "\x00\x00", true},
		"a field of a later version":   {other, false},
		"one before it":                {other + empty + trace, true},
		"one behind it":                {trace + other, true},
		"behind the end":               {"\x00" + trace, false},
		"one that is cut short":        {other[:5], false},
		"a trace cut short":            {trace[:len(trace)-1], false},
		"a trace of another length":    {"\x01\x00\x08" + trace[3:11], false},
		"the end of a member's digits": {"\xd7\xbd\x34\xd3\x4d\x34\xd3\x4d\x34\xd3\x4d\x34\xd3\x4d\x34", false},
	} {
		v := decodeEnvelope(t, append(bytes.Clone(plain), tt.behind...))
		e, err := v.Event(envelopeTopic, Position{}, 100)
		if err != nil || e.Name != "said" || string(e.Data.raw) != "1" || (e.Trace != nil) != tt.traced || e.Trace != nil && *e.Trace != *event.Trace {
			t.Errorf("%s: %+v, %v", rule, e, err)
		}
	}
}

// What somebody else has put where envelopes are kept makes no event that would
// harm a node or a client.
func TestEnvelopeThatNoNodeMadeIsNoEvent(t *testing.T) {
	good := Envelope{Origin: Origin{EID: "e", From: "a", Session: "s"}, Name: "said", Data: []byte(`{"a":[1]}`)}
	if _, err := good.Event(envelopeTopic, Position{}, 100); err != nil {
		t.Fatal(err)
	}
	for rule, change := range map[string]func(*Envelope){
		"no name":                     func(v *Envelope) { v.Name = "" },
		"a name outside the grammar":  func(v *Envelope) { v.Name = "a\n" },
		"an eid of no UTF-8":          func(v *Envelope) { v.EID = "\xff" },
		"an eid that is too long":     func(v *Envelope) { v.EID = strings.Repeat("e", 129) },
		"a subject of no UTF-8":       func(v *Envelope) { v.From = "\xff" },
		"a subject that is too long":  func(v *Envelope) { v.From = strings.Repeat("a", 257) },
		"a session of no UTF-8":       func(v *Envelope) { v.Session = "\xff" },
		"a session that is too long":  func(v *Envelope) { v.Session = strings.Repeat("s", 129) },
		"data cut short":              func(v *Envelope) { v.Data = []byte(`{"a":[`) },
		"data of no UTF-8":            func(v *Envelope) { v.Data = []byte("\"\xff\"") },
		"data in the other codec":     func(v *Envelope) { v.Codec = Msgpack },
		"data with a repeated key":    func(v *Envelope) { v.Data = []byte(`{"a":1,"a":2}`) },
		"data nested too deep":        func(v *Envelope) { v.Data = []byte(strings.Repeat("[", 49) + strings.Repeat("]", 49)) },
		"data beyond 64 bits":         func(v *Envelope) { v.Data = []byte(`36893488147419103232`) },
		"compressed data that is not": func(v *Envelope) { v.Compression = Gzip },
		"compressed nothing":          func(v *Envelope) { v.Compression, v.Data = Gzip, gzipped(nil) },
		"compressed data cut short":   func(v *Envelope) { v.Compression, v.Data = Gzip, gzipped(v.Data)[:25] },
		"compressed data damaged":     func(v *Envelope) { v.Compression, v.Data = Gzip, flipped(gzipped(v.Data)) },
		"compressed twice":            func(v *Envelope) { v.Compression, v.Data = Gzip, gzipped(gzipped(v.Data)) },
		"two members of gzip":         func(v *Envelope) { v.Compression, v.Data = Gzip, append(gzipped(v.Data), gzipped([]byte(" "))...) },
		"bytes behind gzip":           func(v *Envelope) { v.Compression, v.Data = Gzip, append(gzipped(v.Data), 0) },
	} {
		t.Run(rule, func(t *testing.T) {
			v := good
			change(&v)
			if e, err := v.Event(envelopeTopic, Position{}, 1000); !errors.Is(err, ErrEnvelope) || e != nil {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func flipped(b []byte) []byte {
	b[len(b)-5] ^= 1 // in the checksum
	return b
}

// Not for compressing: its memory comes from a pool, which under the race detector
// forgets at random. BenchmarkEnvelopeGzip reports it.
func TestEnvelopeAllocations(t *testing.T) {
	buf := make([]byte, 0, 64<<10)
	for _, c := range envelopeCases {
		limits := EnvelopeLimits{MaxData: 1 << 10}
		b := appendEnvelope(t, c.event, true, limits)
		if n := testing.AllocsPerRun(200, func() {
			out, err := AppendEnvelope(buf[:0], c.event, true, limits)
			if err != nil || len(out) == 0 {
				t.Error(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations to write", c.name, n)
		}
		if n := testing.AllocsPerRun(200, func() {
			if _, err := DecodeEnvelope(b); err != nil {
				t.Error(err)
			}
		}); n > 0 && c.event.Trace == nil {
			t.Errorf("%s: %v allocations to read", c.name, n)
		}
	}
}

// FuzzEnvelope: whatever is kept or sent, it is no envelope, or none of an event,
// or one that comes out as it went in.
func FuzzEnvelope(f *testing.F) {
	for _, c := range envelopeCases {
		f.Add(appendEnvelope(f, c.event, c.buffered, EnvelopeLimits{CompressAbove: c.above, MaxData: 1 << 10}))
	}
	f.Add(append(appendEnvelope(f, envelopeEvent(jsonData(`1`)), true, openLimits), "later"...))
	const most = 64 << 10
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		v, err := DecodeEnvelope(b)
		if err != nil {
			if !errors.Is(err, ErrEnvelope) {
				t.Error(err)
			}
			return
		}
		e, err := v.Event(envelopeTopic, Position{"ep1", 1}, most)
		if !bytes.Equal(b, before) {
			t.Fatal("the envelope was changed")
		}
		var refusal *Error
		if err != nil {
			if !errors.Is(err, ErrEnvelope) && !errors.As(err, &refusal) {
				t.Error(err)
			}
			return
		}
		if e.Data.Len() > most || !ValidEvent(e.Name) {
			t.Errorf("%+v", e)
		}
		for _, p := range Protocols() {
			if _, err := DecodeDocument(p.Codec(), p.Append(nil, e)); err != nil {
				t.Errorf("a client cannot read it: %v", err)
			}
		}
		again := decodeEnvelope(t, appendEnvelope(t, e, v.Buffered, EnvelopeLimits{CompressAbove: 1, MaxData: most}))
		back, err := again.Event(envelopeTopic, Position{"ep1", 1}, most)
		if err != nil || !sameEvent(back, e) || again.Buffered != v.Buffered {
			t.Errorf("%+v, %v, want %+v", back, err, e)
		}
	})
}
