package codec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// NewData makes data from a Go value as encoding/json would, by the protocol's
// rules: integers are exact, []byte becomes bin, structs go by their json tags
// (name, "-", omitempty, omitzero), json.Marshaler and encoding.TextMarshaler
// are asked, a Data is put in as it is. Refused with an *Error are values that
// data must not be: NaN and infinities, maps whose keys are no strings,
// nesting over 48 (cycles, therefore), channels, functions and complex numbers.
func NewData(v any) (Data, error) {
	m := marshaler{writer: writer{codec: Msgpack}}
	m.value(reflect.ValueOf(v), 0)
	if m.err != nil {
		return Data{}, m.err
	}
	return MakeData(Msgpack, m.b)
}

// maxGoDepth ends the walk through a cycle. It counts pointers and interfaces
// too; the depth of the data itself is the gate's to judge.
const maxGoDepth = 4 * maxDataDepth

// marshaler writes Go values; after the first fault what it writes means nothing.
type marshaler struct {
	writer
	err error
}

func (m *marshaler) refuse(format string, args ...any) {
	if m.err == nil {
		m.err = NewError(CodeBadRequest, fmt.Sprintf(format, args...))
	}
}

func (m *marshaler) value(v reflect.Value, depth int) {
	if depth > maxGoDepth {
		m.refuse("data is nested too deep")
		return
	}
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		m.null()
		return
	}
	if v.CanInterface() && m.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		m.value(v.Elem(), depth+1)
	case reflect.Bool:
		m.boolean(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		m.int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		m.uint(v.Uint())
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			m.refuse("data has a number that is not finite")
		}
		m.number(number{float: true, f: v.Float()})
	case reflect.String:
		m.text(v.String())
	case reflect.Slice:
		switch {
		case v.IsNil():
			m.null()
		case v.Type().Elem().Kind() == reflect.Uint8:
			m.bin(v.Bytes())
		default:
			m.list(v, depth)
		}
	case reflect.Array:
		m.list(v, depth)
	case reflect.Map:
		m.mapping(v, depth)
	case reflect.Struct:
		m.structure(v, depth)
	default:
		m.refuse("data cannot hold a Go %s", v.Kind())
	}
}

// special writes values that say themselves what they are.
func (m *marshaler) special(v reflect.Value) bool {
	switch x := v.Interface().(type) {
	case Data:
		m.data(x)
	case json.Number:
		m.json([]byte(x), nil)
	case json.Marshaler:
		raw, err := x.MarshalJSON()
		m.json(raw, err)
	case encoding.TextMarshaler:
		s, err := x.MarshalText()
		if err != nil {
			m.refuse("%v", err)
		}
		m.text(string(s))
	default:
		return false
	}
	return true
}

// json writes a value that is given as JSON.
func (m *marshaler) json(raw []byte, err error) {
	d, invalid := MakeData(JSON, raw)
	if err == nil {
		err = invalid
	}
	if err != nil {
		m.refuse("%v", err)
		return
	}
	m.data(d)
}

func (m *marshaler) list(v reflect.Value, depth int) {
	a := m.openArray()
	for i := range v.Len() {
		m.item(&a)
		m.value(v.Index(i), depth+1)
	}
	m.closeArray(a)
}

// mapping writes keys in order, so that equal maps give equal bytes.
func (m *marshaler) mapping(v reflect.Value, depth int) {
	if v.Type().Key().Kind() != reflect.String {
		m.refuse("data has a key that is not text")
		return
	}
	if v.IsNil() {
		m.null()
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	o := m.openObject()
	for _, k := range keys {
		m.pair(&o, k.String())
		m.value(v.MapIndex(k), depth+1)
	}
	m.closeObject(o)
}

func (m *marshaler) structure(v reflect.Value, depth int) {
	o := m.openObject()
	for _, f := range structFields(v.Type()) {
		x, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omitted(x) { // an embedded nil pointer has no fields
			continue
		}
		m.pair(&o, f.name)
		m.value(x, depth+1)
	}
	m.closeObject(o)
}
