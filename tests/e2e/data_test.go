package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// publication is a publish to chat:1 whose data is these very bytes.
func publication(in wire, id int, data []byte) []byte {
	if in == inJSON {
		return fmt.Appendf(nil, `{"t":"publish","id":%d,"room":"chat:1","event":"message","data":%s}`, id, data)
	}
	b := []byte{0x85}
	for _, pair := range [][2]any{{"t", "publish"}, {"id", id}, {"room", "chat:1"}, {"event", "message"}} {
		b = pack(pack(b, pair[0]), pair[1])
	}
	return append(pack(b, "data"), data...)
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Section 3, data: whoever publishes it, members of both codecs read the same.
func TestDataIsTheSameForEverybody(t *testing.T) {
	text := strings.Repeat("ü", 40)
	cases := []struct {
		name, json, msgpack string
		want                any // as JSON is read
		packed              any // as msgpack is read, where that differs
	}{
		{name: "null", json: `null`, msgpack: `c0`, want: nil},
		{name: "true", json: `true`, msgpack: `c3`, want: true},
		{name: "2^53+1", json: `9007199254740993`, msgpack: `cf0020000000000001`, want: json.Number("9007199254740993")},
		{name: "least of int64", json: `-9223372036854775808`, msgpack: `d38000000000000000`, want: json.Number("-9223372036854775808")},
		{name: "largest of int64", json: `9223372036854775807`, msgpack: `cf7fffffffffffffff`, want: json.Number("9223372036854775807")},
		{name: "largest of uint64", json: `18446744073709551615`, msgpack: `cfffffffffffffffff`, want: json.Number("18446744073709551615")},
		{name: "a small number in nine bytes", json: `5`, msgpack: `d30000000000000005`, want: json.Number("5")},
		{name: "a fraction", json: `0.1`, msgpack: `cb3fb999999999999a`, want: json.Number("0.1")},
		{name: "an exponent", json: `1e300`, msgpack: `cb7e37e43c8800759c`, want: json.Number("1e+300")},
		{name: "the smallest of float64", json: `5e-324`, msgpack: `cb0000000000000001`, want: json.Number("5e-324")},
		{name: "text of every plane", json: `"é\u4e16\ud83d\ude00\u0000\u2028"`, msgpack: `ad c3a9 e4b896 f09f9880 00 e280a8`,
			want: "é世😀\x00\u2028"},
		{name: "long text", json: `"` + text + `"`, msgpack: `d950` + hex.EncodeToString([]byte(text)), want: text},
		{name: "empty things", json: `[[],{},""]`, msgpack: `93 90 80 a0`, want: []any{[]any{}, map[string]any{}, ""}},
		{name: "names that mean something elsewhere", json: `{"$bin":"AA==","__proto__":{"x":1},"t":"hello","id":-1,"":0}`,
			msgpack: `85 a42462696e a441413d3d a95f5f70726f746f5f5f 81 a178 01 a174 a568656c6c6f a26964 ff a0 00`,
			want:    map[string]any{"$bin": "AA==", "__proto__": map[string]any{"x": json.Number("1")}, "t": "hello", "id": json.Number("-1"), "": json.Number("0")}},
		{name: "keys that differ in case", json: `{"tenant":1,"Tenant":2}`, msgpack: `82 a674656e616e74 01 a654656e616e74 02`,
			want: map[string]any{"tenant": json.Number("1"), "Tenant": json.Number("2")}},
		{name: "bin", msgpack: `c404 00ff80c3`, want: base64.StdEncoding.EncodeToString([]byte{0, 0xff, 0x80, 0xc3}), packed: []byte{0, 0xff, 0x80, 0xc3}},
		{name: "empty bin", msgpack: `c400`, want: "", packed: []byte{}},
		{name: "bin within", msgpack: `91 81 a162 c50001 fb`, want: []any{map[string]any{"b": "+w=="}}, packed: []any{map[string]any{"b": []byte{0xfb}}}},
		{name: "48 deep", json: deepJSON(48), msgpack: deepMsgpack(48), want: func() (v any) {
			v = []any{}
			for range 47 {
				v = []any{v}
			}
			return
		}()},
	}
	n := serve(t, nil)
	for _, from := range wires {
		alice, _ := enter(t, n, from, "acme/alice", "chat:1")
		members := map[wire]*client{}
		for _, in := range wires {
			members[in], _ = enter(t, n, in, "acme/bob", "chat:1")
		}
		for i, c := range cases {
			data := []byte(c.json)
			if from == inMsgpack {
				data = unhex(t, c.msgpack)
			} else if c.json == "" {
				continue
			}
			alice.order.asked[fmt.Sprint(i+1)] = []request{{t: "publish"}}
			alice.raw(from.kind(), publication(from, i+1, data))
			if r := alice.until("reply"); r["ok"] == nil {
				t.Fatalf("%s from %s: %v", c.name, from, r)
			}
			for in, m := range members {
				want := c.want
				if in == inMsgpack && c.packed != nil {
					want = c.packed
				}
				if got := m.until("event")["data"]; !reflect.DeepEqual(plain(got), want) {
					t.Errorf("%s from %s to %s: %#v, not %#v", c.name, from, in, got, want)
				}
			}
		}
		alice.cut()
		for _, m := range members {
			m.cut()
		}
	}
}

// plain spells fractions as encoding/json does.
func plain(v any) any {
	if n, ok := v.(json.Number); ok && strings.ContainsAny(n.String(), ".eE") {
		f, _ := n.Float64()
		return json.Number(fmt.Sprint(f))
	}
	return v
}

// What one of the codecs cannot say is refused, and leaves everything as it was.
func TestDataThatCannotBeSaidIsRefused(t *testing.T) {
	cases := map[wire]map[string]string{
		inJSON: {
			"above uint64":     `18446744073709551616`,
			"below int64":      `-9223372036854775809`,
			"beyond float64":   `1e400`,
			"49 deep":          deepJSON(49),
			"49 deep, objects": strings.Repeat(`{"a":`, 49) + "1" + strings.Repeat("}", 49),
		},
		inMsgpack: {
			"NaN":                      `cb7ff8000000000001`,
			"infinity":                 `cb7ff0000000000000`,
			"negative infinity of 32":  `caff800000`,
			"an extension":             `d4 05 00`,
			"a timestamp":              `d6 ff 00000000`,
			"a long extension":         `c7 03 01 010203`,
			"a number as key (B116)":   `81 01 02`,
			"nil as key":               `81 c0 02`,
			"bin as key":               `81 c40161 02`,
			"a map as key (B115)":      `81 81 a178 c3 c3`,
			"a number as key, within":  `92 01 91 81 01 02`,
			"49 deep":                  deepMsgpack(49),
			"a map as key, and others": `83 a161 01 81 a178 c3 c3 a162 02`,
		},
	}
	n := serve(t, nil)
	for in, values := range cases {
		bob, _ := enter(t, n, inJSON, string(in)+"/bob", "chat:1")
		alice, _ := enter(t, n, in, string(in)+"/alice", "chat:1")
		id := 0
		for name, text := range values {
			data := []byte(text)
			if in == inMsgpack {
				data = unhex(t, text)
			}
			id++
			alice.order.asked[fmt.Sprint(id)] = []request{{t: "publish"}}
			alice.raw(in.kind(), publication(in, id, data))
			if r := alice.next(); r.text("t") != "reply" || fmt.Sprint(r["err"].(map[string]any)["code"]) != "bad_request" {
				t.Errorf("%s in %s: %v", name, in, r)
			}
		}
		bob.quiet()
		alice.quiet()
	}
}

// What grows most on its way to the other codec still fits a frame of the least
// max_frame_bytes that there may be.
func TestNothingIsLargerThanMaxFrameBytes(t *testing.T) {
	const message = 4 << 10
	const frameBytes = 6*message + 4<<10
	n := serve(t, func(s *setup) { s.Limits.MaxMessageBytes, s.Limits.MaxFrameBytes = message, frameBytes })
	alice, _ := enter(t, n, inMsgpack, "acme/alice", "chat:1")
	bob, w := enter(t, n, inJSON, "acme/bob", "chat:1")
	if fmt.Sprint(w["max_frame_bytes"]) != fmt.Sprint(frameBytes) {
		t.Errorf("welcome %v", w)
	}
	bob.ws.SetReadLimit(frameBytes)
	text := strings.Repeat("\x01", message-100) // six bytes each in JSON
	alice.order.asked["1"] = []request{{t: "publish"}}
	alice.raw(websocket.MessageBinary, publication(inMsgpack, 1, pack(nil, text)))
	if r := alice.until("reply"); r["ok"] == nil {
		t.Fatalf("%v", r)
	}
	if bob.until("event")["data"] != text {
		t.Error("other text than was published")
	}
}

// Section 3, size: what fits is taken, one byte more closes the connection with
// 1009, as soon as a header says so.
func TestMessagesUpToTheLimit(t *testing.T) {
	const limit = 4 << 10
	n := serve(t, func(s *setup) { s.Limits.MaxMessageBytes = limit })
	for _, in := range wires {
		sized := func(size int) []byte {
			for pad := size; ; pad-- {
				text, _ := json.Marshal(strings.Repeat("x", pad))
				if in == inMsgpack {
					text = pack(nil, strings.Repeat("x", pad))
				}
				if b := publication(in, 1, text); len(b) == size {
					return b
				}
			}
		}
		bob, _ := enter(t, n, inJSON, string(in)+"/bob", "chat:1")
		alice, w := enter(t, n, in, string(in)+"/alice", "chat:1")
		if fmt.Sprint(w["max_message_bytes"]) != fmt.Sprint(limit) {
			t.Errorf("welcome %v", w)
		}
		alice.order.asked["1"] = []request{{t: "publish"}}
		alice.raw(in.kind(), sized(limit))
		if r := alice.until("reply"); r["ok"] == nil {
			t.Errorf("%d bytes in %s: %v", limit, in, r)
		}
		bob.until("event")
		alice.raw(in.kind(), sized(limit+1))
		if code, _ := alice.closed(); code != websocket.StatusMessageTooBig {
			t.Errorf("%d bytes in %s: closed %d", limit+1, in, code)
		}
		bob.quiet()

		// Only the header of a message that would be too long.
		hasty, _ := enter(t, n, in, string(in)+"/hasty")
		frame := []byte{0x80 | byte(map[wire]int{inJSON: 1, inMsgpack: 2}[in]), 0x80 | 126, byte((limit + 1) >> 8), byte((limit + 1) & 0xff), 0, 0, 0, 0}
		if _, err := hasty.tcp.Write(frame); err != nil {
			t.Fatal(err)
		}
		if code, _ := hasty.closed(); code != websocket.StatusMessageTooBig {
			t.Errorf("a header of %d bytes in %s: closed %d", limit+1, in, code)
		}
	}
}
