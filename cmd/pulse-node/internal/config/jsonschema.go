package config

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// JSONSchema describes the file, for editors and checks before a start. What
// settings say together it leaves to Load.
func JSONSchema() []byte {
	root := schemaOf(field{value: reflect.ValueOf(&Config{}).Elem()})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Configuration of pulse-node"
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: " + err.Error()) // maps of texts and numbers
	}
	return append(b, '\n')
}

type object = map[string]any

const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	sizePattern     = `^[0-9]+(B|KiB|MiB|GiB)$`
)

func schemaOf(f field) object {
	s := shapeOf(f)
	if doc := f.tag.Get("doc"); doc != "" {
		s["description"] = doc
	}
	if f.value.Kind() == reflect.Struct || f.named() {
		return s
	}
	if text, ok := f.tag.Lookup("default"); ok {
		s["default"] = said(f.value.Type(), text)
	}
	if f.tag.Get("later") == "*" {
		s["description"] = f.tag.Get("doc") + " (not in this build: only the default)"
		if f.value.Kind() == reflect.Slice {
			s["maxItems"] = 0
		} else {
			s["const"] = said(f.value.Type(), f.tag.Get("default"))
		}
		return s
	}
	if zero, ok := f.tag.Lookup("zero"); ok {
		s["description"] = f.tag.Get("doc") + "; zero: " + zero
	}
	return s
}

func shapeOf(f field) object {
	t := f.value.Type()
	switch {
	case t == durationType:
		return object{"type": "string", "pattern": durationPattern}
	case t == sizeType:
		return object{"type": "string", "pattern": sizePattern}
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := object{}
		for _, below := range fields(f.value, "") {
			properties[below.path] = schemaOf(below)
		}
		return object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": schemaOf(field{value: reflect.New(t.Elem()).Elem()})}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Interface { // of a part that is not in this build
			return object{"type": []string{"array", "null"}, "maxItems": 0}
		}
		return object{"type": []string{"array", "null"}, "items": schemaOf(field{value: reflect.New(t.Elem()).Elem()})}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		least := 1
		if _, ok := f.tag.Lookup("zero"); ok {
			least = 0
		}
		return object{"type": "integer", "minimum": least}
	case reflect.Float64:
		return object{"type": "number", "minimum": 0}
	}
	if words, ok := f.tag.Lookup("oneof"); ok {
		var now []string
		for _, word := range strings.Fields(words) {
			if f.tag.Get("later") == "*" || !f.later(word) {
				now = append(now, word)
			}
		}
		return object{"type": "string", "enum": now}
	}
	return object{"type": "string"}
}

// said is a default as JSON says it.
func said(t reflect.Type, text string) any {
	if t == durationType || t == sizeType || t.Kind() == reflect.String {
		return text
	}
	if t.Kind() == reflect.Bool {
		return text == "true"
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return nil
}
