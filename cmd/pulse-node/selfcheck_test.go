package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

// What is configured so that no client could come is told at the start, and by a
// reload, which then changes nothing.
func TestB155_KeysMustOpenWhatTheyMake(t *testing.T) {
	for _, tt := range []struct{ rule, jwt, says string }{
		{"usual", "tenant_claim: tenant", ""},
		{"a claim, issuer and audience of one's own", "tenant_claim: org, issuer: i, audience: a", ""},
		{"the tenant is the subject", "tenant_claim: sub", "auth.jwt.keys[0] (self-check)"},
		{"the tenant is when it ends", "tenant_claim: exp", "auth.jwt.keys[0] (self-check)"},
		{"the tenant is the issuer", "tenant_claim: iss, issuer: i", "auth.jwt.keys[0] (self-check)"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			file := write(t, "pulse.yaml", "auth: { jwt: { keys: [ { alg: HS256, secret: "+secret+" } ], "+tt.jwt+" } }\n")
			c, err := config.Load(config.Sources{File: file})
			if err != nil {
				t.Fatal(err)
			}
			jwt, err := newJWT(c, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer jwt.Close()
			err = selfCheck(t.Context(), c, jwt)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v", err)
			}
			if err == nil {
				return
			}
			for _, command := range []string{"serve", "config"} {
				code, out, errs := runOnce(t, nil, command, "--config", file, "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0")
				if code != exitWrong || out != "" || !strings.Contains(errs, tt.says) {
					t.Errorf("%s: exit %d, output %q, errors %q", command, code, out, errs)
				}
			}
		})
	}
}

func TestB155_DeploymentKeysOpenWhatTheySeal(t *testing.T) {
	one, other := []byte(strings.Repeat("1", 32)), []byte(strings.Repeat("2", 32))
	if err := unseals([][]byte{one, other}); err != nil {
		t.Error(err)
	}
	if err := unseals([][]byte{one, other[:31]}); err == nil {
		t.Error("a key that is none opens something")
	}
}

// A setting that another one turns off is told of, when the node starts and when it
// reads its file again.
func TestB155_WhatChangesNothingIsToldOf(t *testing.T) {
	base := "listen: 127.0.0.1:0\ninternal: { listen: 127.0.0.1:0 }\ntransport: { compression: { threshold: 7KiB } }\n" + roomy
	f := &fixture{file: write(t, "pulse.yaml", base)}
	f.running = start(t, "serve", "--config", f.file)
	if !logged(f.logs.String(), "setting changes nothing", "setting", "transport.compression.threshold", "level", "WARN") {
		t.Errorf("said %s", f.logs)
	}
	if said := f.hup(t, f.file, base+"log: { level: info }\n"); strings.Count(said, "changes nothing") > 1 {
		t.Errorf("said %s", said)
	}
}
