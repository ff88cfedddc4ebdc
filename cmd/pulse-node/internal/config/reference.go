package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Reference is the page of all settings, for docs/configuration.md.
func Reference() []byte {
	var b strings.Builder
	b.WriteString(head)
	root := reflect.ValueOf(&Config{}).Elem()
	section(&b, fields(root, ""), false)
	return []byte(b.String())
}

const head = `# Configuration reference

<!-- Made from the schema in cmd/pulse-node/internal/config: go test ./cmd/pulse-node/internal/config -update -->

Every setting of ` + "`pulse-node`" + `, from its schema. [CONFIG.md](CONFIG.md) says how files, environment and flags are read
and which settings depend on each other; ` + "`pulse-node config`" + ` prints what is in force, and ` + "`pulse-node config schema`" + ` this
page as JSON Schema. The flag of a setting is ` + "`--` and its key, as in `--transport.ping=20s`" + `. Settings without a
variable live in the file only.

*Live* settings are taken over by a running node on SIGHUP; others wait for its next start.

| key | default | variable | live | what it is |
|---|---|---|---|---|
`

func section(b *strings.Builder, list []field, live bool) {
	for _, f := range list {
		live := live || f.tag.Get("live") == "true"
		switch {
		case f.value.Kind() == reflect.Struct:
			section(b, fields(f.value, f.path), live)
		case f.named():
			row(b, f, "–", live)
			elem, path := f.value.Type().Elem(), f.path+".NAME"
			if f.value.Kind() == reflect.Slice {
				path = f.path + "[]"
			}
			if _, inherits := f.tag.Lookup("inherit"); elem.Kind() == reflect.Struct && !inherits {
				section(b, fields(reflect.New(elem).Elem(), path), live)
			}
		default:
			v := "–"
			if !strings.Contains(f.path, "NAME") && !strings.Contains(f.path, "[]") {
				v = "`" + variable(f.path) + "`"
			}
			row(b, f, v, live)
		}
	}
}

func row(b *strings.Builder, f field, variable string, live bool) {
	what := strings.ToUpper(f.tag.Get("doc")[:1]) + f.tag.Get("doc")[1:]
	if words, ok := f.tag.Lookup("oneof"); ok {
		what += ": " + strings.ReplaceAll(words, " ", ", ")
	}
	if zero, ok := f.tag.Lookup("zero"); ok {
		what += "; zero: " + zero
	}
	switch later := f.tag.Get("later"); later {
	case "":
	case "*":
		what += " (not in this build)"
	default:
		what += " (not in this build: " + strings.ReplaceAll(later, " ", ", ") + ")"
	}
	value := "–"
	if text := f.tag.Get("default"); text != "" {
		value = "`" + text + "`"
	}
	yes := ""
	if live {
		yes = "yes"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", f.path, value, variable, yes, what)
}
