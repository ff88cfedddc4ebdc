package engine

import (
	"fmt"
	"testing"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// What had no id is refused by an error frame, if it is refused at all, which says
// what it is about.
func TestErrorFrames(t *testing.T) {
	e := start(t, func(c *Config) {
		orders(c)
		k := openKind
		k.Name = "chat"
		c.Kinds = append(c.Kinds, k)
	})
	for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
		c := dial(t, e, in, memory.Options{})
		c.hello(`acme/a/[{"rooms":"*","allow":["join","publish"]},{"rooms":"chat:quiet","allow":["join"]}]`, "orders:1")
		for _, tt := range []struct{ doc, want string }{ // code, re, room
			{`{"t":"publish","room":"chat:1","event":"message","data":1}`, "not_joined publish chat:1"},
			{`{"t":"publish","room":"orders:1","event":"nosuch","data":1}`, "not_found publish orders:1"},
			{`{"t":"publish","room":"orders:1","event":"order","data":1,"ttl_ms":0}`, "expired publish orders:1"},
			{`{"t":"publish","room":"a b","event":"order","data":1}`, "bad_request publish <nil>"},
			{`{"t":"publish","room":"orders:1","event":"order"}`, "bad_request publish orders:1"},
			{`{"t":"publish","id":0,"room":"orders:1","event":"order","data":1}`, "bad_request publish orders:1"},
			{`{"t":"ack","room":"orders:1","epoch":"e"}`, "bad_request ack orders:1"},
			{`{"t":"ack","room":"orders:1","epoch":5,"offset":1}`, "bad_request ack orders:1"},
			{`{"t":"ack","epoch":"e","offset":1}`, "bad_request ack <nil>"},
			{`{"t":"join","room":"orders:2"}`, "bad_request join orders:2"},
			{`{"t":"leave","room":"orders:1"}`, "bad_request leave orders:1"},
			{`{"t":"history","room":"orders:1"}`, "bad_request history orders:1"},
			{`{"t":"ping","id":-1}`, "bad_request ping <nil>"},
			{`{"t":"hello"}`, "conflict hello <nil>"},
			// Nothing is said about these.
			{`{"t":"ack","room":"orders:1","epoch":"other","offset":1}`, ""},
			{`{"t":"ack","room":"orders:2","epoch":"other","offset":1}`, ""},
			{`{"t":"dance"}`, ""},
			{`{"t":"pong"}`, ""},
		} {
			c.send(tt.doc)
			if tt.want == "" {
				c.quiet()
				continue
			}
			if f := c.next(); f.t() != "error" || fmt.Sprint(f["code"], " ", f["re"], " ", f["room"]) != tt.want || f["message"] == nil {
				t.Errorf("%s, %s: %v, want %s", in, tt.doc, f, tt.want)
			}
		}
	}
}
