package e2e

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The tests' own msgpack, so that the engine's is not measured with itself.
// Values are those of encoding/json with UseNumber, and []byte for bin.

func pack(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, 0xc0)
	case bool:
		if v {
			return append(dst, 0xc3)
		}
		return append(dst, 0xc2)
	case string:
		return append(packLen(dst, len(v), 0xa0, 31, 0xd9), v...)
	case []byte:
		return append(packLen(dst, len(v), 0, -1, 0xc4), v...)
	case json.Number:
		return packNumber(dst, v.String())
	case int:
		return packNumber(dst, strconv.Itoa(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(v))
	case []any:
		dst = packLen(dst, len(v), 0x90, 15, 0xdb)
		for _, e := range v {
			dst = pack(dst, e)
		}
		return dst
	case map[string]any:
		dst = packLen(dst, len(v), 0x80, 15, 0xdd)
		for k, e := range v {
			dst = pack(pack(dst, k), e)
		}
		return dst
	}
	panic(fmt.Sprintf("no msgpack for %T", v))
}

// packLen writes a length: in one byte with fix up to most, else in the smallest of
// the types that follow each other from first. Arrays and maps have none of 8 bits.
func packLen(dst []byte, n int, fix byte, most int, first byte) []byte {
	switch {
	case n <= most:
		return append(dst, fix|byte(n))
	case n < 1<<8 && first != 0xdb && first != 0xdd:
		return append(dst, first, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, first+1), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, first+2), uint32(n))
}

func packNumber(dst []byte, text string) []byte {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		switch {
		case i >= 0 && i < 128, i < 0 && i >= -32:
			return append(dst, byte(i))
		case i >= math.MinInt16 && i <= math.MaxInt16:
			return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(i))
		}
		return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(i))
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return binary.BigEndian.AppendUint64(append(dst, 0xcf), u)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return pack(dst, f)
}

// unpack reads one value and refuses anything behind it.
func unpack(b []byte) (v any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("msgpack: %v in % x", fault, b)
		}
	}()
	v, rest := unpackValue(b)
	if len(rest) > 0 {
		return nil, errors.New("msgpack: bytes left over")
	}
	return v, nil
}

func unpackValue(b []byte) (any, []byte) {
	c, b := b[0], b[1:]
	switch {
	case c < 0x80:
		return number(int64(c)), b
	case c < 0x90:
		return unpackMap(int(c&15), b)
	case c < 0xa0:
		return unpackArray(int(c&15), b)
	case c < 0xc0:
		n := c & 31
		return string(b[:n]), b[n:]
	case c >= 0xe0:
		return number(int64(int8(c))), b
	}
	switch c {
	case 0xc0:
		return nil, b
	case 0xc2, 0xc3:
		return c == 0xc3, b
	case 0xc4, 0xc5, 0xc6:
		n, b := unpackUint(1<<(c-0xc4), b)
		return append([]byte{}, b[:n]...), b[n:]
	case 0xca:
		u, b := unpackUint(4, b)
		return float(float64(math.Float32frombits(uint32(u)))), b
	case 0xcb:
		u, b := unpackUint(8, b)
		return float(math.Float64frombits(u)), b
	case 0xcc, 0xcd, 0xce, 0xcf:
		u, b := unpackUint(1<<(c-0xcc), b)
		return json.Number(strconv.FormatUint(u, 10)), b
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (c - 0xd0)
		u, b := unpackUint(size, b)
		return number(int64(u) << (64 - 8*size) >> (64 - 8*size)), b
	case 0xd9, 0xda, 0xdb:
		n, b := unpackUint(1<<(c-0xd9), b)
		return string(b[:n]), b[n:]
	case 0xdc, 0xdd:
		n, b := unpackUint(2<<(c-0xdc), b)
		return unpackArray(int(n), b)
	case 0xde, 0xdf:
		n, b := unpackUint(2<<(c-0xde), b)
		return unpackMap(int(n), b)
	}
	panic(fmt.Sprintf("type %#x", c))
}

func unpackUint(size int, b []byte) (u uint64, rest []byte) {
	for _, c := range b[:size] {
		u = u<<8 | uint64(c)
	}
	return u, b[size:]
}

func unpackArray(n int, b []byte) (any, []byte) {
	list := []any{}
	for range n {
		var v any
		v, b = unpackValue(b)
		list = append(list, v)
	}
	return list, b
}

func unpackMap(n int, b []byte) (any, []byte) {
	m := map[string]any{}
	for range n {
		var k, v any
		k, b = unpackValue(b)
		v, b = unpackValue(b)
		name := k.(string)
		if _, there := m[name]; there {
			panic("key " + name + " twice")
		}
		m[name] = v
	}
	return m, b
}

func number(i int64) json.Number { return json.Number(strconv.FormatInt(i, 10)) }

// float keeps a fraction or exponent in the text, so that it is not taken for an
// integer.
func float(f float64) json.Number {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	return json.Number(text)
}
