package main

import (
	"strings"
	"testing"
)

func TestHealthAsksTheNode(t *testing.T) {
	n := start(t, "serve", "--config", write(t, "pulse.yaml", keys), "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0")
	for _, tt := range []struct {
		rule string
		args []string
		code int
		says string
	}{
		{"alive", []string{"--url", n.internal}, exitOK, `"ok"`},
		{"ready", []string{"--ready", "--url", n.internal + "/"}, exitOK, `"ok"`},
		{"not the internal listener", []string{"--url", n.public}, exitFailed, "404"},
		{"nobody there", []string{"--url", "http://127.0.0.1:1"}, exitFailed, "refused"},
		{"no address", []string{"--url", "http://a b"}, exitWrong, "--url"},
	} {
		code, out, errs := runOnce(t, nil, append([]string{"health"}, tt.args...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.says) {
			t.Errorf("%s: exit %d, output %q, errors %q", tt.rule, code, out, errs)
		}
	}
}
