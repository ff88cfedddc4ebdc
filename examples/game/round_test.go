package main

import (
	"errors"
	"testing"

	"github.com/yaza-dev/pulse/codec"
)

// The rules are a plain value: no engine is needed to try them.
func TestRulesOfTheRound(t *testing.T) {
	type move struct {
		by   string
		cell int
		want codec.Code // 0: taken
	}
	for _, tt := range []struct {
		name   string
		moves  []move
		winner string
	}{
		{"turns", []move{{"ann", 4, 0}, {"ann", 5, codec.CodeConflict}, {"ben", 4, codec.CodeConflict}, {"ben", 5, 0}, {"ben", 6, codec.CodeConflict}}, ""},
		{"no third", []move{{"ann", 0, 0}, {"ben", 1, 0}, {"eve", 2, codec.CodeConflict}}, ""},
		{"cells", []move{{"ann", 9, codec.CodeBadRequest}, {"ann", -1, codec.CodeBadRequest}}, ""},
		{"a row", []move{{"ann", 0, 0}, {"ben", 4, 0}, {"ann", 1, 0}, {"ben", 5, 0}, {"ann", 2, 0}, {"ben", 6, codec.CodeConflict}}, "ann"},
		{"a diagonal of the second", []move{{"ann", 0, 0}, {"ben", 2, 0}, {"ann", 1, 0}, {"ben", 4, 0}, {"ann", 8, 0}, {"ben", 6, 0}}, "ben"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r round
			for _, m := range tt.moves {
				err, code := r.move(m.by, m.cell), codec.Code(0)
				if refusal := (*codec.Error)(nil); errors.As(err, &refusal) {
					code = refusal.Code
				}
				if code != m.want {
					t.Errorf("%+v: %v", m, err)
				}
			}
			if r.Winner != tt.winner {
				t.Errorf("%q has won", r.Winner)
			}
		})
	}
}
