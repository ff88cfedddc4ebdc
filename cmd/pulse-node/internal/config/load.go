package config

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	errNotInThisBuild = errors.New("not in this build; only the default is accepted")
	errZero           = errors.New("must be above zero")
)

// Setting is one setting as a flag or a variable of the environment names it.
type Setting struct {
	Path    string // "transport.ping"
	Default string // in the words of the file
	Doc     string
	Words   []string // that it may be; none: others
}

// Settings lists what the environment and flags may set, in the schema's order.
func Settings() []Setting {
	var list []Setting
	for _, f := range leaves(reflect.ValueOf(&Config{}).Elem(), "") {
		if !f.named() {
			list = append(list, Setting{Path: f.path, Default: f.tag.Get("default"), Doc: f.tag.Get("doc"), Words: strings.Fields(f.tag.Get("oneof"))})
		}
	}
	return list
}

// variable is the name of the environment variable of a path.
func variable(path string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

const prefix = "PULSE_"

// Flag is one flag as it was given: its name without the two dashes, or with its one.
type Flag struct{ Name, Value string }

// Sources is what a configuration is made of, besides the defaults.
type Sources struct {
	File    string   // path of the YAML file; empty: none
	Environ []string // as os.Environ returns it
	Flags   []Flag   // in order; of equal names the last counts
}

// loader gathers one configuration.
type loader struct {
	config  *Config
	file    string
	sources map[string]string // by path: where its value was given
	environ map[string]string
	putOff  []func() // fields of the file that inherit
	faults  Faults
}

// Load makes a configuration from its sources, in rising order: defaults, file,
// environment, flags. Its error is a Faults.
func Load(s Sources) (*Config, error) {
	l := &loader{config: &Config{}, file: s.File, sources: map[string]string{}, environ: map[string]string{}}
	root := reflect.ValueOf(l.config).Elem()
	setDefaults(root)
	for _, entry := range s.Environ {
		name, value, _ := strings.Cut(entry, "=")
		l.environ[name] = value
	}
	if node := l.read(); node != nil {
		l.mapping(node, root, "")
	}
	l.fromEnvironment(root)
	l.fromFlags(root, s.Flags)
	for _, take := range l.putOff {
		take()
	}
	l.check()
	if len(l.faults) > 0 {
		return nil, l.faults.sorted()
	}
	return l.config, nil
}

// read returns the file's mapping, or nil where there is none.
func (l *loader) read() *yaml.Node {
	if l.file == "" {
		return nil
	}
	text, err := os.ReadFile(l.file)
	if err != nil {
		l.fault("--config", l.file, err.Error())
		return nil
	}
	node, err := document(text)
	if err != nil {
		l.fault("--config", l.file, err.Error())
	}
	return node
}

// fromEnvironment takes what variables set, and reports those that are none of
// the program's: all that begin with PULSE_, except those that hold a secret and
// those that Kubernetes sets for a Service called pulse.
func (l *loader) fromEnvironment(root reflect.Value) {
	known := map[string]field{}
	for _, f := range leaves(root, "") {
		known[variable(f.path)] = f
	}
	secrets := map[string]bool{}
	for _, k := range l.config.Auth.JWT.Keys {
		secrets[k.SecretEnv] = true
	}
	for _, name := range slices.Sorted(maps.Keys(l.environ)) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		source := "environment " + name
		f, ok := known[name]
		switch {
		case ok:
			l.give(f, l.environ[name], source)
		case secrets[name] || isInjected(name):
		default:
			l.fault(name, source, "unknown key; unset it, or see the list of settings")
		}
	}
}

// isInjected reports whether Kubernetes sets a variable of that name.
func isInjected(name string) bool {
	return name == "PULSE_PORT" || strings.HasPrefix(name, "PULSE_PORT_") || strings.HasPrefix(name, "PULSE_SERVICE_")
}

func (l *loader) fromFlags(root reflect.Value, flags []Flag) {
	known := map[string]field{}
	for _, f := range leaves(root, "") {
		known[f.path] = f
	}
	for _, flag := range flags {
		source := "flag --" + flag.Name
		f, ok := known[flag.Name]
		switch {
		case ok:
			l.give(f, flag.Value, source)
		case strings.HasPrefix(flag.Name, "-"):
			l.fault(flag.Name, "flag "+flag.Name, "unknown key; flags begin with two dashes, --help lists them")
		default:
			l.fault(flag.Name, source, "unknown key; --help lists the settings")
		}
	}
}

// give sets f from a variable or a flag.
func (l *loader) give(f field, text, source string) {
	if f.named() {
		l.fault(f.path, source, "must be set in the file")
		return
	}
	l.sources[f.path] = source
	if err := f.set(text); err != nil {
		l.fault(f.path, source, err.Error())
	}
}

// lookup returns the value of a path of structs.
func (l *loader) lookup(path string) reflect.Value {
	v := reflect.ValueOf(l.config).Elem()
	for key := range strings.SplitSeq(path, ".") {
		for _, f := range fields(v, "") {
			if f.path == key {
				v = f.value
				break
			}
		}
	}
	return v
}

func (l *loader) fault(key, source, problem string) {
	if key == "" { // the file itself
		key = "--config"
	}
	l.faults = append(l.faults, Fault{key, source, problem})
}

// source returns where the value of path was given; for settings with others
// below them, where the first of those was.
func (l *loader) source(path string) string {
	if s, ok := l.sources[path]; ok {
		return s
	}
	for _, below := range slices.Sorted(maps.Keys(l.sources)) {
		if strings.HasPrefix(below, path+".") {
			return l.sources[below]
		}
	}
	return "default"
}
