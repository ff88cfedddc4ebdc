package codec

import (
	"bytes"
	"testing"
)

// A bundle's bytes are its frames', in each framing, and are made once.
func TestBundleIsItsFramesInARow(t *testing.T) {
	topic := Topic{Tenant: "acme", Room: "chat:1"}
	var frames []*Frame
	for i := range 3 {
		data, err := NewData(map[string]int{"n": i})
		if err != nil {
			t.Fatal(err)
		}
		e := NewEvent(topic, "message", data, Origin{EID: "e"}).At(Position{Epoch: "x", Offset: uint64(i + 1)})
		frames = append(frames, &e.Frame)
	}
	whole := Bundle(frames)
	for _, p := range Protocols() {
		fr := &Framing{Protocol: p, Wrap: func(dst, doc []byte) []byte { return append(append(dst, '<'), doc...) }}
		var want []byte
		for _, f := range frames {
			want = append(want, f.Bytes(fr)...)
		}
		got := whole.Bytes(fr)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %q, want %q", p.Name(), got, want)
		}
		if &got[0] != &whole.Bytes(fr)[0] {
			t.Errorf("%s: made twice", p.Name())
		}
	}
}
