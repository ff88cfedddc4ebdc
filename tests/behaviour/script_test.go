package behaviour

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// patience is how long a step waits for what must come.
const patience = 20 * time.Second

// received is a message of the node.
type received struct {
	payload []byte
	binary  bool
}

// inbox is what a connection puts what it receives into; ended has the code of the
// close, once, behind the last message.
type inbox struct {
	messages chan received
	ended    chan int
}

// socket is one connection of a client library.
type socket interface {
	send(message []byte, binary bool) error
	fragments(parts [][]byte, binary bool) error
	ping(payload string) error // and waits for the pong
	close(code int) error      // and has the connection end
	cut() error
}

// dialer opens a connection with one client library.
type dialer func(v variant, n *node, in inbox) (socket, error)

// performer is one client of the script.
type performer struct {
	socket
	inbox
	held []map[string]any // received and not taken
}

// performance is the script with one library, in one variant.
type performance struct {
	t       *testing.T
	variant variant
	node    *node
	dial    dialer
	clients map[string]*performer
	bound   map[string]any
}

func perform(t *testing.T, v variant, n *node, dial dialer) {
	text, err := os.ReadFile("script.json")
	if err != nil {
		t.Fatal(err)
	}
	p := &performance{t: t, variant: v, node: n, dial: dial, clients: map[string]*performer{}, bound: map[string]any{
		"alice": n.tokens["alice"], "bob": n.tokens["bob"], "codec": v.codec.String(), "compression": v.compression,
	}}
	steps, _ := parse(t, text).([]any)
	p.steps(steps)
}

// parse reads JSON with exact numbers.
func parse(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func (p *performance) steps(steps []any) {
	for _, s := range steps {
		p.step(s.([]any))
		if p.t.Failed() {
			p.t.FailNow()
		}
	}
}

func (p *performance) step(step []any) {
	var with any
	if len(step) > 2 {
		with = step[2]
	}
	switch who, what := step[0].(string), step[1]; who {
	case "set":
		p.bound[what.(string)] = strings.Repeat(with.(string), number(step[3]))
	case "times":
		for i := 1; i <= number(what); i++ {
			p.bound["i"] = json.Number(strconv.Itoa(i))
			p.steps(with.([]any))
		}
	case "node":
		p.node.drain()
	default:
		if err := p.act(who, what.(string), with); err != nil {
			text, _ := json.Marshal(step)
			p.t.Errorf("%.300s\n%v", text, err)
		}
	}
}

func number(v any) int {
	n, _ := strconv.Atoi(string(v.(json.Number)))
	return n
}

func (p *performance) act(who, what string, with any) error {
	c := p.clients[who]
	binary := p.variant.codec == codec.Msgpack
	switch what {
	case "connect":
		c = &performer{inbox: inbox{make(chan received, 1024), make(chan int, 1)}}
		p.clients[who] = c
		var err error
		c.socket, err = p.dial(p.variant, p.node, c.inbox)
		return err
	case "send":
		return c.send(p.encode(with), binary)
	case "fragments":
		b := p.encode(with)
		third := len(b) / 3
		return c.fragments([][]byte{b[:third], b[third : 2*third], b[2*third:]}, binary)
	case "raw":
		text := with.(map[string]any)[p.variant.codec.String()].(string)
		if !binary {
			return c.send([]byte(text), false)
		}
		b, err := hex.DecodeString(text)
		if err != nil {
			return err
		}
		return c.send(b, true)
	case "await":
		return p.await(c, with.(map[string]any))
	case "ping":
		return c.ping(with.(string))
	case "close":
		return c.close(number(with))
	case "closed":
		return c.closed(number(with))
	case "cut":
		return c.cut()
	}
	return fmt.Errorf("no such thing to do")
}

// encode makes a message of a frame with what is bound in the place of names.
func (p *performance) encode(frame any) []byte {
	text, err := json.Marshal(p.fill(frame))
	if err != nil {
		p.t.Fatal(err)
	}
	d, err := codec.MakeData(codec.JSON, text)
	if err != nil {
		p.t.Fatal(err)
	}
	return d.In(p.variant.codec)
}

func (p *performance) fill(v any) any {
	switch v := v.(type) {
	case string:
		if name, ok := strings.CutPrefix(v, "$"); ok {
			return p.bound[name]
		}
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, p.fill(e))
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for k, e := range v {
			object[k] = p.fill(e)
		}
		return object
	}
	return v
}

// await takes the first frame of the same t, room and id.
func (p *performance) await(c *performer, want map[string]any) error {
	named := func(f map[string]any) bool {
		for _, name := range []string{"t", "room", "id"} {
			if w, there := want[name]; there && f[name] != w {
				return false
			}
		}
		return true
	}
	for at := 0; ; at++ {
		for at == len(c.held) {
			f, err := p.receive(c)
			if err != nil {
				return err
			}
			c.held = append(c.held, f)
		}
		if f := c.held[at]; named(f) {
			c.held = append(c.held[:at:at], c.held[at+1:]...)
			if err := p.like(want, f); err != nil {
				return fmt.Errorf("%w in %.300s", err, fmt.Sprint(f))
			}
			return nil
		}
	}
}

func (p *performance) receive(c *performer) (map[string]any, error) {
	select {
	case m := <-c.messages:
		if m.binary != (p.variant.codec == codec.Msgpack) {
			return nil, fmt.Errorf("a message of the other kind: %q", m.payload)
		}
		d, err := codec.MakeData(p.variant.codec, m.payload)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", m.payload, err)
		}
		f, ok := parse(p.t, d.In(codec.JSON)).(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%q is no frame", m.payload)
		}
		return f, nil
	case code := <-c.ended:
		return nil, fmt.Errorf("closed %d; not taken: %.300s", code, fmt.Sprint(c.held))
	case <-time.After(patience):
		return nil, fmt.Errorf("nothing came; not taken: %.300s", fmt.Sprint(c.held))
	}
}

func (c *performer) closed(want int) error {
	for {
		select {
		case <-c.messages: // nobody waits for them
		case code := <-c.ended:
			if code != want {
				return fmt.Errorf("closed %d", code)
			}
			return nil
		case <-time.After(patience):
			return fmt.Errorf("not closed")
		}
	}
}

// like compares what was awaited with what came, and binds names.
func (p *performance) like(want, got any) error {
	switch want := want.(type) {
	case string:
		if want == "*" && got != nil {
			return nil
		}
		if name, ok := strings.CutPrefix(want, "$"); ok {
			if bound, there := p.bound[name]; there {
				return same(bound, got)
			}
			p.bound[name] = got
			return nil
		}
	case map[string]any:
		in, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no object", got)
		}
		for k, w := range want {
			if err := p.like(w, in[k]); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
		return nil
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Errorf("%v, want %v", got, want)
		}
		for i, w := range want {
			if err := p.like(w, list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return same(want, got)
}

func same(want, got any) error {
	if want != got {
		return fmt.Errorf("%.100s, want %.100s", fmt.Sprint(got), fmt.Sprint(want))
	}
	return nil
}
