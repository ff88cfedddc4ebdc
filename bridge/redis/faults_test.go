package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// What a call came to is told by the server's own answer. An answer of another one,
// inside an error of the driver, is none: a Sentinel says that it knows no such master
// with the answer by which a server says that there is no such key.
func TestFaultsOfCalls(t *testing.T) {
	unreachable := fmt.Errorf("redis: all sentinels specified in configuration are unreachable: %w", errors.Join(goredis.Nil, io.EOF))
	for _, tt := range []struct {
		rule string
		err  error
		want fault
	}{
		{"an answer", nil, noFault},
		{"no such key", goredis.Nil, noFault},
		{"no such master", unreachable, lost},
		{"no answer", io.EOF, lost},
		{"too late", context.DeadlineExceeded, lost},
		{"no master while the call is given up", errors.Join(goredis.Nil, context.Canceled), lost},
	} {
		if got := faultOf(tt.err); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.rule, got, tt.want)
		}
	}
}

// The driver tells no command of a connection that another server's answer denied it: a
// Sentinel's. What has neither a reply nor an error was not answered.
func TestCommandsThatGotNoConnectionAreLost(t *testing.T) {
	for rule, answer := range map[string]error{"no such master": goredis.Nil, "closed": io.EOF} {
		client := goredis.NewClient(&goredis.Options{
			MaxRetries: -1, DialerRetries: 1,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				return nil, fmt.Errorf("redis: all sentinels specified in configuration are unreachable: %w", answer)
			},
		})
		c := &caller{client: client, ctx: t.Context()}
		sent := []*batch{{call: &call{args: []any{"PING"}}}}
		outcomes := make([]outcome, 1)
		c.pipeline(sent, []int{0}, outcomes, alone)
		if outcomes[0].fault != lost || outcomes[0].err == nil {
			t.Errorf("%s: %+v", rule, outcomes[0])
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
