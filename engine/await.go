package engine

import (
	"context"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
)

// await makes a call that is answered later, and waits for its answer; unavailable: it
// did not come before ctx ended.
func await[V any](ctx context.Context, call func(done func(V, *codec.Error))) (V, *codec.Error) {
	type answer struct {
		v   V
		err *codec.Error
	}
	came := make(chan answer, 1)
	call(func(v V, err *codec.Error) { came <- answer{v, err} })
	select {
	case a := <-came:
		return a.v, a.err
	case <-ctx.Done():
		var none V
		return none, message.Unavailable(codec.ScopeNode)
	}
}
