package codec

import (
	"bytes"
	"reflect"
	"testing"
)

// What AppendRequest writes is the golden vector again, byte for byte in both
// codecs. Pages are the exception: their limit is written as it was understood.
func TestAppendRequestWritesTheGoldenVectors(t *testing.T) {
	limits := map[string]string{
		"history":      `{"t":"history","id":5,"room":"chat:lobby","limit":100}`,
		"history-full": `{"t":"history","id":5,"room":"chat:lobby","epoch":"ep1","offset":12,"limit":1000,"reverse":true}`,
		"presence":     `{"t":"presence","id":6,"room":"chat:lobby","limit":100}`,
	}
	for _, c := range requestCases {
		t.Run(c.name, func(t *testing.T) {
			want := c.message
			if text, ok := limits[c.name]; ok {
				want = text
			}
			text := AppendRequest(nil, JSON, c.want)
			if string(text) != want {
				t.Errorf("\ngot  %s\nwant %s", text, want)
			}
			packed := AppendRequest([]byte("x"), Msgpack, c.want)
			if !bytes.Equal(packed[1:], inCodec(t, Msgpack, want)) {
				t.Errorf("msgpack: %x", packed[1:])
			}
			sameByLibraries(t, text, packed[1:])
			for _, codec := range []Codec{JSON, Msgpack} {
				got, err := decodeOne(codec, AppendRequest(nil, codec, c.want))
				if err != nil || !reflect.DeepEqual(plainRequest(got), c.want) {
					t.Errorf("read back from %s: %+v, %v", codec, got, err)
				}
			}
		})
	}
}

func TestAppendRequestTakesNoFault(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a fault was written")
		}
	}()
	AppendRequest(nil, JSON, &Fault{})
}
