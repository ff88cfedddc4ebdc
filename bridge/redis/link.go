package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/backpressure"
)

// subscribeBatch is how many channels one command names.
const subscribeBatch = 512

// link is one connection for subscriptions, from its making to its end; it is
// never mended. Its keeper reads it, one goroutine of its own writes.
type link struct {
	// immutable
	shard      string // its name: of a cluster's the address
	generation uint64 // of those with its name, from 1 on
	bridge     *Bridge
	client     *goredis.Client
	pubsub     *goredis.PubSub
	probe      string // the channel on which it hears itself
	trial      string // a name of its server under which there never is anything
	ready      chan struct{}
	ctx        context.Context
	cancel     context.CancelFunc

	unfit complaint // owned by its server's inspection, of which one is under way

	mu sync.Mutex
	// guarded by mu
	changes backpressure.Ring[change] // one at most for each channel
	why     string                    // it has to end
	settled map[*listener]struct{}    // those with nothing left to find out
}

type change struct {
	channel string
	on      bool
}

// ask has the server told of a channel.
func (k *link) ask(channel string, on bool) {
	k.mu.Lock()
	k.changes.Push(change{channel, on})
	k.mu.Unlock()
	select {
	case k.ready <- struct{}{}:
	default:
	}
}

// fail ends the link.
func (k *link) fail(why string) {
	k.mu.Lock()
	if k.why == "" {
		k.why = why
	}
	k.mu.Unlock()
	k.cancel()
	_ = k.pubsub.Close() // ends the reading
}

func (k *link) reason() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.why
}

// settle is each listener's, when it knows what was missed.
func (k *link) settle(l *listener) {
	k.mu.Lock()
	k.settled[l] = struct{}{}
	whole := len(k.settled) == len(k.bridge.listeners)
	k.mu.Unlock()
	if whole {
		k.bridge.judge(func(m *machine, now time.Time) { m.settled(k.shard, k.generation, now) })
	}
}

// write tells the server of channels, in the order in which they were asked for.
func (k *link) write() {
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.ready:
		}
		for {
			batch, on := k.batch()
			if len(batch) == 0 {
				break
			}
			if err := k.tell(batch, on); err != nil {
				k.fail(causeOf(err))
				return
			}
		}
	}
}

func (k *link) batch() (list []string, on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.changes.Len() > 0 && len(list) < subscribeBatch {
		c := k.changes.At(0)
		if len(list) > 0 && c.on != on {
			break
		}
		on = c.on
		list = append(list, c.channel)
		k.changes.Drop()
	}
	return list, on
}

func (k *link) tell(channels []string, on bool) error {
	if k.bridge.config.Mode != Cluster {
		if on {
			return k.pubsub.Subscribe(k.ctx, channels...)
		}
		return k.pubsub.Unsubscribe(k.ctx, channels...)
	}
	// One command is of one slot. Each channel is in the batch once, so that order
	// between them is nobody's.
	bySlot := make(map[string][]string)
	for _, name := range channels {
		_, tag, _ := strings.Cut(name, "{")
		tag, _, _ = strings.Cut(tag, "}")
		bySlot[tag] = append(bySlot[tag], name)
	}
	for _, some := range bySlot {
		tell := k.pubsub.SUnsubscribe
		if on {
			tell = k.pubsub.SSubscribe
		}
		if err := tell(k.ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// read brings what comes to the listeners, until the link ends.
func (k *link) read() error {
	for {
		got, err := k.pubsub.ReceiveTimeout(k.ctx, 0)
		if err != nil {
			return err
		}
		switch m := got.(type) {
		case *goredis.Message:
			if m.Channel == k.probe {
				k.bridge.judge(func(s *machine, now time.Time) { s.heard(k.shard, k.generation, now) })
				continue
			}
			k.bridge.listenerOf(m.Channel).bring(note{link: k, channel: m.Channel, text: m.Payload})
		case *goredis.Subscription:
			if m.Channel == k.probe {
				continue
			}
			n := note{link: k, channel: m.Channel, confirm: unsubscribed}
			if m.Kind == "subscribe" || m.Kind == "ssubscribe" {
				n.confirm = subscribed
			}
			k.bridge.listenerOf(m.Channel).bring(n)
		case *goredis.Pong:
		default:
			return fmt.Errorf("redis: %T on a link", got)
		}
	}
}

// greet subscribes to the link's own channel, which also makes the connection.
func (k *link) greet() error {
	if err := k.tell([]string{k.probe}, true); err != nil {
		return err
	}
	got, err := k.pubsub.ReceiveTimeout(k.ctx, replyTimeout)
	if err != nil {
		return err
	}
	if _, ok := got.(*goredis.Subscription); !ok {
		return errors.New("redis: no confirmation")
	}
	return nil
}
