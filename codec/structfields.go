package codec

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// structField is one field of a Go struct as JSON tags describe it. Of the tag's
// options omitempty and omitzero count.
type structField struct {
	name      string
	index     []int
	omitEmpty bool
	omitZero  bool
}

// structs remembers the fields of types; it grows with the types of a program,
// never with data.
var structs sync.Map // reflect.Type to []structField

func structFields(t reflect.Type) []structField {
	if list, ok := structs.Load(t); ok {
		return list.([]structField)
	}
	list := collectFields(nil, nil, t, nil)
	structs.Store(t, list)
	return list
}

// collectFields adds the fields of t, then those of the structs embedded in it, so
// that an outer field hides an inner one of its name. above are the structs that
// t is embedded in: a struct within itself adds nothing.
func collectFields(list []structField, above []reflect.Type, t reflect.Type, index []int) []structField {
	if slices.Contains(above, t) {
		return list
	}
	above = append(slices.Clone(above), t)
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && structBehind(f.Type) != nil:
			embedded = append(embedded, f)
			continue
		case !f.IsExported() || name == "-" && options == "":
			continue
		case name == "":
			name = f.Name
		}
		if slices.ContainsFunc(list, func(f structField) bool { return f.name == name }) {
			continue
		}
		list = append(list, structField{
			name:      name,
			index:     append(slices.Clone(index), f.Index...),
			omitEmpty: slices.Contains(strings.Split(options, ","), "omitempty"),
			omitZero:  slices.Contains(strings.Split(options, ","), "omitzero"),
		})
	}
	for _, f := range embedded {
		if f.Type.Kind() == reflect.Pointer && !f.IsExported() {
			continue // cannot be set
		}
		list = collectFields(list, above, structBehind(f.Type), append(slices.Clone(index), f.Index...))
	}
	return list
}

// structBehind is the struct that t is or points to, nil if there is none.
func structBehind(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// omitted reports whether the field's value is left out.
func (f *structField) omitted(v reflect.Value) bool {
	if f.omitZero && v.IsZero() {
		return true
	}
	if !f.omitEmpty {
		return false
	}
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
