package main

import (
	"context"
	"fmt"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/soak/history"
)

// giveUp is how long a publisher repeats one event. Its key is remembered for longer, so
// that no repeat can be done a second time.
const giveUp = time.Minute

// publisher numbers its events of one room, and repeats each under its key until it is
// accepted.
type publisher struct {
	member *member
	source int
	room   string
	sent   []history.Publication
}

// run publishes until stop is closed, or ctx ends.
func (p *publisher) run(ctx context.Context, every time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			p.publish(ctx)
		}
	}
}

// publish sends the next event, and returns its position; zero: it was given up.
func (p *publisher) publish(ctx context.Context) codec.Position {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	c := p.member.crowd
	key := history.Key{Source: p.source, Number: len(p.sent) + 1}
	p.sent = append(p.sent, history.Publication{Key: key})
	this := &p.sent[len(p.sent)-1]
	publication := client.Publish{
		Room: p.room, Event: "message", DedupKey: fmt.Sprintf("%d-%d", key.Source, key.Number),
		Data: payload{key.Source, key.Number, c.now()},
	}
	for {
		r, err := p.member.client.Publish(ctx, publication)
		if err == nil {
			this.Accepted, this.Position, this.At = true, r.Position, c.now()
			if r.Duplicate {
				c.duplicates.Add(1)
			}
			return r.Position
		}
		c.refused.Add(1)
		select {
		case <-ctx.Done():
			return codec.Position{}
		case <-time.After(100 * time.Millisecond):
		}
	}
}
