package tenant

import (
	"sync"
	"time"

	"github.com/yaza-dev/pulse/actors"
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/scheduler"
)

// Room is a room as its tenant knows it.
type Room interface {
	actors.Actor
	Mailbox() *mailbox.Mailbox
	// Abandon takes the room out of the hands of a handler that does not return:
	// its members are told, its requests answered. False: it is not in a handler.
	Abandon() bool
}

// Bits of an entry's signal to the tenant.
const (
	wanted uint32 = 1 << iota // to be started
	over                      // its mailbox is closed: to be stopped
)

// entry is one room in the directory.
type entry struct {
	name   string
	room   Room
	signal mailbox.Signal
	ref    *actors.Ref // owned by the tenant's actor; nil: not started
}

// directory finds rooms by name; see the package.
type directory struct {
	// immutable
	tenant *mailbox.Mailbox
	make   func(topic codec.Topic, kind *message.Policy, ended func()) Room
	name   string // of the tenant

	// guarded by mu
	mu     sync.RWMutex
	rooms  map[string]*entry
	closed bool
	max    int
}

var (
	errTooManyRooms = codec.Retry(codec.CodeQuotaExceeded, codec.ScopeTenant, time.Second, "as many rooms as the tenant may have")
	errEnding       = message.Unavailable(codec.ScopeTenant)
)

// Room is the mailbox of a room, which is made if it does not exist.
func (d *directory) Room(name string, kind *message.Policy) (*mailbox.Mailbox, *codec.Error) {
	d.mu.RLock()
	e := d.rooms[name]
	d.mu.RUnlock()
	if e != nil {
		return e.room.Mailbox(), nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.rooms[name]; e != nil {
		return e.room.Mailbox(), nil
	}
	switch {
	case d.closed:
		return nil, errEnding
	case len(d.rooms) >= d.max:
		return nil, errTooManyRooms
	}
	e = &entry{name: name}
	e.signal.Init(e)
	e.room = d.make(codec.Topic{Tenant: d.name, Room: name}, kind, func() { d.tenant.Raise(&e.signal, over) })
	if !d.tenant.Raise(&e.signal, wanted) {
		return nil, errEnding
	}
	d.rooms[name] = e
	return e.room.Mailbox(), nil
}

// Forget drops a room whose mailbox is closed.
func (d *directory) Forget(name string, closed *mailbox.Mailbox) {
	d.mu.Lock()
	if e := d.rooms[name]; e != nil && e.room.Mailbox() == closed {
		delete(d.rooms, name)
	}
	d.mu.Unlock()
}

// close refuses new rooms, if there are none or force is set and idle agrees.
func (d *directory) close(force bool, idle func() bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !force && (len(d.rooms) > 0 || !idle()) {
		return false
	}
	d.closed = true
	return true
}

// abandon takes the room that runs as task away from its handler.
func (d *directory) abandon(task *scheduler.Task) bool {
	d.mu.RLock()
	var found *entry
	for _, e := range d.rooms {
		if e.room.Mailbox().Task() == task {
			found = e
			break
		}
	}
	d.mu.RUnlock()
	if found == nil || !found.room.Abandon() {
		return false
	}
	d.Forget(found.name, found.room.Mailbox())
	d.tenant.Raise(&found.signal, over)
	return true
}

// size is how many rooms there are.
func (d *directory) size() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.rooms)
}

// all rooms there are.
func (d *directory) all() []*entry {
	d.mu.RLock()
	defer d.mu.RUnlock()
	list := make([]*entry, 0, len(d.rooms))
	for _, e := range d.rooms {
		list = append(list, e)
	}
	return list
}
