package protocol

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// say publishes text, as data of an event that the peer itself gets back.
func say(room, s string) []byte {
	return []byte(`{"t":"publish","room":"` + room + `","event":"said","data":"` + s + `"}`)
}

var validTexts = []string{
	"", "Hello-µ@ßöäüàá-UTF-8!!", "κόσμε", "\u0080", "\u07FF", "\u0800", "\uD7FF", "\uE000", "\uFFFD", "\uFFFE", "\uFFFF",
	"\U00010000", "\U0010FFFF", "\U0001FFFE", "日本語", "\U0001F600",
}

var invalidTexts = []string{
	"\x80", "\xBF", "\x80\xBF\x80", // continuations of nothing
	"\xC0 ", "\xC3", "\xC3(", "\xE2\x82", "\xE2\x28\xA1", "\xF0\x9F\x98", "\xF0\x28\x8C\xBC", // cut short
	"\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\xAF", "\xF8\x80\x80\x80\xAF", "\xFC\x80\x80\x80\x80\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", // overlong
	"\xED\xA0\x80", "\xED\xBF\xBF", "\xED\xA0\x80\xED\xB0\x80", // surrogates
	"\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xFE\xFE\xFF\xFF", // beyond Unicode
	"κόσμε\xED\xA0\x80edited",
}

// Section 6, UTF-8: RFC 6455, 5.6 and 8.1.
func TestUTF8(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		for i, s := range validTexts {
			t.Run(fmt.Sprintf("6.1.%d %+q, in fragments of every size", i+1, s), func(t *testing.T) {
				t.Parallel()
				p := n.open(t, "pulse.v1.json", "")
				doc := say(p.room, s)
				start := bytes.Index(doc, []byte(`"data":"`))
				for cut := start; cut <= len(doc); cut++ {
					p.send(join(frame(noFin|text, doc[:cut]), frame(fin|cont, doc[cut:])))
					if f := p.read(); !bytes.Contains(f.payload, []byte(`"data":"`+s+`"`)) {
						t.Fatalf("cut at %d: %s", cut, f.payload)
					}
				}
			})
		}
		for i, s := range invalidTexts {
			doc := say("echo", s)
			at := strings.Index(string(doc), s)
			n.run(t, []script{
				{number: fmt.Sprintf("6.2.%d", i+1), rule: fmt.Sprintf("%+q", s), send: frame(fin|text, doc), close: 1007},
				{number: fmt.Sprintf("6.3.%d", i+1), rule: fmt.Sprintf("%+q, in two fragments", s),
					send: join(frame(noFin|text, doc[:at+1]), frame(fin|cont, doc[at+1:])), close: 1007},
			})
		}
	})
}
