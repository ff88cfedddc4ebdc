package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// publishFrame is a publish of 200 bytes.
func publishFrame(t testing.TB, c Codec) []byte {
	t.Helper()
	message := []byte(`{"t":"publish","id":4711,"room":"chat:lobby","event":"said","dedup_key":"k-000123","ttl_ms":5000,"data":{"text":"` +
		strings.Repeat("x", 47) + `","likes":12,"at":[1.5,2.25],"ok":true}}`)
	if len(message) != 200 {
		t.Fatalf("the publish has %d bytes", len(message))
	}
	return inCodec(t, c, string(message))
}

// plainPublish is what encoding/json and the msgpack library decode a publish into.
type plainPublish struct {
	T        string             `json:"t" msgpack:"t"`
	ID       uint64             `json:"id" msgpack:"id"`
	Room     string             `json:"room" msgpack:"room"`
	Event    string             `json:"event" msgpack:"event"`
	Data     json.RawMessage    `json:"data" msgpack:"-"`
	PackData msgpack.RawMessage `json:"-" msgpack:"data"`
	DedupKey string             `json:"dedup_key" msgpack:"dedup_key"`
	TTL      int64              `json:"ttl_ms" msgpack:"ttl_ms"`
}

// plainDecoders are the libraries' way to a publish.
var plainDecoders = [...]struct {
	name      string
	unmarshal func([]byte, any) error
}{
	JSON:    {"encoding/json", json.Unmarshal},
	Msgpack: {"msgpack", msgpack.Unmarshal},
}

