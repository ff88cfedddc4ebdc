package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/memory"
)

// However many sweep at once, what has gone of age goes once: nothing is given back twice.
func TestSweepsAtOnce(t *testing.T) {
	b, clock := start(t, memory.Config{})
	const rooms, life = 3_000, 2 * time.Hour // age, and an hour more
	for i := range rooms {
		topic := topicOf("acme", fmt.Sprint("chat:", i))
		publish(b, topic, bridge.Retention{Events: 1, Age: life / 2}, buffered(topic, 1))
		clock.pass(life / rooms)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 200 {
				clock.pass(life / 200)
				b.Sweep()
			}
		})
	}
	all.Wait()
	if records, tenants := b.Records(); records+tenants > 0 || b.Used() != 0 || b.Faults() != 0 {
		t.Errorf("%d records, %d tenants, %d bytes; %d bytes were given back that nobody had", records, tenants, b.Used(), b.Faults())
	}
}
