package codec

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

func TestEnvelopeCompressesAboveTheThresholdWhereItIsSmaller(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1200)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	bin := append([]byte{0xc5, byte(len(noise) >> 8), byte(len(noise))}, noise...)
	text := func(n int) Data { return jsonData(`"` + strings.Repeat("x", n-2) + `"`) }
	for _, tt := range []struct {
		rule   string
		data   Data
		above  int
		secret bool
		want   Compression
	}{
		{"at the threshold", text(1024), 1024, false, Uncompressed},
		{"above it", text(1025), 1024, false, Gzip},
		{"of both codecs", Data{Msgpack, text(2000).In(Msgpack)}, 1024, false, Gzip},
		{"off", text(100_000), 0, false, Uncompressed},
		{"what does not become smaller", Data{Msgpack, bin}, 1024, false, Uncompressed},
		{"secret", text(100_000), 1024, true, Uncompressed},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			e := NewEvent(envelopeTopic, "said", tt.data, Origin{EID: "e", Secret: tt.secret})
			v := decodeEnvelope(t, appendEnvelope(t, e, true, EnvelopeLimits{CompressAbove: tt.above, MaxData: 1 << 20}))
			if v.Compression != tt.want {
				t.Fatalf("%s", v.Compression)
			}
			if tt.want == Uncompressed {
				if !bytes.Equal(v.Data, tt.data.Raw()) {
					t.Error("changed")
				}
				return
			}
			if len(v.Data) >= tt.data.Len() {
				t.Errorf("%d bytes of %d", len(v.Data), tt.data.Len())
			}
			z, err := gzip.NewReader(bytes.NewReader(v.Data)) // as any tool would read it
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := io.ReadAll(z); err != nil || !bytes.Equal(plain, tt.data.Raw()) {
				t.Errorf("%d bytes, %v", len(plain), err)
			}
		})
	}
}

// Data that compresses until no byte is saved any more: each length is carried
// one way or the other, and comes back.
func TestEnvelopeWhereCompressingBarelyPays(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 300 {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcdefghijklmnop"[r.IntN(1+n%16)]
		}
		data := jsonData(`"` + string(b) + `"`)
		v := decodeEnvelope(t, appendEnvelope(t, envelopeEvent(data), true, EnvelopeLimits{CompressAbove: 1, MaxData: 1000}))
		if v.Compression == Gzip && len(v.Data) >= data.Len() {
			t.Errorf("%d bytes of %d", len(v.Data), data.Len())
		}
		if e, err := v.Event(envelopeTopic, Position{}, data.Len()); err != nil || !bytes.Equal(e.Data.Raw(), data.Raw()) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func TestDataIsCappedOnBothSides(t *testing.T) {
	tooLarge := func(err error) bool {
		var e *Error
		return errors.As(err, &e) && e.Code == CodeTooLarge
	}
	const most = 100_000
	for _, above := range []int{0, 1024} {
		fits, over := jsonData(`"`+strings.Repeat("x", most-2)+`"`), jsonData(`"`+strings.Repeat("x", most-1)+`"`)
		limits := EnvelopeLimits{CompressAbove: above, MaxData: most}
		dst := []byte("before")
		if b, err := AppendEnvelope(dst, envelopeEvent(over), true, limits); !tooLarge(err) || string(b) != "before" {
			t.Errorf("above %d: written, %v", above, err)
		}
		v := decodeEnvelope(t, appendEnvelope(t, envelopeEvent(fits), true, limits))
		if _, err := v.Event(envelopeTopic, Position{}, most); err != nil {
			t.Errorf("above %d: %v", above, err)
		}
		if _, err := v.Event(envelopeTopic, Position{}, most-1); !tooLarge(err) {
			t.Errorf("above %d: read, %v", above, err)
		}
	}
	long := NewEvent(envelopeTopic, "e", jsonData(`1`), Origin{From: strings.Repeat("a", 1<<16)})
	if _, err := AppendEnvelope(nil, long, true, openLimits); !tooLarge(err) {
		t.Errorf("a subject of 64 KiB: %v", err)
	}
}

// A small envelope that would inflate to a large one costs its limit, not more.
func TestInflatingEndsAtTheLimit(t *testing.T) {
	bomb := gzipped(make([]byte, 4<<20))
	v := Envelope{Name: "said", Compression: Gzip, Data: bomb}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := v.Event(envelopeTopic, Position{}, 1<<20)
	runtime.ReadMemStats(&after)
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeTooLarge {
		t.Error(err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 7<<19 { // doublings up to the limit, and the last step to it
		t.Errorf("%d bytes allocated for a limit of 1 MiB", n)
	}
}

// What an event has inflated is its own, not scratch that the next one is read
// into.
func TestInflatedDataStays(t *testing.T) {
	var events []*Event
	for _, c := range "abc" {
		data := jsonData(`"` + strings.Repeat(string(c), 100) + `"`)
		v := decodeEnvelope(t, appendEnvelope(t, envelopeEvent(data), true, EnvelopeLimits{CompressAbove: 1, MaxData: 1000}))
		e, err := v.Event(envelopeTopic, Position{}, 1000)
		if err != nil || v.Compression != Gzip {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	for i, c := range "abc" {
		if raw := events[i].Data.Raw(); raw[1] != byte(c) {
			t.Errorf("%s", raw)
		}
	}
}
