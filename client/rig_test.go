package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

var codecs = []codec.Codec{codec.JSON, codec.Msgpack}

// start runs a client as tenant acme's subject, until the test ends. It comes back
// quickly.
func start(t testing.TB, url, subject string, change func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{URL: url, Token: func(context.Context) (string, error) { return "acme/" + subject, nil }}
	if change != nil {
		change(&o)
	}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	client.Hurry(c)
	t.Cleanup(c.Close)
	return c
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func join(t testing.TB, c *client.Client, j client.Join) *client.Subscription {
	t.Helper()
	s, err := c.Join(soon(t), j)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// next is the next item, which must be of type I.
func next[I client.Item](t testing.TB, s *client.Subscription) I {
	t.Helper()
	item, err := s.Next(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	i, ok := item.(I)
	if !ok {
		t.Fatalf("%T: %+v", item, item)
	}
	return i
}

// closedFor waits until the client is closed for good, and returns why.
func closedFor(t testing.TB, c *client.Client) error {
	t.Helper()
	for {
		if s := c.Status(); s.State == client.Closed {
			return s.Err
		}
		select {
		case <-soon(t).Done():
			t.Fatalf("not closed: %+v", c.Status())
		case <-time.After(time.Millisecond):
		}
	}
}
