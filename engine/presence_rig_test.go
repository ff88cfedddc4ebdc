package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// seenKind is a kind with presence.
var seenKind = room.Kind{Name: "seen", Events: openKind.Events, Presence: true}

// withPresence is an engine with it.
func withPresence(t *testing.T, change func(*Config)) *Engine {
	return start(t, func(c *Config) {
		c.Kinds = []room.Kind{seenKind}
		if change != nil {
			change(c)
		}
	})
}

// onlooker is a client that follows the presence of the room seen:1 as the
// protocol says, and finds fault with whatever breaks its rules.
type onlooker struct {
	*client
	subject string

	mu sync.Mutex
	// guarded by mu
	joined  bool
	replied map[string]frame // by id
	pe      string
	seq     string
	listed  bool
	members map[string]string // data by subject
	count   string
	told    []string // "+a", "~a", "-a", "full 3", "count 3", since the last look
	at      []time.Time
	events  int
	done    chan struct{}
}

// watch dials, says hello and joins the room with these fields, and follows it from
// then on.
func watch(t *testing.T, e *Engine, in codec.Codec, token, fields string) *onlooker {
	t.Helper()
	return watchOver(t, e, in, token, fields, memory.Options{})
}

func watchOver(t *testing.T, e *Engine, in codec.Codec, token, fields string, o memory.Options) *onlooker {
	t.Helper()
	c := dial(t, e, in, o)
	w := c.hello(token, `{"room":"seen:1"`+fields+`}`)
	return follow(c, w)
}

// follow begins with the welcome of a client that has joined.
func follow(c *client, w frame) *onlooker {
	c.t.Helper()
	o := &onlooker{client: c, subject: fmt.Sprint(w["subject"]), replied: map[string]frame{}, done: make(chan struct{})}
	ok, _ := w.at("rooms.0.ok").(map[string]any)
	if ok == nil {
		c.t.Fatalf("%s did not join: %v", o.subject, w)
	}
	o.begin(ok)
	go o.read()
	c.t.Cleanup(func() { c.conn.Cut(); <-o.done })
	return o
}

func (o *onlooker) fault(format string, args ...any) {
	o.t.Errorf(o.subject+": "+format, args...)
}

// begin takes the result of a join.
func (o *onlooker) begin(ok frame) {
	o.joined, o.pe, o.seq, o.listed, o.members = true, "", "", false, nil
	if ok["pe"] == nil {
		return
	}
	o.pe, o.seq, o.count = fmt.Sprint(ok["pe"]), fmt.Sprint(ok["seq"]), fmt.Sprint(ok["count"])
	if list, there := ok["members"].([]any); there {
		o.list(list)
		if o.members[o.subject] == "" {
			o.fault("members without oneself: %v", ok)
		}
	}
}

func (o *onlooker) list(list []any) {
	o.listed, o.members = true, map[string]string{}
	for _, m := range list {
		o.put(m)
	}
	if len(o.members) != len(list) || fmt.Sprint(len(list)) != o.count {
		o.fault("a list of %d members, %d subjects, count %s", len(list), len(o.members), o.count)
	}
}

func (o *onlooker) put(m any) (subject string) {
	f := frame(m.(map[string]any))
	subject = fmt.Sprint(f["subject"])
	o.members[subject] = fmt.Sprint(f["data"])
	return subject
}

func (o *onlooker) read() {
	defer close(o.done)
	for {
		f, err := o.recv(context.Background())
		if err != nil {
			return
		}
		o.mu.Lock()
		o.take(f)
		o.mu.Unlock()
	}
}

func (o *onlooker) take(f frame) {
	switch f.t() {
	case "ping":
		o.send(`{"t":"pong"}`)
	case "event":
		o.events++
	case "reply":
		id := fmt.Sprint(f["id"])
		o.replied[id] = f
		ok, _ := f["ok"].(map[string]any)
		switch {
		case ok["epoch"] != nil:
			o.begin(ok)
		case len(ok) == 1 && ok["room"] != nil:
			o.joined = false // left
		}
	case "left":
		o.joined = false
	case "presence":
		o.presence(f)
	}
}