func BenchmarkDecodePublish(b *testing.B) {
	for _, p := range Protocols() {
		message := publishFrame(b, p.Codec())
		b.Run(p.Codec().String(), func(b *testing.B) {
			b.ReportAllocs()
			var dst [1]Request
			for b.Loop() {
				if _, err := p.Decode(dst[:0], message); err != nil {
					b.Fatal(err)
				}
			}
		})
		reference := plainDecoders[p.Codec()]
		b.Run("reference="+reference.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := reference.unmarshal(message, &plainPublish{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodePublishInTurns decodes a publish and has the library decode it, in
// turns of a fraction of a millisecond, so that whatever else the machine does
// strikes both alike. It reports the median of the turns and their ratio.
func BenchmarkDecodePublishInTurns(b *testing.B) {
	const turn = 256
	for _, p := range Protocols() {
		message := publishFrame(b, p.Codec())
		unmarshal := plainDecoders[p.Codec()].unmarshal
		b.Run(p.Codec().String(), func(b *testing.B) {
			var dst [1]Request
			var ours, theirs, ratios []float64
			for b.Loop() {
				start := time.Now()
				for range turn {
					if _, err := p.Decode(dst[:0], message); err != nil {
						b.Fatal(err)
					}
				}
				half := time.Now()
				for range turn {
					if err := unmarshal(message, &plainPublish{}); err != nil {
						b.Fatal(err)
					}
				}
				a, z := half.Sub(start), time.Since(half)
				ours = append(ours, float64(a)/turn)
				theirs = append(theirs, float64(z)/turn)
				ratios = append(ratios, float64(a)/float64(z))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			slices.Sort(ratios)
			n := len(ratios)
			b.ReportMetric(ours[n/2], "ns/decode")
			b.ReportMetric(theirs[n/2], "ns/reference")
			b.ReportMetric(ratios[n/2], "ratio")
			b.ReportMetric(ratios[n/10], "ratio-p10")
			b.ReportMetric(ratios[n*9/10], "ratio-p90")
		})
	}
}

// BenchmarkGate64K walks 64 KiB of data: the worst that keys can do, in turns with
// the same texts and numbers in lists instead of objects. It reports the medians.
func BenchmarkGate64K(b *testing.B) {
	for _, shape := range gateShapes() {
		for _, c := range []Codec{JSON, Msgpack} {
			keyed, flat := inCodec(b, c, shape.message), inCodec(b, c, shape.flat())
			b.Run(shape.name+"/"+c.String(), func(b *testing.B) {
				b.ReportAllocs()
				d := newDecoder()
				walk := func(message []byte) float64 {
					start := time.Now()
					if !d.gate.frame(c, message) {
						b.Fatal(d.gate.why)
					}
					return float64(time.Since(start))
				}
				var took, ratios []float64
				for b.Loop() {
					took = append(took, walk(keyed))
					ratios = append(ratios, took[len(took)-1]/walk(flat))
				}
				slices.Sort(took)
				slices.Sort(ratios)
				b.ReportMetric(took[len(took)/2]/float64(len(keyed)), "ns/B")
				b.ReportMetric(ratios[len(ratios)/2], "times-flat")
			})
		}
	}
	b.Run("reference=encoding/json", func(b *testing.B) {
		message := []byte(gateShapes()[0].message)
		b.SetBytes(int64(len(message)))
		for b.Loop() {
			if !json.Valid(message) {
				b.Fatal("invalid")
			}
		}
	})
}

type gateShape struct{ name, message string }

const gateShapeHead = `{"t":"publish","data":`

// flat is the shape with a list in place of each object of its data.
func (s gateShape) flat() string {
	data := strings.TrimPrefix(s.message, gateShapeHead)
	lists := strings.NewReplacer("{", "[", "}", "]", ":", ",")
	return gateShapeHead + lists.Replace(data[:len(data)-1]) + "}"
}

func gateShapes() []gateShape {
	const size = 64 << 10
	fill := func(open, close string, item func(i int) string) string {
		var s strings.Builder
		s.WriteString(gateShapeHead + open)
		for i := 0; s.Len() < size-16; i++ {
			if i > 0 {
				s.WriteByte(',')
			}
			s.WriteString(item(i))
		}
		return s.String() + close + "}"
	}
	return []gateShape{
		{"flat", fill("[", "]", func(i int) string { return fmt.Sprintf(`"%05d",1`, i) })},
		{"keys", fill("{", "}", func(i int) string { return fmt.Sprintf(`"%05d":1`, i) })},
		{"short keys", fill("{", "}", func(i int) string { return fmt.Sprintf(`"%x":1`, i) })},
		{"escaped keys", fill("{", "}", func(i int) string { return fmt.Sprintf(`"\u00e9%x":1`, i) })},
		{"objects of 8", fill("[", "]", func(i int) string { return `{"aaaa":1,"aaab":1,"aaac":1,"aaad":1,"aaae":1,"aaaf":1,"aaag":1,"aaah":1}` })},
		{"small objects", fill("[", "]", func(i int) string { return `{"a":1,"b":1,"c":1,"d":1,"e":1}` })},
		{"objects of 4", fill("[", "]", func(i int) string { return `{"aaaa":1,"aaab":1,"aaac":1,"aaad":1}` })},
		{"text", fill("[", "]", func(i int) string { return `"` + strings.Repeat("text ", 1000) + `"` })},
	}
}

func benchEvent(c Codec) *Event {
	data := Data{JSON, []byte(`{"text":"` + strings.Repeat("x", 100) + `","likes":12}`)}
	if c == Msgpack {
		data = Data{Msgpack, data.In(Msgpack)}
	}
	return NewEvent(Topic{"acme", "chat:lobby"}, "said", data,
		Origin{EID: "01JD3Q8R6V", From: "alice", Session: "s-12", TS: 1764500000000}).At(Position{"ep1", 812})
}

// BenchmarkEventAppend encodes an event; "crossed" transcodes its data.
func BenchmarkEventAppend(b *testing.B) {
	for _, p := range Protocols() {
		for name, from := range map[string]Codec{"own": p.Codec(), "crossed": JSON + Msgpack - p.Codec()} {
			e := benchEvent(from)
			b.Run(p.Codec().String()+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				buf := make([]byte, 0, 4096)
				for b.Loop() {
					buf = p.Append(buf[:0], e)
				}
			})
		}
	}
	type plainEvent struct {
		T       string             `json:"t" msgpack:"t"`
		Room    string             `json:"room" msgpack:"room"`
		Event   string             `json:"event" msgpack:"event"`
		Data    msgpack.RawMessage `json:"data" msgpack:"data"`
		EID     string             `json:"eid" msgpack:"eid"`
		Epoch   string             `json:"epoch" msgpack:"epoch"`
		Offset  uint64             `json:"offset" msgpack:"offset"`
		From    string             `json:"from" msgpack:"from"`
		Session string             `json:"session" msgpack:"session"`
		TS      int64              `json:"ts" msgpack:"ts"`
	}
	e := benchEvent(Msgpack)
	plain := &plainEvent{"event", e.Topic.Room, e.Name, e.Data.Raw(), e.EID, e.Position.Epoch, e.Position.Offset, e.From, e.Session, e.TS}
	b.Run("reference=msgpack", func(b *testing.B) {
		b.ReportAllocs()
		var buf bytes.Buffer
		enc := msgpack.NewEncoder(&buf)
		for b.Loop() {
			buf.Reset()
			if err := enc.Encode(plain); err != nil {
				b.Fatal(err)
			}
		}
	})
	e = benchEvent(JSON)
	b.Run("reference=encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := json.Marshal(struct {
				*plainEvent
				Data json.RawMessage `json:"data"`
			}{plain, e.Data.Raw()})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEnvelope writes and reads what nodes hand each other of an event that
// has no data. The reference codes the same fields as a struct.
func BenchmarkEnvelope(b *testing.B) {
	e := NewEvent(Topic{"acme", "chat:lobby"}, "said", Data{}, Origin{EID: "01JD3Q8R6V", From: "alice", Session: "s-12", TS: 1764500000000})
	b.Run("pulse", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 4096)
		for b.Loop() {
			var err error
			if buf, err = AppendEnvelope(buf[:0], e, true, EnvelopeLimits{MaxData: 4 << 20}); err != nil {
				b.Fatal(err)
			}
			if v, err := DecodeEnvelope(buf); err != nil || v.From != e.From {
				b.Fatal(v, err)
			}
		}
	})
	type plainEnvelope struct {
		Version     uint8  `msgpack:"v"`
		Buffered    bool   `msgpack:"buffered"`
		Secret      bool   `msgpack:"secret"`
		Codec       uint8  `msgpack:"codec"`
		Compression uint8  `msgpack:"compression"`
		TS          int64  `msgpack:"ts"`
		EID         string `msgpack:"eid"`
		Event       string `msgpack:"event"`
		From        string `msgpack:"from"`
		Session     string `msgpack:"session"`
		Data        []byte `msgpack:"data"`
	}
	b.Run("reference=msgpack", func(b *testing.B) {
		b.ReportAllocs()
		plain := &plainEnvelope{Version: 1, Buffered: true, TS: e.TS, EID: e.EID, Event: e.Name, From: e.From, Session: e.Session}
		var buf bytes.Buffer
		enc, dec := msgpack.NewEncoder(&buf), msgpack.NewDecoder(&buf)
		for b.Loop() {
			buf.Reset()
			if err := enc.Encode(plain); err != nil {
				b.Fatal(err)
			}
			var v plainEnvelope
			if err := dec.Decode(&v); err != nil || v.From != e.From {
				b.Fatal(v, err)
			}
		}
	})
}

// BenchmarkEnvelopeEvent makes the event of an envelope: what another node, or a
// read of what is kept, pays besides.
func BenchmarkEnvelopeEvent(b *testing.B) {
	e := benchEvent(JSON)
	limits := EnvelopeLimits{MaxData: 4 << 20}
	text, err := AppendEnvelope(nil, e, true, limits)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		v, err := DecodeEnvelope(text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := v.Event(e.Topic, e.Position, limits.MaxData); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnvelopeGzip(b *testing.B) {
	data := jsonData(`"` + strings.Repeat("so many words, such as these; ", 140) + `"`)
	e := NewEvent(Topic{"acme", "chat:lobby"}, "said", data, Origin{EID: "e"})
	limits := EnvelopeLimits{CompressAbove: 1 << 10, MaxData: 4 << 20}
	packed, err := AppendEnvelope(nil, e, true, limits)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(e.Data.Len()))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := AppendEnvelope(packed[:0], e, true, limits); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(e.Data.Len()))
		b.ReportAllocs()
		for b.Loop() {
			v, err := DecodeEnvelope(packed)
			if err == nil {
				_, err = v.Event(e.Topic, e.Position, limits.MaxData)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFrameBytes is what each delivery after the first of a framing pays.
func BenchmarkFrameBytes(b *testing.B) {
	text := &Framing{Name: "text", Protocol: Protocols()[JSON]}
	binary := &Framing{Name: "binary", Protocol: Protocols()[Msgpack]}
	e := benchEvent(JSON)
	b.ReportAllocs()
	for b.Loop() {
		if len(e.Bytes(text)) == 0 || len(e.Bytes(binary)) == 0 {
			b.Fatal("no bytes")
		}
	}
}

func BenchmarkTranscode(b *testing.B) {
	data := Data{JSON, []byte(gateShapes()[1].message)}
	for _, c := range []Codec{Msgpack, JSON} {
		b.Run("to "+c.String(), func(b *testing.B) {
			b.SetBytes(int64(data.Len()))
			for b.Loop() {
				data.In(c)
			}
		})
		data = Data{Msgpack, data.In(Msgpack)}
	}
}

func BenchmarkDecodeDocument(b *testing.B) {
	for _, p := range Protocols() {
		message := p.Append(nil, benchEvent(p.Codec()))
		b.Run("event/"+p.Codec().String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeDocument(p.Codec(), message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
