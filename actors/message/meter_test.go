package message

import (
	"testing"

	"github.com/yaza-dev/pulse/codec"
)

func TestRefusalsAreCountedByTheirCode(t *testing.T) {
	var m Meter
	for _, code := range []codec.Code{codec.CodeForbidden, codec.CodeForbidden, codec.CodeUnknownType, codec.CodeUnknownType + 1, 255} {
		m.Published(nil, &codec.Error{Code: code})
	}
	for code := range m.Refused {
		want := map[codec.Code]uint64{codec.CodeForbidden: 2, codec.CodeUnknownType: 1, codec.CodeInternal: 2}[codec.Code(code)]
		if n := m.Refused[code].Load(); n != want {
			t.Errorf("%v: %d, want %d", codec.Code(code), n, want)
		}
	}
}

// Where nothing is measured there is no Meter.
func TestNoMeterMeasuresNothing(t *testing.T) {
	var m *Meter
	m.Published(&codec.PublishResult{Outcome: codec.Accepted}, nil)
	m.Published(nil, &codec.Error{Code: codec.CodeInternal})
	m.Restarted()
	if m.Samples() {
		t.Error("a call is measured")
	}
}
