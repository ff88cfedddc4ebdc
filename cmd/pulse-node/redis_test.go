package main

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

// Every setting of the bridge moves exactly one field of its configuration.
func TestSettingsOfRedisReachTheBridge(t *testing.T) {
	key := write(t, "deployment", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
	password := write(t, "password", "secret\n")
	load := func(flags ...config.Flag) redis.Config {
		t.Helper()
		c, err := config.Load(config.Sources{Flags: append(flags, config.Flag{Name: "deployment_key_file", Value: key})})
		if err != nil {
			t.Fatal(err)
		}
		cfg := redisConfig(c, nil)
		cfg.Logger = (*slog.Logger)(nil)
		return cfg
	}
	base := load()
	for name, tt := range map[string]struct {
		value string
		field string
		want  any
	}{
		"bridge.redis.addresses":             {"127.0.0.1:1", "Addresses", []string{"127.0.0.1:1"}},
		"bridge.redis.mode":                  {"cluster", "Mode", redis.Cluster},
		"bridge.redis.username":              {"u", "Username", "u"},
		"bridge.redis.password_file":         {password, "Password", "secret"},
		"bridge.redis.key_prefix":            {"k:", "KeyPrefix", "k:"},
		"bridge.redis.channel_prefix":        {"c:", "ChannelPrefix", "c:"},
		"bridge.redis.compression_threshold": {"2KiB", "CompressAbove", 2 << 10},
		"bridge.redis.payload_max":           {"1MiB", "PayloadMax", 1 << 20},
		"bridge.redis.check":                 {"7s", "Check", 7 * time.Second},
		"bridge.redis.outage_queue.items":    {"7", "Outage", redis.OutageQueue{Items: 7, Bytes: 16 << 20, Wait: 5 * time.Second}},
		"bridge.redis.outage_queue.bytes":    {"7MiB", "Outage", redis.OutageQueue{Items: 10_000, Bytes: 7 << 20, Wait: 5 * time.Second}},
		"bridge.redis.outage_queue.wait":     {"0s", "Outage", redis.OutageQueue{Items: 10_000, Bytes: 16 << 20, Wait: -1}},
		"node.lease":                         {"7s", "Lease", 7 * time.Second},
	} {
		got, was := reflect.ValueOf(load(config.Flag{Name: name, Value: tt.value})), reflect.ValueOf(base)
		moved := 0
		for i := range got.NumField() {
			if !reflect.DeepEqual(got.Field(i).Interface(), was.Field(i).Interface()) {
				moved++
			}
		}
		if field := got.FieldByName(tt.field).Interface(); moved != 1 || !reflect.DeepEqual(field, tt.want) {
			t.Errorf("%s: %d fields moved, %s is %v, want %v", name, moved, tt.field, field, tt.want)
		}
	}
	sentinel := load(config.Flag{Name: "bridge.redis.mode", Value: "sentinel"}, config.Flag{Name: "bridge.redis.master_name", Value: "m"})
	if sentinel.Mode != redis.Sentinel || sentinel.MasterName != "m" {
		t.Errorf("%v of %q", sentinel.Mode, sentinel.MasterName)
	}
	if secure := load(config.Flag{Name: "bridge.redis.tls", Value: "true"}); secure.TLS == nil || base.TLS != nil {
		t.Error("TLS is not as it is told")
	}
}

// What a tenant may have on Redis is what the configuration in force says, its own or
// everybody's, from a reload on.
func TestTenantsOnRedisFollowTheConfiguration(t *testing.T) {
	load := func(text string) *config.Config {
		t.Helper()
		c, err := config.Load(config.Sources{File: write(t, "pulse.yaml", text)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	b := &redisBridge{}
	b.terms.Store(load("tenant_defaults: { redis_bytes: 7MiB }\ntenants: { acme: { redis_bytes: 1MiB, new_rooms: 0 } }"))
	want := func(tenant string, bytes config.Size, rooms int) {
		t.Helper()
		if got := b.tenant(tenant); got.RedisBytes != bytes || got.NewRooms != rooms {
			t.Errorf("%s: %v bytes, %d rooms, want %v, %d", tenant, got.RedisBytes, got.NewRooms, bytes, rooms)
		}
	}
	want("acme", 1<<20, 0)
	want("other", 7<<20, 1000)
	b.reload(load("tenants: { other: { new_rooms: 5 } }"))
	want("acme", 256<<20, 1000)
	want("other", 256<<20, 5)
	(*redisBridge)(nil).reload(load("")) // a node that stands alone
}
