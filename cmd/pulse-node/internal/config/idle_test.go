package config

import (
	"fmt"
	"slices"
	"testing"
)

// Each of two settings that are accepted together does something, or is named as one
// that does not: nothing is off in silence. StackExchange/StackExchange.Redis#439
func TestB155_WhatAnotherSettingTurnsOffIsNamed(t *testing.T) {
	key, password := write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"), write(t, "password", "secret")
	redis := []Flag{{"bridge.redis.addresses", "127.0.0.1:6379"}, {"deployment_key_file", key}}
	for _, tt := range []struct {
		flags []Flag
		idle  []string
	}{
		{nil, nil},
		{redis, nil},
		{append(redis, Flag{"bridge.redis.username", "u"}), []string{"bridge.redis.username"}},
		{append(redis, Flag{"bridge.redis.username", "u"}, Flag{"bridge.redis.password_file", password}), nil},
		{append(redis, Flag{"node.history_bytes", "7MiB"}, Flag{"tenant_defaults.history_bytes", "7MiB"}), []string{"node.history_bytes", "tenant_defaults.history_bytes"}},
		{append(redis, Flag{"bridge.redis.payload_max", "1KiB"}, Flag{"bridge.redis.compression_threshold", "2KiB"}), []string{"bridge.redis.compression_threshold"}},
		{append(redis, Flag{"tenant_defaults.redis_bytes", "7MiB"}, Flag{"node.lease", "7s"}), nil},
		{[]Flag{{"bridge.redis.key_prefix", "k:"}, {"node.lease", "7s"}, {"tenant_defaults.redis_bytes", "7MiB"}}, []string{"node.lease", "tenant_defaults.redis_bytes", "bridge.redis.key_prefix"}},
		{[]Flag{{"transport.compression.threshold", "7KiB"}}, []string{"transport.compression.threshold"}},
		{[]Flag{{"transport.compression.threshold", "7KiB"}, {"transport.compression.enabled", "true"}}, nil},
		{[]Flag{{"transport.compression.threshold", "7MiB"}, {"transport.compression.enabled", "true"}}, []string{"transport.compression.enabled"}},
		{[]Flag{{"auth.jwt.jwks.refresh", "7m"}}, []string{"auth.jwt.jwks.refresh"}},
		{[]Flag{{"auth.jwt.jwks.refresh", "7m"}, {"auth.jwt.jwks.url", "https://issuer.example/keys"}}, nil},
		{[]Flag{{"telemetry.trace_ratio", "0.5"}}, []string{"telemetry.trace_ratio"}},
		{[]Flag{{"telemetry.otlp_endpoint", "http://127.0.0.1:4318"}}, nil},
		{[]Flag{{"telemetry.otlp_endpoint", "http://127.0.0.1:4318"}, {"telemetry.trace_ratio", "0"}}, []string{"telemetry.otlp_endpoint"}},
		{[]Flag{{"transport.max_unauthenticated_per_address", "2000"}}, []string{"transport.max_unauthenticated_per_address"}},
		{[]Flag{{"session.presence_grace", "6m"}}, []string{"session.presence_grace"}},
	} {
		c, err := Load(Sources{Flags: tt.flags})
		if err != nil {
			t.Errorf("%v: %v", tt.flags, err)
			continue
		}
		var named []string
		for _, f := range c.Idle() {
			named = append(named, f.Key)
		}
		slices.Sort(named)
		slices.Sort(tt.idle)
		if fmt.Sprint(named) != fmt.Sprint(tt.idle) {
			t.Errorf("%v: %v change nothing, want %v", tt.flags, named, tt.idle)
		}
	}
}
