package message

import (
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// heard is a Caller that notes what it is told.
type heard struct {
	ok  *codec.CommandResult
	err *codec.Error
}

func (h *heard) Answered(_ *scheduler.Turn, _ *Command, ok *codec.CommandResult, err *codec.Error) {
	h.ok, h.err = ok, err
}

// What a command came to for a client of one codec may be too long in the other, in
// which somebody repeats it: 900 bytes are 1,200 characters of base64.
func TestRepeatIsToldOnlyWhatFitsItsCodec(t *testing.T) {
	bin := append([]byte{0xc5, 900 >> 8, 900 & 0xff}, make([]byte, 900)...)
	result, err := codec.MakeData(codec.Msgpack, bin)
	if err != nil {
		t.Fatal(err)
	}
	for in, fits := range map[codec.Codec]bool{codec.Msgpack: true, codec.JSON: false} {
		h := &heard{}
		c := &Command{By: h, DedupKey: "k", Codec: in, MaxResult: 1000}
		c.Repeat(nil, bridge.Attempted{Result: result})
		switch {
		case fits && (h.ok == nil || !h.ok.Duplicate):
			t.Errorf("%v: told %+v, %v", in, h.ok, h.err)
		case !fits && (h.err == nil || h.err.Code != codec.CodeInternal):
			t.Errorf("%v: told %+v, %v, want internal", in, h.ok, h.err)
		}
	}
}
