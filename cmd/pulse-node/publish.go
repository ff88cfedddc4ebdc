package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// publishTime is how long publish tries.
const publishTime = 30 * time.Second

func (p *program) publish() *cobra.Command {
	var to dialing
	var key string
	cmd := &cobra.Command{
		Use:   "publish --url URL --token-file FILE ROOM EVENT JSON",
		Short: "Publish one event as a client",
		Long: `Publish one event as a client, joining the room first where only members may, and
print what became of it as one line of JSON: {"ok":…} or {"err":…}, as the protocol
has them. With --dedup-key a repeat of the command publishes nothing new.

Exit codes: 0 published, 1 not, 2 wrong use.`,
		Example: `  pulse-node publish --url ws://127.0.0.1:8080 --token-file alice.jwt chat:lobby message '{"text":"hi"}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 3 {
				return fmt.Errorf("ROOM EVENT JSON are wanted, and %d arguments are given", len(args))
			}
			return nil
		},
	}
	to.flags(cmd)
	cmd.Flags().StringVar(&key, "dedup-key", "", "by which the node recognises a repeat")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !json.Valid([]byte(args[2])) {
			return errors.New("JSON: the third argument is no JSON document; quote it for the shell")
		}
		o := &outcome{first: make(chan error, 1), later: func(client.Status) {}}
		c, err := to.dial(client.Options{OnStatus: o.status})
		if err != nil {
			return err
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), publishTime)
		defer cancel()
		select {
		case err := <-o.first:
			if err != nil {
				return failure{err}
			}
		case <-ctx.Done():
			return failure{ctx.Err()}
		}
		ok, err := publishOnce(ctx, c, client.Publish{Room: args[0], Event: args[1], Data: json.RawMessage(args[2]), DedupKey: key})
		var refusal *client.Error
		if err != nil && !errors.As(err, &refusal) {
			return failure{err}
		}
		if _, err := fmt.Fprintf(p.stdout, "%s\n", codec.AppendAnswer(nil, codec.JSON, ok, refusal)); err != nil {
			return failure{err}
		}
		if refusal != nil {
			return failure{errRefused}
		}
		return nil
	}
	return cmd
}

// errRefused is told by what was printed.
var errRefused = errors.New("not published")

// publishOnce publishes, as a member if it must.
func publishOnce(ctx context.Context, c *client.Client, event client.Publish) (*codec.PublishResult, error) {
	ok, err := c.Publish(ctx, event)
	var refusal *client.Error
	if errors.As(err, &refusal) && refusal.Code == codec.CodeNotJoined {
		if _, err := c.Join(ctx, client.Join{Room: event.Room, NoEcho: true}); err != nil {
			return nil, err
		}
		ok, err = c.Publish(ctx, event)
	}
	if err != nil {
		return nil, err
	}
	return &ok, nil
}
