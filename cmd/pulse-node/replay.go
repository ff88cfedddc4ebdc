package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/bridge/redis"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/codec"
)

// replayTime is how long replay waits for the server.
const replayTime = 10 * time.Second

func (p *program) replay() *cobra.Command {
	var file, tenant, from string
	var limit int
	cmd := &cobra.Command{
		Use:   "replay --config FILE --tenant T ROOM",
		Short: "Print the history of a room that is kept on Redis",
		Long: `Print what a room's history on Redis holds, oldest first, one line of JSON for each
event, as a client would be sent it. The configuration says where that Redis is; no node
need run, and nothing is changed. Where there is more, standard error says how to go on.

Exit codes: 0 printed, 1 there is no such room, the position cannot be served, or Redis
does not answer, 2 wrong use.`,
		Example: `  pulse-node replay --config pulse.yaml --tenant acme chat:lobby | jq -c .data
  pulse-node replay --config pulse.yaml --tenant acme --since fk3q:41 --limit 10 chat:lobby`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration, YAML")
	f.StringVar(&tenant, "tenant", "", "tenant")
	f.StringVar(&from, "since", "", "EPOCH:OFFSET after which to begin; else with the oldest event")
	f.IntVar(&limit, "limit", 1000, "events at most, up to 4096")
	_ = cmd.RegisterFlagCompletionFunc("tenant", cobra.NoFileCompletions) // fails for a flag that there is not
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, required := range []string{"config", "tenant"} {
			if !f.Changed(required) {
				return fmt.Errorf("--%s is missing", required)
			}
		}
		if len(args) != 1 {
			return errors.New("name one room")
		}
		topic, err := codec.NewTopic(tenant, args[0])
		if err != nil {
			return fmt.Errorf("--tenant %s %s: %w", tenant, args[0], err)
		}
		if limit < 1 || limit > 4096 {
			return errors.New("--limit must be 1 to 4096")
		}
		var since codec.Position
		if from != "" {
			if since, err = parsePosition(from); err != nil {
				return err
			}
		}
		c, err := config.Load(config.Sources{File: file, Environ: p.environ})
		if err != nil {
			return err
		}
		if len(c.Bridge.Redis.Addresses) == 0 {
			return config.Faults{{Key: "bridge.redis.addresses", Source: file, Problem: "must name a Redis: without one history is in the memory of a node"}}
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), replayTime)
		defer cancel()
		silent := slog.New(slog.DiscardHandler)
		redis.LogDriver(silent) // the error says it
		page, found, err := redis.Peek(ctx, redisConfig(c, silent), topic, since, limit)
		switch {
		case err != nil:
			return failure{err}
		case !found:
			return failure{fmt.Errorf("no room %s of tenant %s has a history here", topic.Room, tenant)}
		case page.Reset == codec.ResetEpoch:
			return failure{fmt.Errorf("--since %s is no position of this history, which is at %s:%d", from, page.Head.Epoch, page.Head.Offset)}
		case page.Reset == codec.ResetExpired:
			return failure{fmt.Errorf("--since %s: what came after it is not all kept any more", from)}
		}
		return asFailure(p.print(page, limit))
	}
	return cmd
}

// print prints events as clients are sent them.
func (p *program) print(page redis.Peeked, limit int) error {
	protocol := codec.Protocols()[0]
	for _, kept := range page.Events {
		line := []byte(nil)
		if kept.Err == nil {
			line = protocol.Append(nil, kept.Event)
		} else {
			var err error
			if line, err = json.Marshal(map[string]any{"epoch": kept.Position.Epoch, "offset": kept.Position.Offset, "error": kept.Err.Error()}); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(p.stdout, "%s\n", line); err != nil {
			return err
		}
	}
	if n := len(page.Events); n == limit && page.Events[n-1].Position != page.Head {
		last := page.Events[n-1].Position
		fmt.Fprintf(p.stderr, "pulse-node: there is more: go on with --since %s:%d\n", last.Epoch, last.Offset)
	}
	return nil
}
