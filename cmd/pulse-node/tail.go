package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

func (p *program) tail() *cobra.Command {
	var from dialing
	var since string
	cmd := &cobra.Command{
		Use:   "tail --url URL --token-file FILE ROOM…",
		Short: "Print what a client of some rooms gets",
		Long: `Join rooms as a client and print every frame that comes, one line of JSON each. A lost
connection comes back by itself and goes on where it was, which is told on standard
error.

Exit codes: 0 after SIGINT or SIGTERM, 1 when the node refuses the client or a room for
good, or cannot be reached to begin with, 2 wrong use.`,
		Example: `  pulse-node tail --url ws://127.0.0.1:8080 --token-file alice.jwt chat:lobby
  pulse-node tail --url ws://127.0.0.1:8080 --token-file alice.jwt --since fk3q:41 chat:lobby | jq -c 'select(.t=="event") | .data'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("a room is missing")
			}
			return nil
		},
	}
	from.flags(cmd)
	cmd.Flags().StringVar(&since, "since", "", "EPOCH:OFFSET to go on from; with one room only")
	cmd.RunE = func(cmd *cobra.Command, rooms []string) error {
		var position codec.Position
		if since != "" {
			var err error
			if position, err = parsePosition(since); err != nil {
				return err
			}
			if len(rooms) != 1 {
				return errors.New("--since goes with one room only")
			}
		}
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		o := &outcome{first: make(chan error, 1), later: func(s client.Status) {
			switch s.State {
			case client.Waiting:
				fmt.Fprintf(p.stderr, "pulse-node: %v; again in %v\n", s.Err, s.Wait)
			case client.Connected:
				fmt.Fprintf(p.stderr, "pulse-node: connected to %s\n", s.Session.Node)
			}
		}}
		c, err := from.dial(client.Options{OnStatus: o.status, OnFrame: func(frame []byte) {
			if _, err := fmt.Fprintf(p.stdout, "%s\n", frame); err != nil {
				cancel(err) // nobody reads any more
			}
		}})
		if err != nil {
			return err
		}
		var wg sync.WaitGroup
		defer func() {
			cancel(nil)
			wg.Wait()
			c.Close()
		}()
		for _, room := range rooms {
			wg.Go(func() { cancel(follow(ctx, c, client.Join{Room: room, Position: position})) })
		}
		for {
			select {
			case err := <-o.first:
				if err != nil {
					return failure{err}
				}
			case <-ctx.Done():
				if cmd.Context().Err() != nil {
					return nil
				}
				return failure{context.Cause(ctx)}
			}
		}
	}
	return cmd
}

// follow stays in a room until the membership or ctx ends. Its frames have been
// printed before it takes its items.
func follow(ctx context.Context, c *client.Client, j client.Join) error {
	s, err := c.Join(ctx, j)
	for err == nil {
		_, err = s.Next(ctx)
	}
	return fmt.Errorf("%s: %w", j.Room, err)
}

// parsePosition reads EPOCH:OFFSET.
func parsePosition(text string) (codec.Position, error) {
	at := strings.LastIndexByte(text, ':')
	offset, err := strconv.ParseUint(text[at+1:], 10, 53)
	if at <= 0 || err != nil {
		return codec.Position{}, fmt.Errorf("--since %s must be EPOCH:OFFSET, as events have them", text)
	}
	return codec.Position{Epoch: text[:at], Offset: offset}, nil
}
