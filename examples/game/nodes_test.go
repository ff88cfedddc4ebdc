package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/tests/redis/server"
)

// Two play at two nodes, and one of them goes on at the other's.
func TestARoundAtTwoNodes(t *testing.T) {
	shared := server.Start(t)
	node := func(cfg *engine.Config) {
		leave, err := onRedis(cfg, shared.Address(), bytes.Repeat([]byte{7}, 32))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(leave)
	}
	here, there := newTable(t, time.Minute, nil, node), newTable(t, time.Minute, nil, node)
	ann, _ := here.sit(t, "ann")
	ben, joined := there.sit(t, "ben")
	if len(joined.Members) != 2 {
		t.Errorf("here are %v", joined.Members)
	}
	if refused := ann.move(0); refused != "" {
		t.Fatal(refused)
	}
	ann.follow()
	ben.follow()
	if refused := ben.move(4); refused != "" {
		t.Fatal(refused)
	}
	ann.follow()
	ann.sees()

	ben.conn.CloseNow()
	ben.tb = here
	again := ben.dial("ben", fmt.Sprintf(`{"room":"game:1","epoch":%q,"offset":%d}`, ben.Epoch, ben.Offset))
	if !again.Recovered {
		t.Errorf("joined again: %+v", again)
	}
	ben.follow()
	ben.sees()
}
