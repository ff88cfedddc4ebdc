package codec

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// Unmarshal puts the value into what v points to, as encoding/json would, with
// these differences: keys match struct fields exactly, case included; an
// interface gets int64 (uint64 above it) for integers, and []byte for bin; a
// number that the Go type cannot hold exactly as an integer is an error. []byte
// takes bin or base64 text. Strings and Data in v may share the value's memory.
func (d Data) Unmarshal(v any) error {
	to := reflect.ValueOf(v)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return errors.New("codec: Unmarshal needs a pointer")
	}
	if d.IsZero() {
		return errors.New("codec: no data")
	}
	return unmarshal(&source{d.codec, d.raw}, to.Elem())
}

// unmarshal takes the next value of s into to, in one pass.
func unmarshal(s *source, to reflect.Value) error {
	k := s.kind()
	if done, err := unmarshalSpecial(s, k, to); done {
		return err
	}
	if k == nullKind {
		s.take()
		to.SetZero()
		return nil
	}
	switch to.Kind() {
	case reflect.Pointer:
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		return unmarshal(s, to.Elem())
	case reflect.Interface:
		if to.NumMethod() > 0 {
			return mismatch(k, to)
		}
		to.Set(reflect.ValueOf(s.any()))
		return nil
	case reflect.Struct:
		return unmarshalStruct(s, k, to)
	case reflect.Map:
		return unmarshalMap(s, k, to)
	case reflect.Slice, reflect.Array:
		if k == arrayKind {
			return unmarshalList(s, to)
		}
	}
	return unmarshalScalar(s.take(), k, to)
}

// unmarshalSpecial serves types that read themselves.
func unmarshalSpecial(s *source, k kind, to reflect.Value) (done bool, err error) {
	if !to.CanAddr() || to.Kind() == reflect.Pointer {
		return false, nil
	}
	switch x := to.Addr().Interface().(type) {
	case *Data:
		*x = Data(s.take())
	case json.Unmarshaler:
		err = x.UnmarshalJSON(Data(s.take()).In(JSON))
	case encoding.TextUnmarshaler:
		if k != textKind {
			return false, nil
		}
		text, _ := s.take().text()
		err = x.UnmarshalText([]byte(text))
	default:
		return false, nil
	}
	return true, err
}

func unmarshalScalar(v value, k kind, to reflect.Value) error {
	x, isNumber := v.number()
	switch to.Kind() {
	case reflect.Bool:
		if b, ok := v.boolean(); ok {
			to.SetBool(b)
			return nil
		}
	case reflect.String:
		if s, ok := v.text(); ok {
			to.SetString(s)
			return nil
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if i, ok := x.int64(); isNumber && ok && !to.OverflowInt(i) {
			to.SetInt(i)
			return nil
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if u, ok := x.uint64(); isNumber && ok && !to.OverflowUint(u) {
			to.SetUint(u)
			return nil
		}
	case reflect.Float32, reflect.Float64:
		if f := x.float64(); isNumber && !to.OverflowFloat(f) {
			to.SetFloat(f)
			return nil
		}
	case reflect.Slice:
		if to.Type().Elem().Kind() != reflect.Uint8 {
			break
		}
		if k == binKind {
			to.SetBytes(bytes.Clone(v.body()))
			return nil
		}
		if s, ok := v.text(); ok {
			p, err := base64.StdEncoding.DecodeString(s)
			if err == nil {
				to.SetBytes(p)
			}
			return err
		}
	}
	return mismatch(k, to)
}

func unmarshalStruct(s *source, k kind, to reflect.Value) error {
	if k != objectKind {
		return mismatch(k, to)
	}
	fields := structFields(to.Type())
	for n := s.open(); s.more(&n); {
		name, _ := s.take().text()
		at := -1
		for i := range fields {
			if fields[i].name == name {
				at = i
			}
		}
		if at < 0 {
			s.take()
			continue
		}
		if err := unmarshal(s, fieldAt(to, fields[at].index)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// fieldAt goes down to a field, making embedded structs that are not there yet.
func fieldAt(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

func unmarshalMap(s *source, k kind, to reflect.Value) error {
	t := to.Type()
	if k != objectKind || t.Key().Kind() != reflect.String {
		return mismatch(k, to)
	}
	if to.IsNil() {
		to.Set(reflect.MakeMap(t))
	}
	for n := s.open(); s.more(&n); {
		name, _ := s.take().text()
		e := reflect.New(t.Elem()).Elem()
		if err := unmarshal(s, e); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), e)
	}
	return nil
}

// unmarshalList fills a slice anew, or an array as far as both reach.
func unmarshalList(s *source, to reflect.Value) error {
	slice := to.Kind() == reflect.Slice
	if slice {
		to.Set(reflect.MakeSlice(to.Type(), 0, 0))
	}
	i := 0
	for n := s.open(); s.more(&n); i++ {
		if slice {
			to.Grow(1)
			to.SetLen(i + 1)
		} else if i >= to.Len() {
			s.take()
			continue
		}
		if err := unmarshal(s, to.Index(i)); err != nil {
			return err
		}
	}
	for ; !slice && i < to.Len(); i++ {
		to.Index(i).SetZero()
	}
	return nil
}

// any takes the next value as Go has it without a type.
func (s *source) any() any {
	switch s.kind() {
	case arrayKind:
		list := []any{}
		for n := s.open(); s.more(&n); {
			list = append(list, s.any())
		}
		return list
	case objectKind:
		object := map[string]any{}
		for n := s.open(); s.more(&n); {
			name, _ := s.take().text()
			object[name] = s.any()
		}
		return object
	}
	v := s.take()
	switch v.kind() {
	case boolKind:
		b, _ := v.boolean()
		return b
	case numberKind:
		x, _ := v.number()
		if i, ok := x.int64(); ok && !x.float {
			return i
		}
		if !x.float {
			return x.u
		}
		return x.f
	case textKind:
		text, _ := v.text()
		return text
	case binKind:
		return bytes.Clone(v.body())
	}
	return nil
}

// int64 is the number if it is an integer that fits.
func (x number) int64() (int64, bool) {
	if x.float {
		i := int64(x.f)
		return i, x.f == math.Trunc(x.f) && x.f >= -1<<63 && x.f < 1<<63
	}
	return int64(x.u), x.negative || x.u <= math.MaxInt64
}

// uint64 is the number if it is an integer that fits.
func (x number) uint64() (uint64, bool) {
	if x.float {
		return uint64(x.f), x.f == math.Trunc(x.f) && x.f >= 0 && x.f < 1<<64
	}
	return x.u, !x.negative
}

func (x number) float64() float64 {
	switch {
	case x.float:
		return x.f
	case x.negative:
		return float64(int64(x.u))
	}
	return float64(x.u)
}

func mismatch(k kind, to reflect.Value) error {
	return fmt.Errorf("codec: %s does not fit a Go %s", k, to.Type())
}
