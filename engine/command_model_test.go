package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/bridge/bridgetest"
	memorybridge "github.com/yaza-dev/pulse/bridge/memory"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// erratic answers commands as their names say, in every way that there is.
func erratic(random func(n int) int) func() room.Handler {
	return func() room.Handler {
		return &servant{
			command: func(ctx *room.Context, c *room.Command) (any, error) {
				soon := time.Duration(random(40)) * time.Millisecond
				switch c.Name {
				case "fail":
					return nil, errors.New("no")
				case "refuse":
					return nil, room.Refuse(codec.CodeConflict, "no")
				case "panic":
					panic("command")
				case "laterpanic":
					c.Later()
					panic("command")
				case "never":
					c.Later()
				case "twice":
					reply := c.Later()
					go reply.Answer(1, nil)
					go reply.Answer(2, nil)
				case "timer":
					reply := c.Later()
					if _, err := ctx.After(soon, func(*room.Context) { reply.Answer("timer", nil) }); err != nil {
						reply.Answer(nil, err)
					}
				case "timerpanic":
					_, _ = ctx.After(soon, func(*room.Context) { panic("timer") })
				case "work":
					reply := c.Later()
					if err := ctx.Go(func(life context.Context) (any, error) {
						select {
						case <-time.After(soon):
						case <-life.Done():
						}
						return "work", nil
					}, func(_ *room.Context, v any, err error) { reply.Answer(v, err) }); err != nil {
						reply.Answer(nil, err)
					}
				}
				return c.Data, nil
			},
			tick: func(*room.Context) {
				if random(50) == 0 {
					panic("tick")
				}
			},
		}
	}
}

// Each command has one reply, or its session has ended: with panics, deadlines,
// later answers, repeats, sessions and rooms that end, and a broker that is late.
// Virtual time.
func TestEveryCommandHasOneReply(t *testing.T) {
	const clients, each = 24, 80
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				source := rand.New(rand.NewPCG(seed, 3))
				random := func(n int) int { mu.Lock(); defer mu.Unlock(); return source.IntN(n) }
				k := kind("desk", erratic(random))
				k.Tick, k.MailboxItems = 50*time.Millisecond, 24
				var broker bridge.Broker
				if seed%2 == 1 {
					broker = bridgetest.Hostile(memorybridge.New(memorybridge.Config{}), seed, bridgetest.HostileOptions{Delay: 20 * time.Millisecond})
					t.Cleanup(broker.Close) // runs after the engine's
				}
				e := start(t, func(c *Config) {
					c.Kinds, c.Broker = []room.Kind{k}, broker
					c.Limits.Ping = time.Hour
					c.Commands = func(ctx context.Context, c Command) (any, error) {
						if c.Name == "never" {
							<-ctx.Done()
						}
						return c.Data, ctx.Err()
					}
				})
				names := []string{"fail", "refuse", "refuse", "panic", "laterpanic", "never", "never", "twice", "timerpanic"}
				for range 8 {
					names = append(names, "echo", "echo", "timer", "twice", "work")
				}
				var wg sync.WaitGroup
				codes := map[string]int{}
				for i := range clients {
					in := bothCodecs[i%2]
					c := dial(t, e, in, memory.Options{})
					c.hello(fmt.Sprintf("acme/s%d", i%6), []string{"desk:0", "desk:1", "desk:2"}[:i%4]...)
					dies := i%4 == 3
					wg.Go(func() {
						got := map[int]string{}
						sent := 0
						for sent < each && !(dies && random(each) == 0) {
							sent++
							name := names[random(len(names))]
							ask := fmt.Sprintf(`{"t":"command","id":%d,"name":%q,"data":%d`, sent, name, sent)
							if random(8) > 0 {
								ask += fmt.Sprintf(`,"room":"desk:%d"`, random(3))
							}
							if random(3) == 0 {
								ask += fmt.Sprintf(`,"dedup_key":"k%d"`, random(20))
							}
							if name == "never" && random(20) > 0 || random(3) == 0 {
								ask += fmt.Sprintf(`,"deadline_ms":%d`, random(100))
							}
							c.send(ask + "}")
							time.Sleep(time.Duration(random(10)) * time.Millisecond)
						}
						if dies {
							c.conn.Cut()
						}
						for len(got) < sent {
							f, err := c.recv(context.Background())
							if err != nil {
								if !dies {
									t.Errorf("client %d: %v", i, err)
								}
								break
							}
							if f.t() != "reply" {
								continue
							}
							id64, _ := f["id"].(json.Number).Int64()
							if was, ok := got[int(id64)]; ok || id64 < 1 || int(id64) > sent {
								t.Errorf("client %d: %v after %v", i, f, was)
							}
							code, _ := f.at("err.code").(string)
							got[int(id64)] = code
						}
						if !dies && len(got) != sent {
							t.Errorf("client %d: %d replies to %d commands", i, len(got), sent)
						}
						if !dies {
							c.hearsNoReply(time.Minute)
						}
						mu.Lock()
						defer mu.Unlock()
						for _, code := range got {
							codes[code]++
						}
						if !dies {
							c.conn.Close(1000)
						}
					})
				}
				wg.Wait()
				for _, code := range []string{"", "internal", "conflict", "deadline_exceeded", "unavailable"} {
					if codes[code] == 0 {
						t.Errorf("nothing was answered %q: %v", code, codes)
					}
				}
			})
		})
	}
}

// hearsNoReply waits for what must not come, in virtual time.
func (c *client) hearsNoReply(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	for f, err := c.recv(ctx); err == nil; f, err = c.recv(ctx) {
		if f.t() == "reply" {
			c.t.Errorf("one reply too many: %v", f)
		}
	}
}
