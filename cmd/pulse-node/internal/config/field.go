package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// field is one setting of the schema: its path, and where its value is kept.
type field struct {
	path  string
	tag   reflect.StructTag
	value reflect.Value
}

// fields returns the settings directly under v, a struct of the schema.
func fields(v reflect.Value, path string) []field {
	list := make([]field, 0, v.NumField())
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		if key, ok := tag.Lookup("key"); ok {
			list = append(list, field{path: join(path, key), tag: tag, value: v.Field(i)})
		}
	}
	return list
}

// leaves returns the settings under v that are no structs, at any depth.
func leaves(v reflect.Value, path string) []field {
	var list []field
	for _, f := range fields(v, path) {
		if f.value.Kind() == reflect.Struct {
			list = append(list, leaves(f.value, f.path)...)
		} else {
			list = append(list, f)
		}
	}
	return list
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// named reports whether f is a map or a list of objects: what only the file can say.
func (f field) named() bool {
	k := f.value.Kind()
	return k == reflect.Map || k == reflect.Slice && f.value.Type().Elem().Kind() != reflect.String
}

// later reports whether word, a value of f, waits for another build. For a
// setting of which every value does, any word is one.
func (f field) later(word string) bool {
	words := f.tag.Get("later")
	return words == "*" || slices.Contains(strings.Fields(words), word)
}

// fallback returns the default of a scalar or a list of them.
func (f field) fallback() reflect.Value {
	text, ok := f.tag.Lookup("default")
	if !ok {
		return reflect.Zero(f.value.Type())
	}
	v, err := parse(f.value.Type(), text)
	if err != nil {
		panic(fmt.Sprintf("config: default of %s: %v", f.path, err))
	}
	return v
}

// set gives f the value that text names. Its error says what would be right.
func (f field) set(text string) error {
	v, err := parse(f.value.Type(), text)
	if err != nil {
		return f.blame(text, err)
	}
	if f.tag.Get("later") == "*" && !same(v, f.fallback()) {
		return errNotInThisBuild
	}
	if words, ok := f.tag.Lookup("oneof"); ok {
		if !slices.Contains(strings.Fields(words), text) {
			return f.blame(text, fmt.Errorf("must be one of: %s", strings.ReplaceAll(words, " ", ", ")))
		}
		if f.later(text) {
			return fmt.Errorf("%q: %w", text, errNotInThisBuild)
		}
	}
	if _, ok := f.tag.Lookup("zero"); !ok && isNumber(v) && v.IsZero() {
		return f.blame(text, errZero)
	}
	f.value.Set(v)
	return nil
}

// blame repeats what was written before err, unless it is a secret.
func (f field) blame(text string, err error) error {
	if f.tag.Get("secret") == "true" {
		return err
	}
	return fmt.Errorf("%q %w", text, err)
}

func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Slice {
		return a.Len() == 0 && b.Len() == 0
	}
	return a.Equal(b)
}

func isNumber(v reflect.Value) bool { return v.CanInt() || v.CanFloat() }

// setDefaults fills a struct of the schema.
func setDefaults(v reflect.Value) {
	for _, f := range leaves(v, "") {
		if !f.named() {
			f.value.Set(f.fallback())
		}
	}
}
