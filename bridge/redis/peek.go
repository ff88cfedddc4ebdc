package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/yaza-dev/pulse/codec"
)

var peekScript = newScript("peek")

// Peeked is a part of a topic's history.
type Peeked struct {
	Head codec.Position
	// Reset says why what comes after a position cannot be told whole; Events are empty
	// then, or begin later.
	Reset  codec.ResetReason
	Events []Kept
}

// Kept is one event, or why this build cannot read what stands in its place.
type Kept struct {
	Position codec.Position
	Event    *codec.Event
	Err      error
}

// Peek reads a topic's history after a position, or from its oldest event if since is
// zero, at most limit events of it, which is 1 or more. It is for whoever looks after a deployment: unlike
// what a Bridge does it changes nothing on the server, and waits for its answer. False:
// there is no such topic.
func Peek(ctx context.Context, c Config, topic codec.Topic, since codec.Position, limit int) (p Peeked, found bool, err error) {
	if err := c.Validate(); err != nil {
		return p, false, err
	}
	c = c.withDefaults()
	client := c.newClient()
	defer func() { err = errors.Join(err, client.Close()) }()
	n := names{key: c.KeyPrefix, cluster: c.Mode == Cluster}
	reply, err := client.Eval(ctx, peekScript.text, []string{n.buffer(topic), n.meta(topic)},
		flag(!since.IsZero()), since.Epoch, decimal(since.Offset), min(max(limit, 1), pageEvents)).Result()
	if err != nil {
		return p, false, err
	}
	list, err := stringsOf(reply)
	switch {
	case err != nil:
		return p, false, err
	case len(list) == 0:
		return p, false, nil
	case len(list) < 3:
		return p, false, errReply
	}
	if p.Head, err = position(list[0], list[1]); err != nil {
		return p, false, err
	}
	if list[2] != "" {
		p.Reset = codec.ResetEpoch
		return p, true, nil
	}
	for _, member := range list[3:] {
		p.Events = append(p.Events, peeked(topic, p.Head.Epoch, member, c.PayloadMax))
	}
	if !since.IsZero() && (len(p.Events) > 0 && p.Events[0].Position.Offset != since.Offset+1 || len(p.Events) == 0 && p.Head.Offset > since.Offset) {
		p.Reset = codec.ResetExpired
	}
	return p, true, nil
}

func peeked(topic codec.Topic, epoch, member string, most int) (k Kept) {
	offset, text, err := memberOf(member)
	k.Position = codec.Position{Epoch: epoch, Offset: offset}
	if err == nil {
		k.Event, err = event(topic, k.Position, text, most)
	}
	if err != nil {
		k.Err = fmt.Errorf("redis: what stands in the place of an event: %w", err)
		number, _, _ := strings.Cut(member, "|")
		k.Position.Offset, _ = strconv.ParseUint(number, 10, 64) // 0 if even that is none
	}
	return k
}
