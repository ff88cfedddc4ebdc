package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Section 14, what must not be compressed: the length of a compressed message tells
// who may add to it what else is in it. Events declared secret never are, on any of
// their ways to a client, nor is the welcome, which holds a resume token.
func TestSecretsAreNotCompressed(t *testing.T) {
	words := strings.Repeat("so many words ", 100)
	onBoth(t, func(t *testing.T, n *node) {
		p := n.open(t, "pulse.v1.json", "permessage-deflate")
		id := 0
		// ask sends a request and returns the frames up to its reply.
		ask := func(p *peer, format string, args ...any) (all []got, reply got) {
			t.Helper()
			id++
			p.send(frame(fin|text, fmt.Appendf(nil, `{"id":%d,%s}`, id, fmt.Sprintf(format, args...))))
			for {
				f := p.read()
				var doc struct {
					T  string
					ID int
				}
				if json.Unmarshal(p.inflated(f), &doc) == nil && doc.T == "reply" && doc.ID == id {
					return append(all, f), f
				}
				all = append(all, f)
			}
		}
		looked := map[string]int{}
		look := func(way string, p *peer, frames []got, packed bool) {
			t.Helper()
			for _, f := range frames {
				if !bytes.Contains(p.inflated(f), []byte("so many words")) {
					continue
				}
				if looked[way]++; f.packed != packed {
					t.Errorf("%s: compressed is %v", way, f.packed)
				}
			}
		}
		publish := func(room string, count int) (all []got) {
			for range count {
				frames, _ := ask(p, `"t":"publish","room":%q,"event":"said","data":%q`, room, words)
				all = append(all, frames...)
			}
			for got := len(all) - count; got < count; got++ {
				all = append(all, p.read())
			}
			return all
		}
		for room, packed := range map[string]bool{"echo:open": true, "vault:1": false} {
			way := func(name string) string { return room + " " + name }
			ask(p, `"t":"join","room":%q`, room)
			look(way("live"), p, publish(room, 20), packed)

			late := n.open(t, "pulse.v1.json", "permessage-deflate")
			_, joined := ask(late, `"t":"join","room":%q`, room)
			var reply struct {
				OK struct{ Epoch string }
			}
			if err := json.Unmarshal(late.inflated(joined), &reply); err != nil {
				t.Fatal(err)
			}
			ask(late, `"t":"leave","room":%q`, room)
			replayed, _ := ask(late, `"t":"join","room":%q,"epoch":%q,"offset":0`, room, reply.OK.Epoch)
			for len(replayed) < 21 {
				replayed = append(replayed, late.read())
			}
			look(way("replayed"), late, replayed, packed)
			page, _ := ask(late, `"t":"history","room":%q`, room)
			look(way("history"), late, page, packed)
			if looked[way("live")] != 20 || looked[way("replayed")] != 20 || looked[way("history")] != 1 {
				t.Errorf("looked at %v", looked)
			}
		}

		hello := n.handshake(t, "pulse.v1.json", "permessage-deflate")
		hello.send(frame(fin|text, []byte(`{"t":"hello","rooms":[{"room":"echo:1"},{"room":"echo:2"},{"room":"echo:3"}]}`)))
		if f := hello.read(); f.packed || !bytes.Contains(f.payload, []byte(`"resume":`)) {
			t.Errorf("the welcome is compressed: %v, %.100s", f.packed, f.payload)
		}
	})
}
