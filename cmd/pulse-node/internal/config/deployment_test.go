package config

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

func TestDeploymentKeysAreALineEach(t *testing.T) {
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{0xff}, 32)
	a, b := base64.StdEncoding.EncodeToString(first), base64.StdEncoding.EncodeToString(second)
	for _, text := range []string{a + "\n" + b, a + "\r\n\r\n" + b + "\r\n", "\n" + a + "\n" + b + "\n"} {
		c := mustLoad(t, "deployment_key_file: "+write(t, "keys", text), nil)
		if len(c.DeploymentKeys) != 2 || !bytes.Equal(c.DeploymentKeys[0], first) || !bytes.Equal(c.DeploymentKeys[1], second) {
			t.Errorf("%q: %v", text, c.DeploymentKeys)
		}
	}
	if c := mustLoad(t, "", nil); c.DeploymentKeys != nil {
		t.Errorf("without a file: %v", c.DeploymentKeys)
	}
}

func TestDeploymentKeysThatAreNone(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, c := range []struct{ name, text, says string }{
		{"empty", "\n", "holds no key"},
		{"short", good + "\n" + base64.StdEncoding.EncodeToString(make([]byte, 31)), "line 2 must be the base64 of 32 bytes"},
		{"long", base64.StdEncoding.EncodeToString(make([]byte, 33)), "line 1"},
		{"raw", strings.Repeat("k", 32), "line 1"},
		{"no base64", strings.Repeat("!", 44), "line 1"},
		{"bits left over", good[:42] + "B=", "line 1"},
	} {
		_, err := load(t, "deployment_key_file: "+write(t, "keys", c.text), nil)
		faults := faultsOf(t, err)
		if len(faults) != 1 || faults[0].Key != "deployment_key_file" || !strings.Contains(faults[0].Problem, c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if line := strings.TrimSpace(c.text); line != "" && strings.Contains(err.Error(), line) {
			t.Errorf("%s: the fault repeats the file", c.name)
		}
	}
}
