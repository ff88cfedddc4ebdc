package redis_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// fleet numbers brokers, so that each has keys and channels of its own.
var fleet atomic.Uint64

// up waits until a bridge is what it should be.
func up(t testing.TB, b *redis.Bridge, want bridge.State) {
	t.Helper()
	there := make(chan struct{}, 64)
	stop := b.Watch(func(h bridge.Health) {
		if h.State == want {
			select {
			case there <- struct{}{}:
			default:
			}
		}
	})
	defer stop()
	select {
	case <-there:
	case <-time.After(time.Minute):
		t.Fatalf("it is %+v, not %v", b.Health(), want)
	}
}

// open makes a bridge on keys that nobody has used, and waits until it is up.
func open(t testing.TB, address string, change ...func(*redis.Config)) *redis.Bridge {
	t.Helper()
	prefix := fmt.Sprintf("t%d:", fleet.Add(1))
	c := redis.Config{Addresses: []string{address}, KeyPrefix: prefix, ChannelPrefix: prefix}
	for _, f := range change {
		f(&c)
	}
	b, err := redis.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	up(t, b, bridge.Up)
	return b
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	bridgetest.TestBroker(t, func(t *testing.T, o bridgetest.Options) bridge.Broker {
		o.Clock.Real(40 * time.Millisecond)
		return open(t, s.Address())
	})
}

func TestOverHostile(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	bridgetest.TestHostile(t, func(t *testing.T, o bridgetest.Options) bridge.Broker {
		o.Clock.Real(40 * time.Millisecond)
		return open(t, s.Address())
	})
}

func TestMain(m *testing.M) { os.Exit(m.Run()) }
