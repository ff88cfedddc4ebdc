package codec

import (
	"reflect"
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
	list := collectFields(nil, t, nil)
	structs.Store(t, list)
	return list
}

// collectFields adds the fields of t, those of embedded structs after its own, so
// that the outer one of two equal names counts.
func collectFields(list []structField, t reflect.Type, index []int) []structField {
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
		if hasField(list, name) {
			continue
		}
		list = append(list, structField{
			name:      name,
			index:     append(append([]int(nil), index...), f.Index...),
			omitEmpty: hasOption(options, "omitempty"),
			omitZero:  hasOption(options, "omitzero"),
		})
	}
	for _, f := range embedded {
		if f.Type.Kind() == reflect.Pointer && !f.IsExported() || len(index) >= maxDataDepth {
			continue // cannot be set, or embeds itself
		}
		list = collectFields(list, structBehind(f.Type), append(append([]int(nil), index...), f.Index...))
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

func hasField(list []structField, name string) bool {
	for i := range list {
		if list[i].name == name {
			return true
		}
	}
	return false
}

func hasOption(options, want string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == want {
			return true
		}
	}
	return false
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
