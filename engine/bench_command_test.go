package engine

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport"
)

// tellingConn is a nullConn that tells of each frame.
type tellingConn struct {
	nullConn
	wrote chan struct{}
}

func (c *tellingConn) Write(b []byte) (bool, error) {
	for range bytes.Count(b, []byte(`"t":`)) {
		c.wrote <- struct{}{}
	}
	return true, nil
}

// BenchmarkCommand is a command's round trip: frame, session, room, handler, reply,
// write, one at a time and 32 at a time, beside as many hops between bare mailboxes.
func BenchmarkCommand(b *testing.B) {
	for _, inFlight := range []int{1, 32} {
		b.Run(fmt.Sprintf("engine/inflight=%d", inFlight), func(b *testing.B) {
			e, err := Start(context.Background(), Config{Kinds: []room.Kind{serving("desk", echo)}, Authenticator: asTold{}, TenantDefaults: TenantLimits{SessionRate: noRate}})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close(context.Background())
			if err := e.Admit(request()); err != nil {
				b.Fatal(err)
			}
			c := &tellingConn{nullConn{framing: &codec.Framing{Name: "null", Protocol: protocol(codec.JSON)}}, make(chan struct{}, 64)}
			r := e.Accept(c, transport.NewRequest(request()))
			r.Message([]byte(`{"t":"hello","token":"acme/a"}`), false)
			<-c.wrote
			defer r.Closed(codec.CauseNormal)
			frame := []byte(`{"t":"command","id":1,"room":"desk:1","name":"echo","data":{"n":12345}}`)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += inFlight {
				for range inFlight {
					r.Message(frame, false)
				}
				for range inFlight {
					<-c.wrote
				}
			}
		})
		b.Run(fmt.Sprintf("mailboxes/inflight=%d", inFlight), func(b *testing.B) {
			p := scheduler.NewPool(scheduler.PoolConfig{})
			p.Start()
			defer p.Stop()
			tenant := scheduler.NewTenant(1)
			wrote := make(chan struct{}, 64)
			var session, desk *mailbox.Mailbox
			box := func(receive func(*mailbox.Batch)) *mailbox.Mailbox {
				m := mailbox.New(&mailbox.Config{Pool: p, Tenant: tenant, Items: 128, Bytes: 1 << 20}, nil)
				m.RegisterHandlers(bare(receive), nil)
				m.Start()
				return m
			}
			there, back := new(int), new(string)
			session = box(func(batch *mailbox.Batch) {
				for msg, ok := batch.Next(); ok; msg, ok = batch.Next() {
					if msg == any(there) {
						desk.PostFrom(batch.Turn(), backpressure.Interactive, mailbox.Item{Msg: there, Size: 64})
					} else {
						wrote <- struct{}{}
					}
				}
			})
			desk = box(func(batch *mailbox.Batch) {
				for _, ok := batch.Next(); ok; _, ok = batch.Next() {
					session.PostFrom(batch.Turn(), backpressure.Interactive, mailbox.Item{Msg: back, Size: 64})
				}
			})
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += inFlight {
				for range inFlight {
					session.Post(backpressure.Interactive, mailbox.Item{Msg: there, Size: 64})
				}
				for range inFlight {
					<-wrote
				}
			}
		})
	}
}

// bare stands for protoactor.
type bare func(*mailbox.Batch)

func (f bare) InvokeUserMessage(msg any)   { f(msg.(*mailbox.Batch)) }
func (bare) InvokeSystemMessage(any)       {}
func (bare) EscalateFailure(reason, _ any) { panic(reason) }
