package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/auth"
)

// A reader that the tenant's budget has stopped goes on as soon as there is budget,
// not when its session has something else to do.
func TestReaderGoesOnWhenTheTenantHasBudgetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 1 << 20
		e := start(t, func(c *Config) { c.Limits.Ping, c.TenantDefaults.QueueBytes = time.Hour, all })
		c := join(t, e, "acme/alice", "chat:1")
		synctest.Wait()
		n, err := e.tenant("acme")
		if err != nil {
			t.Fatal(err)
		}
		n.Queue().Force(all)
		c.send(`{"t":"ping","id":1}`)
		time.Sleep(10 * time.Second)
		n.Queue().Release(all)
		began := time.Now()
		if f := c.until("pong"); time.Since(began) > 200*time.Millisecond {
			t.Errorf("%v after %v", f, time.Since(began))
		}
	})
}

// Tokens that wait for their turn are on the tenant's ledger, so that the reader stops
// where it is used up; what was not looked at is given back at the end, as close checks.
func TestTokensThatWaitAreOnTheLedger(t *testing.T) {
	const size = 40 << 10
	long := strings.Repeat("x", size)
	synctest.Test(t, func(t *testing.T) {
		e := start(t, func(c *Config) {
			c.TenantDefaults.QueueBytes = 10 * size
			c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
				if len(cr.Token) >= size {
					<-ctx.Done()
				}
				return asTold{}.Authenticate(ctx, cr)
			})
		})
		c := join(t, e, "acme/alice")
		for id := range 12 {
			c.send(fmt.Sprintf(`{"t":"token","id":%d,"token":%q}`, id+1, long))
		}
		synctest.Wait()
		if used := e.queue.Used(); used < 8*size || used > 10*size {
			t.Errorf("%d bytes are charged for tokens that wait", used)
		}
		c.until("reply")
		c.cut()
	})
}

// A client that is not read is not taken for one that is silent.
func TestReaderThatWaitsCountsAsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 1 << 20
		e := start(t, func(c *Config) {
			c.Limits.Ping, c.Limits.PongTimeout, c.TenantDefaults.QueueBytes = time.Second, time.Second, all
		})
		c := join(t, e, "acme/alice", "chat:1")
		synctest.Wait()
		n, err := e.tenant("acme")
		if err != nil {
			t.Fatal(err)
		}
		n.Queue().Force(all)
		c.send(`{"t":"ping","id":1}`)
		time.Sleep(10 * time.Second)
		n.Queue().Release(all)
		c.until("pong")
	})
}
