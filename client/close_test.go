package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

func TestCloseIsOrderlyAndOnce(t *testing.T) {
	s := play(t, codec.JSON)
	var c *client.Client
	states := make(chan client.State, 10)
	c = start(t, s.url, "alice", func(o *client.Options) {
		o.OnStatus = func(st client.Status) { states <- st.State }
	})
	a, _ := s.greet(nil)
	if _, err := c.Session(soon(t)); err != nil {
		t.Fatal(err)
	}
	command := make(chan error, 1)
	go func() {
		_, err := c.Command(soon(t), client.Command{Name: "roll"})
		command <- err
	}()
	expect[*codec.Command](a)
	for i := range 60 {
		if err := c.TryPublish(client.Publish{Room: "chat", Event: "e", Data: i}); err != nil {
			t.Error(err)
		}
	}
	ended := make(chan struct{})
	go func() { c.Close(); c.Close(); close(ended) }()
	c.Close()
	for i := range 60 { // what was handed over is still sent
		if p := expect[*codec.Publish](a); string(p.Data.In(codec.JSON)) != fmt.Sprint(i) || p.ID != 0 || p.DedupKey != "" {
			t.Errorf("%+v", p)
		}
	}
	if code := a.closed(); code != 1000 {
		t.Errorf("closed with %d", code)
	}
	<-ended
	if err := <-command; !errors.Is(err, client.ErrClosed) || !errors.Is(err, client.ErrUnknown) {
		t.Errorf("in flight: %v", err)
	}
	for st := range states {
		if st == client.Closed {
			break
		}
	}
}

// Close ends in every stage of a connection, and a server that does not answer does
// not hold it up.
func TestCloseInEveryStage(t *testing.T) {
	t.Run("while a token is fetched", func(t *testing.T) {
		s := play(t, codec.JSON)
		asked := make(chan struct{})
		c := start(t, s.url, "", func(o *client.Options) {
			o.Token = func(ctx context.Context) (string, error) { close(asked); <-ctx.Done(); return "", ctx.Err() }
		})
		<-asked
		c.Close()
	})
	t.Run("before the welcome", func(t *testing.T) {
		s := play(t, codec.JSON)
		c := start(t, s.url, "alice", nil)
		expect[*codec.Hello](s.next())
		c.Close()
	})
	t.Run("between two attempts", func(t *testing.T) {
		s := playWith(t, codec.JSON, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "1000")
			w.WriteHeader(503)
			return true
		})
		before := goleak.IgnoreCurrent()
		c, err := client.New(client.Options{URL: s.url})
		if err != nil {
			t.Fatal(err)
		}
		for c.Status().State != client.Waiting {
			time.Sleep(time.Millisecond)
		}
		if wait := c.Status().Wait; wait < 1000*time.Second {
			t.Errorf("waits %v", wait)
		}
		c.Close()
		if err := goleak.Find(before); err != nil { // of a refused attempt neither
			t.Error(err)
		}
	})
	t.Run("with a server that does not answer", func(t *testing.T) {
		s := play(t, codec.JSON)
		s.deaf = true
		c := start(t, s.url, "alice", nil)
		s.next().welcome(&codec.Hello{}, nil)
		if _, err := c.Session(soon(t)); err != nil {
			t.Error(err)
		}
		began := time.Now()
		c.Close()
		if took := time.Since(began); took > patience {
			t.Errorf("%v", took)
		}
	})
}
