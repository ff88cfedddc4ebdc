package client_test

import (
	"testing"

	"github.com/coder/websocket"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// BenchmarkReceive is what an event costs from the socket to its consumer, beside
// the same messages read by the WebSocket library and thrown away.
func BenchmarkReceive(b *testing.B) {
	for _, in := range codecs {
		data, err := codec.NewData(map[string]any{"text": "a message of some length, as people write them", "n": 12345})
		if err != nil {
			b.Fatal(err)
		}
		// flood sends n events behind what opened the connection.
		flood := func(b *testing.B, a *act, n int) {
			e := codec.NewEvent(codec.Topic{Room: "chat"}, "said", data, codec.Origin{EID: "e1234567890", From: "bob", Session: "s2", TS: 1764500000000})
			for i := range n {
				message := codec.Protocols()[in].Append(nil, e.At(codec.Position{Epoch: "ep", Offset: uint64(i + 1)}))
				if err := a.ws.Write(b.Context(), a.kind(), message); err != nil {
					b.Error(err)
					return
				}
			}
		}
		b.Run("client/"+in.String(), func(b *testing.B) {
			s := play(b, in)
			c := start(b, s.url, "alice", func(o *client.Options) {
				o.Codec, o.Events = in, client.Bound{Items: b.N + 1, Bytes: 1 << 40}
			})
			a, _ := s.greet(nil)
			room := joined(b, c, a, client.Join{Room: "chat"})
			next[*client.Reset](b, room)
			ctx := b.Context()
			b.ReportAllocs()
			b.ResetTimer()
			go flood(b, a, b.N)
			for range b.N {
				if _, err := room.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("reference/"+in.String(), func(b *testing.B) {
			s := play(b, in)
			ws, _, err := websocket.Dial(b.Context(), s.url+"/v1/ws", &websocket.DialOptions{Subprotocols: []string{"pulse.v1." + in.String()}})
			if err != nil {
				b.Fatal(err)
			}
			defer ws.CloseNow()
			a := s.next()
			b.ReportAllocs()
			b.ResetTimer()
			go flood(b, a, b.N)
			for range b.N {
				if _, _, err := ws.Read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
