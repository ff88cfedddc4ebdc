package session

import (
	"testing"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
	"github.com/yaza-dev/pulse/transport"
)

// deaf is a connection that nothing comes of.
type deaf struct{ transport.Conn }

func (deaf) Framing() *codec.Framing    { return nil }
func (deaf) OnReady(func(error))        {}
func (deaf) Close(codec.Cause, string)  {}
func (deaf) Write([]byte) (bool, error) { return true, nil }

// Whoever brings credentials to a session that ends before it looks at them is told,
// and does not wait.
func TestARenewalThatIsNeverLookedAtIsAnswered(t *testing.T) {
	env := NewEnv(Env{
		Pool: scheduler.NewPool(scheduler.PoolConfig{Workers: 1}), Tenant: scheduler.NewTenant(1),
		Out: &mailbox.OutboundConfig{}, Limits: Limits{MaxMessageBytes: 1 << 10},
	})
	s := New(Config{Env: env, Identity: &auth.Identity{}, Conn: deaf{}})
	told := 0
	if !s.Renew(&auth.Identity{}, func(ok *codec.TokenResult, _ *codec.Error) {
		if told++; ok != nil {
			t.Errorf("told %+v by a session that never ran", ok)
		}
	}) {
		t.Fatal("the session takes nothing")
	}
	s.Mailbox().Abandon()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
