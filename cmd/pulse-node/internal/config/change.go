package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Change is one setting that two configurations say different things of.
type Change struct {
	Path     string
	From, To string // in the words of the file; empty: it is not there
	Live     bool   // a running node can take it over
}

// Changes lists what is different in next, in the schema's order.
func (c *Config) Changes(next *Config) []Change {
	return differences(nil, field{value: reflect.ValueOf(c).Elem()}, field{value: reflect.ValueOf(next).Elem()}, false)
}

// differences adds what differs below a and b, of which one may be absent. What is below
// a setting that is live is live.
func differences(list []Change, a, b field, live bool) []Change {
	live = live || a.tag.Get("live") == "true"
	either := a.value
	if !either.IsValid() {
		either = b.value
	}
	switch either.Kind() {
	case reflect.Struct:
		if !a.value.IsValid() || !b.value.IsValid() {
			return append(list, Change{Path: a.path, From: a.shown(), To: b.shown(), Live: live})
		}
		below, with := fields(a.value, a.path), fields(b.value, b.path)
		for i := range below {
			list = differences(list, below[i], with[i], live)
		}
		return list
	case reflect.Map:
		all := map[string]bool{}
		for _, m := range []reflect.Value{a.value, b.value} {
			for _, name := range names(m) {
				all[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			key, path := reflect.ValueOf(name), join(a.path, name)
			list = differences(list, field{path: path, value: a.value.MapIndex(key)}, field{path: path, value: b.value.MapIndex(key)}, live)
		}
		return list
	}
	if reflect.DeepEqual(a.value.Interface(), b.value.Interface()) || a.value.Kind() == reflect.Slice && a.value.Len()+b.value.Len() == 0 {
		return list
	}
	return append(list, Change{Path: a.path, From: a.shown(), To: b.shown(), Live: live})
}

// shown is what a change says of a value: that it is there, where it is not one that
// fits a line.
func (f field) shown() string {
	switch {
	case !f.value.IsValid():
		return ""
	case f.value.Kind() == reflect.Struct:
		return "declared"
	case f.named():
		return fmt.Sprintf("%d entries", f.value.Len())
	}
	return f.text()
}

// Adopt is c with what of next a running node can take over.
func (c *Config) Adopt(next *Config) *Config {
	now := *c
	adopt(reflect.ValueOf(&now).Elem(), reflect.ValueOf(next).Elem())
	return &now
}

func adopt(to, from reflect.Value) {
	with := fields(from, "")
	for i, f := range fields(to, "") {
		switch {
		case f.tag.Get("live") == "true":
			f.value.Set(with[i].value)
		case f.value.Kind() == reflect.Struct:
			adopt(f.value, with[i].value)
		}
	}
}
