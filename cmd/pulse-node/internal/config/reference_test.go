package config

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

func TestReferenceIsCurrent(t *testing.T) {
	const page = "../../../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(page, Reference(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(Reference()) {
		t.Error("docs/configuration.md is not what the schema says: go test ./cmd/pulse-node/internal/config -update")
	}
	for _, s := range Settings() {
		if !strings.Contains(string(text), "| `"+s.Path+"` |") {
			t.Errorf("%s is not in it", s.Path)
		}
	}
}

// The schema knows exactly the keys that Load does, and its defaults are Load's.
func TestJSONSchemaIsOfTheSameSettings(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(mustLoad(t, "", nil).YAML(), &tree); err != nil {
		t.Fatal(err)
	}
	sameKeys(t, "", schema, tree)
}

func sameKeys(t *testing.T, path string, schema, tree map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) != len(tree) || schema["additionalProperties"] != false {
		t.Errorf("%s: %d properties, %d settings", path, len(properties), len(tree))
	}
	for key, value := range tree {
		below, _ := properties[key].(map[string]any)
		if below == nil {
			t.Errorf("%s is not in the schema", join(path, key))
			continue
		}
		if inner, ok := value.(map[string]any); ok && below["properties"] != nil {
			sameKeys(t, join(path, key), below, inner)
		}
	}
}
