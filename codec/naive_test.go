package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// A naive gate for each codec: the standard library or the msgpack library does
// the syntax, and every further rule is a slow check of its own. The verdict of
// the real gate must be the same for every input.

// verdict is what a gate says of a message: malformed, or whether its data has a
// fault.
type verdict struct{ malformed, fault bool }

var malformedVerdict = verdict{malformed: true}

// gateVerdict asks the real gate.
func gateVerdict(c Codec, message []byte) verdict {
	d := newDecoder()
	if !d.gate.frame(c, message) {
		return malformedVerdict
	}
	return verdict{fault: d.gate.inFault != ""}
}

func naiveJSON(message []byte) verdict {
	if !utf8.Valid(message) || !json.Valid(message) || !naiveSurrogates(message) {
		return malformedVerdict
	}
	dec := json.NewDecoder(bytes.NewReader(message))
	dec.UseNumber()
	v, ok := naiveTokens(dec, 0)
	frame, isObject := v.(map[string]any)
	if !ok || !isObject {
		return malformedVerdict
	}
	data, there := frame["data"]
	return verdict{fault: there && !naiveData(data, 0)}
}

// naiveTokens builds the next value; false for repeated keys or too much depth.
func naiveTokens(dec *json.Decoder, depth int) (any, bool) {
	token, err := dec.Token()
	if err != nil {
		return nil, false
	}
	delim, isDelim := token.(json.Delim)
	if !isDelim {
		return token, true
	}
	if depth++; depth > 64 {
		return nil, false
	}
	list, object := []any{}, map[string]any{}
	for dec.More() {
		var key any
		if delim == '{' {
			if key, err = dec.Token(); err != nil {
				return nil, false
			}
			if _, repeated := object[key.(string)]; repeated {
				return nil, false
			}
		}
		v, ok := naiveTokens(dec, depth)
		if !ok {
			return nil, false
		}
		if delim == '{' {
			object[key.(string)] = v
		} else {
			list = append(list, v)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	if delim == '{' {
		return object, true
	}
	return list, true
}

var (
	jsonStrings = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	jsonEscapes = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+|\\[^u]`)
)

// naiveSurrogates reports whether every surrogate in valid JSON has its pair.
func naiveSurrogates(message []byte) bool {
	for _, s := range jsonStrings.FindAll(message, -1) {
		for _, run := range jsonEscapes.FindAllString(string(s), -1) {
			if !strings.HasPrefix(run, `\u`) {
				continue
			}
			var units []uint16
			for hex := range strings.SplitSeq(run[2:], `\u`) {
				u, _ := strconv.ParseUint(hex, 16, 16)
				units = append(units, uint16(u))
			}
			for _, r := range utf16.Decode(units) {
				if r == utf8.RuneError && !strings.Contains(strings.ToLower(run), "fffd") {
					return false
				}
			}
		}
	}
	return true
}

// naiveData reports whether a value keeps the rules of data. unfit stands for
// what no JSON has.
func naiveData(v any, depth int) bool {
	switch v := v.(type) {
	case unfit:
		return false
	case []any:
		for _, e := range v {
			if !naiveData(e, depth+1) {
				return false
			}
		}
		return depth < 48
	case map[string]any:
		for _, e := range v {
			if !naiveData(e, depth+1) {
				return false
			}
		}
		return depth < 48
	case json.Number:
		if i, ok := new(big.Int).SetString(string(v), 10); ok {
			return i.IsInt64() || i.IsUint64()
		}
		_, err := strconv.ParseFloat(string(v), 64)
		return err == nil
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return true
}

type unfit struct{}

func naivePack(message []byte) verdict {
	r := bytes.NewReader(message)
	n := &naivePacker{r, msgpack.NewDecoder(r)}
	v, err := n.value(0, false, nil)
	frame, isObject := v.(map[string]any)
	if err != nil || !isObject || r.Len() > 0 {
		return malformedVerdict
	}
	data, there := frame["data"]
	return verdict{fault: there && !naiveData(data, 0)}
}

type naivePacker struct {
	r *bytes.Reader
	*msgpack.Decoder
}

var errNaive = errors.New("malformed")

// value builds the next value; inData allows keys that are no text. path are the
// keys above it.
func (n *naivePacker) value(depth int, inData bool, path []string) (any, error) {
	code, err := n.PeekCode()
	if err != nil {
		return nil, err
	}
	switch k := packKind(code); k {
	case noKind:
		return nil, errNaive
	case extKind:
		_, size, err := n.DecodeExtHeader()
		if err != nil || size > n.r.Len() {
			return nil, errNaive
		}
		_, err = io.CopyN(io.Discard, n.r, int64(size))
		return unfit{}, err
	case textKind, binKind:
		size, err := n.DecodeBytesLen() // DecodeString would allocate what it declares
		if err != nil || size > n.r.Len() {
			return nil, errNaive
		}
		b := make([]byte, size)
		if _, err := io.ReadFull(n.r, b); err != nil || k == binKind {
			return b, err
		}
		if !utf8.Valid(b) {
			return nil, errNaive
		}
		return string(b), nil
	case arrayKind:
		count, err := n.DecodeArrayLen()
		if err != nil || depth >= 64 || count > n.r.Len() {
			return nil, errNaive
		}
		list := []any{}
		for range count {
			v, err := n.value(depth+1, inData, append(path, ""))
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case objectKind:
		return n.object(depth, inData, path)
	}
	return n.DecodeInterfaceLoose()
}

func (n *naivePacker) object(depth int, inData bool, path []string) (any, error) {
	count, err := n.DecodeMapLen()
	if err != nil || depth >= 64 || 2*count > n.r.Len() {
		return nil, errNaive
	}
	object := map[string]any{}
	for i := range count {
		k, err := n.value(depth+1, inData, path)
		if err != nil {
			return nil, err
		}
		key, isText := k.(string)
		if !isText && !inData {
			return nil, errNaive
		}
		if _, repeated := object[key]; isText && repeated {
			return nil, errNaive
		}
		below := append(append([]string(nil), path...), key)
		data := len(below) == 1 && key == "data" || len(below) == 3 && below[0] == "rooms" && key == "data"
		v, err := n.value(depth+1, inData || data, below)
		if err != nil {
			return nil, err
		}
		if !isText {
			key, v = "\xff"+strconv.Itoa(i), unfit{}
		}
		object[key] = v
	}
	return object, nil
}
