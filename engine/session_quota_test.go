package engine

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

func TestOverTheQuotaOfSessionsIs4529(t *testing.T) {
	synctest.Test(t, overTheQuota)
}

func overTheQuota(t *testing.T) {
	e := start(t, func(c *Config) { c.TenantDefaults.MaxSessions = 2 })
	one := dial(t, e, codec.JSON, memory.Options{})
	w := one.hello("acme/alice")
	two := dial(t, e, codec.JSON, memory.Options{})
	two.hello("acme/bob")
	three := dial(t, e, codec.JSON, memory.Options{})
	three.send(`{"t":"hello","token":"acme/carol"}`)
	if code := three.closed(); code != 4529 {
		t.Errorf("a third is closed %d", code)
	}
	join(t, e, "other/carol") // another tenant has its own
	// Who takes a session over on this node is not one more.
	for range 5 {
		var again frame
		if _, again = resume(t, e, codec.JSON, "acme/alice", w["resume"]); again["resumed"] != true {
			t.Fatalf("takeover at the limit: %v", again)
		}
		w = again
	}
	two.cut()
	synctest.Wait()
	join(t, e, "acme/carol")
}

// As many detached sessions as live ones: beyond, the oldest is ended.
func TestOldestDetachedSessionIsEndedFirst(t *testing.T) {
	e := start(t, func(c *Config) { c.TenantDefaults.MaxSessions = 3 })
	detach := func(token string) frame {
		c := dial(t, e, codec.JSON, memory.Options{})
		w := c.hello(token)
		c.cut()
		return w
	}
	var welcomes []frame
	for i := range 5 {
		welcomes = append(welcomes, detach(fmt.Sprint("acme/", i)))
		detach("other/x")
	}
	for i, w := range welcomes {
		c, again := resume(t, e, codec.JSON, fmt.Sprint("acme/", i), w["resume"])
		if want := i >= 2; again["resumed"] != want {
			t.Errorf("session %d of 5, of which 3 are kept: %v", i, again)
		}
		c.conn.Close(1000) // so that it takes nobody's place
		<-c.conn.Done()
	}
	// Who was resumed is not counted any more.
	for i := range 3 {
		welcomes[i] = detach(fmt.Sprint("acme/", i))
	}
	c, again := resume(t, e, codec.JSON, "acme/0", welcomes[0]["resume"])
	for range 2 {
		detach("acme/more")
	}
	if _, kept := resume(t, e, codec.JSON, "acme/2", welcomes[2]["resume"]); again["resumed"] != true || kept["resumed"] != true {
		t.Errorf("%v, %v", again, kept)
	}
	c.cut()
}
