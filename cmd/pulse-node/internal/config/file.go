package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document reads the one mapping that a file holds. An empty file holds none.
func document(text []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("must hold one YAML document")
	}
	return doc.Content[0], nil
}

// mapping reads node into v, a struct of the schema. Fields that inherit are put
// off: they start from what all sources say.
func (l *loader) mapping(node *yaml.Node, v reflect.Value, path string) {
	known := map[string]field{}
	var names []string
	for _, f := range fields(v, path) {
		key := f.tag.Get("key")
		known[key] = f
		names = append(names, key)
	}
	for key, value := range l.pairs(node, path) {
		f, ok := known[key.Value]
		if !ok {
			l.fault(join(path, key.Value), l.at(key), "unknown key; known here: "+strings.Join(names, ", "))
			continue
		}
		l.sources[f.path] = l.at(key)
		if _, inherits := f.tag.Lookup("inherit"); inherits {
			l.putOff = append(l.putOff, func() { l.take(value, f) })
			continue
		}
		l.take(value, f)
	}
}

// pairs iterates over the keys and values of a mapping, reporting what is none
// and keys given twice. Nothing in the mapping's place is an empty one.
func (l *loader) pairs(node *yaml.Node, path string) func(func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if node = resolve(node); isNull(node) {
			return
		}
		if node.Kind != yaml.MappingNode {
			l.fault(path, l.at(node), "must be a mapping of keys to values")
			return
		}
		lines := map[string]int{}
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Kind != yaml.ScalarNode {
				l.fault(path, l.at(key), "a key must be text")
				continue
			}
			if line, twice := lines[key.Value]; twice {
				l.fault(join(path, key.Value), l.at(key), fmt.Sprintf("given twice, first in line %d; must be given once", line))
				continue
			}
			lines[key.Value] = key.Line
			if !yield(key, node.Content[i+1]) {
				return
			}
		}
	}
}

// take reads node into f.
func (l *loader) take(node *yaml.Node, f field) {
	node = resolve(node)
	switch f.value.Kind() {
	case reflect.Struct:
		l.mapping(node, f.value, f.path)
	case reflect.Map:
		l.entries(node, f)
	case reflect.Slice:
		l.list(node, f)
	default:
		text, ok := l.scalar(node, f.path)
		if !ok {
			return
		}
		if err := f.set(text); err != nil {
			l.fault(f.path, l.at(node), err.Error())
		}
	}
}

// entries reads a mapping of names to structs. An entry starts from what the
// field inherits, or from the defaults.
func (l *loader) entries(node *yaml.Node, f field) {
	start := reflect.New(f.value.Type().Elem()).Elem()
	setDefaults(start)
	if from, ok := f.tag.Lookup("inherit"); ok {
		start.Set(l.lookup(from))
	}
	f.value.Set(reflect.MakeMap(f.value.Type()))
	for key, value := range l.pairs(node, f.path) {
		path := join(f.path, key.Value)
		l.sources[path] = l.at(key)
		entry := reflect.New(start.Type()).Elem()
		entry.Set(start)
		l.mapping(value, entry, path)
		f.value.SetMapIndex(reflect.ValueOf(key.Value), entry)
	}
}

// list reads a sequence of scalars, or of structs.
func (l *loader) list(node *yaml.Node, f field) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.SequenceNode {
		l.fault(f.path, l.at(node), "must be a list")
		return
	}
	if f.tag.Get("later") == "*" {
		if len(node.Content) > 0 {
			l.fault(f.path, l.at(node), errNotInThisBuild.Error())
		}
		return
	}
	out := reflect.MakeSlice(f.value.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		path := fmt.Sprintf("%s[%d]", f.path, i)
		l.sources[path] = l.at(item)
		if out.Index(i).Kind() == reflect.Struct {
			setDefaults(out.Index(i))
			l.mapping(item, out.Index(i), path)
		} else if text, ok := l.scalar(resolve(item), path); ok {
			out.Index(i).SetString(text)
		}
	}
	f.value.Set(out)
}

func (l *loader) scalar(node *yaml.Node, path string) (string, bool) {
	if node.Kind != yaml.ScalarNode || isNull(node) {
		l.fault(path, l.at(node), "must be one value")
		return "", false
	}
	return node.Value, true
}

// at names the place of node as a source.
func (l *loader) at(node *yaml.Node) string { return fmt.Sprintf("%s:%d", l.file, node.Line) }

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

// resolve follows an alias to what it stands for. The schema is of fixed depth,
// so aliases cannot make a document grow without end.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}
