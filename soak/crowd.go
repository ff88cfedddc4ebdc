package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/soak/history"
)

// crowd is all clients of a run.
type crowd struct {
	// immutable
	site  site
	began time.Time
	rooms []string

	members    []*member
	publishers []*publisher

	// atomic
	connected, duplicates, refused atomic.Int64

	delays delays
}

// sources is how many publish in a room.
const sources = 2

// wanderers: one member of so many comes and goes.
const wanderers = 8

// gather makes clients who are in two rooms each, and the publishers among them.
func gather(o options, s site) *crowd {
	c := &crowd{site: s, began: time.Now()}
	for i := range o.Rooms {
		kind := "chat"
		if i%10 == 9 {
			kind = "short"
		}
		c.rooms = append(c.rooms, fmt.Sprintf("%s:%d", kind, i))
	}
	for i := range o.Clients {
		first, second := i%o.Rooms, (i+1+i/o.Rooms)%o.Rooms
		if second == first {
			second = (first + 1) % o.Rooms
		}
		m := newMember(c, fmt.Sprintf("client %d", i), c.rooms[first], c.rooms[second])
		c.members = append(c.members, m)
		if i/o.Rooms < sources {
			c.publishers = append(c.publishers, &publisher{member: m, source: i, room: c.rooms[first]})
		}
	}
	return c
}

func (c *crowd) now() time.Duration { return time.Since(c.began) }

// come connects everybody, a few at a time.
func (c *crowd) come(ctx context.Context) error {
	var wait sync.WaitGroup
	turns, errs := make(chan struct{}, 16), make(chan error, len(c.members))
	for _, m := range c.members {
		wait.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if err := m.come(ctx); err != nil {
				errs <- err
			}
		})
	}
	wait.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// leave ends everybody.
func (c *crowd) leave() {
	var wait sync.WaitGroup
	for _, m := range c.members {
		wait.Go(m.goAway)
	}
	wait.Wait()
}

// last has each room's publishers publish once more, and waits until everybody has it;
// those that have not when ctx ends are found by their histories.
func (c *crowd) last(ctx context.Context) {
	heads := map[string]codec.Position{}
	for _, p := range c.publishers {
		if at := p.publish(ctx); at.Offset > heads[p.room].Offset {
			heads[p.room] = at
		}
	}
	for _, m := range c.members {
		for _, room := range m.rooms {
			for !m.reached(room, heads[room]) && ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond) // between two looks
			}
		}
	}
}

// histories is all that was written down; members' names say in which way.
func (c *crowd) histories() (rooms []history.Room, faults []string) {
	for _, name := range c.rooms {
		room := history.Room{Name: name, Kept: c.site.kept(name)}
		for _, p := range c.publishers {
			if p.room == name {
				room.Sent = append(room.Sent, p.sent...)
			}
		}
		for _, m := range c.members {
			m.mu.Lock()
			for _, in := range m.rooms {
				if in == name {
					room.Members = append(room.Members,
						history.Member{Name: m.name + " (wire)", Entries: m.wire[name]},
						history.Member{Name: m.name + " (client)", Entries: m.given[name]})
				}
			}
			m.mu.Unlock()
		}
		rooms = append(rooms, room)
	}
	for _, m := range c.members {
		for _, f := range m.faults {
			faults = append(faults, m.name+": "+f)
		}
	}
	return rooms, faults
}
