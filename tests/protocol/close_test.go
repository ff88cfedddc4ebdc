package protocol

import (
	"fmt"
	"strings"
	"testing"
)

// Section 7, closing: RFC 6455, 5.5.1 and 7.
func TestClosing(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		var scripts []script
		add := func(number, rule string, send []byte, code uint16) {
			scripts = append(scripts, script{number: number, rule: rule, send: send, close: code})
		}
		for _, code := range []uint16{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999} {
			add(fmt.Sprintf("7.7.%d", code), "a code that may be sent comes back", closing(code, "reason"), code)
		}
		for _, code := range []uint16{0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
			add(fmt.Sprintf("7.9.%d", code), "a code that may not be sent", closing(code, ""), 1002)
		}
		add("7.3.2", "a payload of one byte", frame(fin|cls, []byte{3}), 1002)
		add("7.3.3", "a code alone", closing(1000, ""), 1000)
		add("7.3.5", "a reason of 123 bytes", closing(1000, strings.Repeat("*", 123)), 1000)
		add("7.3.6", "a reason of 124 bytes", closing(1000, strings.Repeat("*", 124)), 1002)
		add("7.5.1", "a reason that is not UTF-8", closing(1000, "\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5\xED\xA0\x80"), 1007)
		add("7.5.2", "a reason that is cut within a character", closing(1000, "\xE2\x82"), 1007)
		add("7.5.3", "a reason in UTF-8", closing(1000, "κόσμε"), 1000)
		add("7.1.2", "two closes", join(closing(1000, ""), closing(1001, "")), 1000)
		add("7.1.3", "a ping behind the close is not answered", join(closing(1000, ""), frame(fin|ping, []byte("x"))), 1000)
		add("7.1.4", "a message behind the close is not handled", join(closing(1000, ""), frame(fin|text, padded(1, 0))), 1000)
		add("7.1.5", "a close within a message", join(frame(noFin|text, []byte(`{"t":`)), closing(1000, ""), frame(fin|cont, nil)), 1000)
		add("7.1.6", "much behind the close", join(closing(1000, ""), make([]byte, 256<<10)), 1000)
		add("7.1.7", "a violation behind the close", join(closing(1000, ""), []byte{0xFF, 0xFF}), 1000)
		n.run(t, scripts)
		t.Run("7.3.1 without a code", func(t *testing.T) {
			p := n.open(t, "pulse.v1.json", "")
			p.send(frame(fin|cls, nil))
			if code, _ := p.ended(); code != 0 {
				t.Errorf("closed %d", code)
			}
		})
		t.Run("7.1.8 what came before the close is answered before it", func(t *testing.T) {
			p := n.open(t, "pulse.v1.json", "")
			p.send(join(frame(fin|ping, []byte("x")), closing(1000, "")))
			if code, before := p.ended(); code != 1000 || len(before) != 1 || before[0].op != pong {
				t.Errorf("closed %d behind %v", code, before)
			}
		})
	})
}
