package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// hidden stands for the value of a secret.
const hidden = "***"

// YAML writes what is in force as a file would say it: every setting, those of maps
// in order of their names, and *** for secrets.
func (c *Config) YAML() []byte {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	// A tree of nodes in memory has nothing that could fail.
	_ = enc.Encode(node(field{value: reflect.ValueOf(c).Elem()}))
	_ = enc.Close()
	return b.Bytes()
}

func node(f field) *yaml.Node {
	switch v := f.value; v.Kind() {
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, below := range fields(v, f.path) {
			n.Content = append(n.Content, plain("!!str", below.tag.Get("key")), node(below))
		}
		return n
	case reflect.Map:
		if v.IsNil() && v.Type().Elem() == reflect.TypeFor[Event]() { // which is not to say that there are none
			event := reflect.New(v.Type().Elem()).Elem()
			setDefaults(event)
			v = reflect.MakeMap(v.Type())
			v.SetMapIndex(reflect.ValueOf(Any), event)
		}
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range names(v) {
			n.Content = append(n.Content, plain("!!str", name), node(field{value: v.MapIndex(reflect.ValueOf(name))}))
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, node(field{value: v.Index(i)}))
		}
		if len(n.Content) == 0 || v.Index(0).Kind() == reflect.String {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Bool:
		return plain("!!bool", f.text())
	case reflect.Int:
		return plain("!!int", f.text())
	case reflect.Float64:
		return plain("!!float", f.text())
	default:
		return plain("!!str", f.text())
	}
}

func plain(tag, text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
	if tag == "!!str" && (text == "" || text == hidden || text == Any) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// Any is the name of a map's entry for what is not listed.
const Any = "*"

func names(m reflect.Value) []string {
	list := make([]string, 0, m.Len())
	for _, k := range m.MapKeys() {
		list = append(list, k.String())
	}
	slices.Sort(list)
	return list
}

// text is the value of a scalar, or of a list of them, in the words of the file.
func (f field) text() string {
	v := f.value
	if f.tag.Get("secret") == "true" && !v.IsZero() {
		return hidden
	}
	switch {
	case v.Type() == durationType:
		text := fmt.Sprint(v.Interface())
		if short, ok := strings.CutSuffix(text, "m0s"); ok {
			text = short + "m"
		}
		if short, ok := strings.CutSuffix(text, "h0m"); ok {
			text = short + "h"
		}
		return text
	case v.Kind() == reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case v.Kind() == reflect.Slice:
		return fmt.Sprint(v.Interface())
	}
	return fmt.Sprint(v.Interface())
}
