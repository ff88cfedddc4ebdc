package memory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
	"github.com/yaza-dev/pulse/transport/memory"
	"github.com/yaza-dev/pulse/transport/transporttest"
)

func TestConformance(t *testing.T) {
	transporttest.Test(t, func(t *testing.T, a transport.Acceptor, o transporttest.Options) transporttest.Peer {
		c := memory.Dial(a, codec.Protocols()[0], memory.Options{
			MaxMessageBytes: o.MaxMessageBytes,
			WriteTimeout:    o.WriteTimeout,
		})
		t.Cleanup(func() { c.Cut(); <-c.Done() })
		return peer{c}
	})
}

type peer struct{ *memory.Client }

func (p peer) Recv(ctx context.Context) ([]byte, error) {
	b, err := p.Client.Recv(ctx)
	var closed *memory.CloseError
	if errors.As(err, &closed) {
		return nil, &transporttest.CloseError{Code: closed.Code, Reason: closed.Reason}
	}
	return b, err
}
