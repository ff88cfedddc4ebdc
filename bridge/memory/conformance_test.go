package memory_test

import (
	"testing"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	"github.com/yaza-dev/pulse/bridge/memory"
)

func newBroker(t *testing.T, o bridgetest.Options) bridge.Broker {
	return memory.New(memory.Config{Now: o.Clock.Now})
}

func TestConformance(t *testing.T) { bridgetest.TestBroker(t, newBroker) }

func TestOverHostile(t *testing.T) { bridgetest.TestHostile(t, newBroker) }