// presence takes a frame, by the rules of a client.
func (o *onlooker) presence(f frame) {
	if !o.joined {
		o.fault("a presence frame without a membership: %v", f)
	}
	whole := o.pe == fmt.Sprint(f["pe"]) && o.seq == fmt.Sprint(f["prev"])
	o.at = append(o.at, time.Now())
	o.pe, o.seq = fmt.Sprint(f["pe"]), fmt.Sprint(f["seq"])
	if f["count"] != nil {
		o.count = fmt.Sprint(f["count"])
	}
	changes := f["join"] != nil || f["update"] != nil || f["leave"] != nil
	switch {
	case f["full"] == true && !changes:
		if f["prev"] != f["seq"] {
			o.fault("a full that does not stand for itself: %v", f)
		}
		o.list(f["members"].([]any))
		o.told = append(o.told, "full "+o.count)
	case f["count"] != nil && !changes && f["full"] == nil:
		if !whole && f["prev"] != f["seq"] {
			o.fault("a count on top of something else: %v", f)
		}
		o.listed, o.members = false, nil
		o.told = append(o.told, "count "+o.count)
	case changes && f["count"] == nil && f["full"] == nil:
		if !whole || !o.listed {
			o.fault("changes of something else (listed %v): %v", o.listed, f)
			return
		}
		o.change(f)
	default:
		o.fault("not exactly one thing: %v", f)
	}
}

func (o *onlooker) change(f frame) {
	each := func(name string) []any {
		list, _ := f[name].([]any)
		if f[name] != nil && len(list) == 0 {
			o.fault("an empty %s: %v", name, f)
		}
		return list
	}
	for _, m := range each("join") {
		subject := fmt.Sprint(frame(m.(map[string]any))["subject"])
		if o.members[subject] != "" {
			o.fault("%s joins twice", subject)
		}
		o.told = append(o.told, "+"+o.put(m))
	}
	for _, m := range each("update") {
		subject := fmt.Sprint(frame(m.(map[string]any))["subject"])
		if o.members[subject] == "" {
			o.fault("%s is updated before it joined", subject)
		}
		o.told = append(o.told, "~"+o.put(m))
	}
	for _, m := range each("leave") {
		subject := fmt.Sprint(m)
		if o.members[subject] == "" || subject == o.subject {
			o.fault("%s leaves", subject)
		}
		delete(o.members, subject)
		o.told = append(o.told, "-"+subject)
	}
}

// look is what it was told since it looked last, once everything gathered has
// come.
func (o *onlooker) look() string {
	time.Sleep(1100 * time.Millisecond) // the longest that changes are gathered; virtual
	o.mu.Lock()
	defer o.mu.Unlock()
	told := strings.Join(o.told, " ")
	o.told, o.at = nil, nil
	return told
}

// knows tells whether it was told of presence, and has a list.
func (o *onlooker) knows() (told, listed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pe != "", o.listed
}

// sees is who it believes to be there.
func (o *onlooker) sees() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.listed {
		return o.count
	}
	return strings.Join(slices.Sorted(maps.Keys(o.members)), " ")
}

func (o *onlooker) data(subject string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.members[subject]
}

// expect looks, and fails if it was told something else.
func (o *onlooker) expect(what, want string) {
	o.t.Helper()
	if got := o.look(); got != want {
		o.t.Errorf("%s: %s was told %q, want %q", what, o.subject, got, want)
	}
}

// answer sends a request and waits for its reply, which read brings.
func (o *onlooker) answer(doc string) frame {
	o.t.Helper()
	id := fmt.Sprint(o.request(doc))
	for range 2000 {
		o.mu.Lock()
		f := o.replied[id]
		delete(o.replied, id)
		o.mu.Unlock()
		if f != nil {
			return f
		}
		time.Sleep(10 * time.Millisecond) // virtual
	}
	o.t.Fatalf("no reply to %s", doc)
	return nil
}

func (o *onlooker) closeWith(code uint16) {
	o.conn.Close(code)
	<-o.conn.Done()
}

// overCodecs runs a test in each, in virtual time.
func overCodecs(t *testing.T, test func(t *testing.T, in codec.Codec)) {
	for _, in := range []codec.Codec{codec.JSON, codec.Msgpack} {
		t.Run(in.String(), func(t *testing.T) { virtual(t, func(t *testing.T) { test(t, in) }) })
	}
}
