package e2e

import (
	"fmt"
	"testing"

	"github.com/coder/websocket"
)

// What a client said before it left a room, or closed its connection, counts.
func TestWhatWasSaidBeforeLeavingCounts(t *testing.T) {
	n := serve(t, nil)
	for name, leave := range map[string]func(*client){
		"leave":      func(c *client) { c.say(`{"t":"leave","id":1,"room":"chat:1"}`) },
		"join anew":  func(c *client) { c.say(`{"t":"join","id":1,"room":"chat:1"}`) },
		"close 1000": func(c *client) { c.ws.Close(websocket.StatusNormalClosure, "") },
		"leave close": func(c *client) {
			c.say(`{"t":"leave","id":1,"room":"chat:1"}`)
			c.ws.Close(websocket.StatusNormalClosure, "")
		},
	} {
		for _, event := range []string{"message", "typing"} {
			t.Run(name+" "+event, func(t *testing.T) {
				tenant := "t" + fmt.Sprint(len(name)) + event
				bob, _ := enter(t, n, inJSON, tenant+"/bob", "chat:1")
				for round := range 20 {
					alice, _ := enter(t, n, inJSON, tenant+"/alice", "chat:1")
					const hasty = 20
					for i := range hasty {
						alice.say(`{"t":"publish","room":"chat:1","event":%q,"data":%d}`, event, i)
					}
					leave(alice)
					for i := range hasty {
						if f := bob.until("event"); fmt.Sprint(f["data"]) != fmt.Sprint(i) {
							t.Fatalf("round %d: event %v of %d", round, f["data"], i)
						}
					}
				}
			})
		}
	}
}
