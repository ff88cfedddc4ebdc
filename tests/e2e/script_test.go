package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// rule is one sentence of the protocol, and a script that shows it. Each line of a
// script is: who, what, and the rest. Who is a client of that name, and subject; it
// connects when it is first named. What is one of
//
//	hello ROOM…      says hello, and takes the welcome; rooms by name, or as objects
//	> FRAME          sends a frame
//	>json TEXT       sends this very text, if the client's codec is JSON
//	>msgpack HEX     sends these very bytes, if it is msgpack
//	>other FRAME     sends a frame, as text, in a message of the other kind
//	< FRAME          the next frame is like this
//	<~ FRAME         of what was sent and not taken, the first like this is taken
//	quiet            nothing was sent that was not taken
//	closed CODE      the connection is closed with this code
//	grants JSON      what the hello's token allows, instead of everything
//	cut              the connection is lost; naming the client again makes a new one
//
// In a frame that is awaited, only what is written counts; "*" is anything but
// absent, null is absent, and "$name" is the same text wherever it is written, in
// frames that are sent too.
type rule struct {
	name   string
	script string
}

// conform shows rules in every codec, each in a tenant of its own. Scripts with two
// clients are shown with every pair of codecs.
func conform(t *testing.T, n *node, rules []rule) {
	for i, r := range rules {
		t.Run(strings.ReplaceAll(r.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			for _, pair := range pairsFor(r.script) {
				t.Run(fmt.Sprintf("%s-%s", pair[0], pair[1]), func(t *testing.T) {
					s := script{t: t, node: n, tenant: fmt.Sprintf("t%d-%s-%s", i, pair[0], pair[1]), wires: pair[:], clients: map[string]*client{}, bound: map[string]string{}, grants: map[string]string{}}
					for line := range strings.SplitSeq(r.script, "\n") {
						if line = strings.TrimSpace(line); line != "" {
							s.line(line)
						}
					}
				})
			}
		})
	}
}

func pairsFor(script string) [][2]wire {
	names := map[string]bool{}
	for line := range strings.SplitSeq(script, "\n") {
		if who, _, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			names[who] = true
		}
	}
	if len(names) < 2 {
		return [][2]wire{{inJSON, inJSON}, {inMsgpack, inMsgpack}}
	}
	return [][2]wire{{inJSON, inJSON}, {inMsgpack, inMsgpack}, {inJSON, inMsgpack}, {inMsgpack, inJSON}}
}

// script is one that runs.
type script struct {
	t       *testing.T
	node    *node
	tenant  string
	wires   []wire // of the clients in the order of their names' first appearance
	order   []string
	clients map[string]*client
	grants  map[string]string
	bound   map[string]string // what stands for $name
}

func (s *script) line(line string) {
	s.t.Helper()
	who, rest, _ := strings.Cut(line, " ")
	what, rest, _ := strings.Cut(rest, " ")
	rest = strings.TrimSpace(rest)
	if what == "grants" {
		s.grants[who] = "/" + strings.ReplaceAll(rest, `"`, `\"`)
		return
	}
	c := s.client(who)
	fault := func(format string, args ...any) {
		s.t.Helper()
		s.t.Fatalf("%s\n%s", line, fmt.Sprintf(format, args...))
	}
	switch what {
	case "hello":
		rooms := strings.Fields(rest)
		for i, r := range rooms {
			if rooms[i] = s.fill(r); !strings.HasPrefix(r, "{") {
				rooms[i] = fmt.Sprintf(`{"room":%q}`, r)
			}
		}
		c.say(`{"t":"hello","token":"%s/%s%s","rooms":[%s]}`, s.tenant, who, s.grants[who], strings.Join(rooms, ","))
		if w := c.next(); w.text("t") != "welcome" {
			fault("%v", w)
		}
	case ">":
		c.say("%s", s.fill(strings.ReplaceAll(rest, "$TENANT", s.tenant)))
	case ">json":
		if c.in == inJSON {
			c.raw(websocket.MessageText, []byte(rest))
		}
	case ">msgpack":
		if c.in == inMsgpack {
			b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
			if err != nil {
				fault("%v", err)
			}
			c.raw(websocket.MessageBinary, b)
		}
	case ">other":
		c.raw(map[wire]websocket.MessageType{inJSON: websocket.MessageBinary, inMsgpack: websocket.MessageText}[c.in], []byte(rest))
	case "<":
		got := c.next()
		if err := s.like(s.parse(rest), map[string]any(got)); err != nil {
			fault("%v\ngot %v", err, got)
		}
	case "<~":
		want := s.parse(rest)
		c.find(func(f frame) bool {
			bound := map[string]string{}
			for k, v := range s.bound {
				bound[k] = v
			}
			if s.like(want, map[string]any(f)) == nil {
				return true
			}
			s.bound = bound
			return false
		})
	case "quiet":
		c.quiet()
	case "closed":
		want, _ := strconv.Atoi(rest)
		if len(c.inbox) > 0 {
			fault("before the close came %v", c.inbox)
		}
		if code, reason := c.closed(); int(code) != want {
			fault("closed %d %s", code, reason)
		}
		delete(s.clients, who)
	case "cut":
		c.cut()
		delete(s.clients, who)
	default:
		fault("no such thing to do")
	}
}

func (s *script) client(who string) *client {
	if c := s.clients[who]; c != nil {
		return c
	}
	at := -1
	for i, name := range s.order {
		if name == who {
			at = i
		}
	}
	if at < 0 {
		at = len(s.order)
		s.order = append(s.order, who)
	}
	c := dial(s.t, s.node, s.wires[at%len(s.wires)])
	s.clients[who] = c
	return c
}

// fill puts what is bound in the place of $names.
func (s *script) fill(text string) string {
	for name, v := range s.bound {
		text = strings.ReplaceAll(text, `"$`+name+`"`, v)
	}
	return text
}

func (s *script) parse(text string) map[string]any {
	s.t.Helper()
	f, err := parse([]byte(text))
	if err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return f
}

// like compares what was awaited with what came.
func (s *script) like(want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		in, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no object", got)
		}
		for name, w := range want {
			g, there := in[name]
			if w == nil {
				if there {
					return fmt.Errorf("%s is there: %v", name, g)
				}
				continue
			}
			if !there {
				return fmt.Errorf("%s is missing", name)
			}
			if err := s.like(w, g); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Errorf("%v, not %v", got, want)
		}
		for i := range want {
			if err := s.like(want[i], list[i]); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	case string:
		if want == "*" && got != nil {
			return nil
		}
		if name, ok := strings.CutPrefix(want, "$"); ok {
			text, err := json.Marshal(got)
			if err != nil {
				return err
			}
			if bound, there := s.bound[name]; there && bound != string(text) {
				return fmt.Errorf("%s, and $%s was %s", text, name, bound)
			}
			s.bound[name] = string(text)
			return nil
		}
	}
	if want != got {
		return fmt.Errorf("%v (%T), not %v", got, got, want)
	}
	return nil
}
