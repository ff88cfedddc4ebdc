package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// 4401 asks for a new token, once per welcome; while the old one is good it is not
// asked for.
func TestTokenIsAskedForOncePerWelcome(t *testing.T) {
	s := play(t, codec.JSON)
	var asked atomic.Int64
	c := start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) { return fmt.Sprint("t", asked.Add(1)), nil }
	})
	step := func(want string) *act {
		t.Helper()
		a := s.next()
		hello := expect[*codec.Hello](a)
		if hello.Token != want {
			t.Errorf("token %s, want %s", hello.Token, want)
		}
		a.welcome(hello, nil)
		return a
	}
	step("t1").close(1011, "")
	step("t1").close(4401, "ended")
	step("t2").close(0, "")
	step("t2").close(4401, "ended")
	a := s.next()
	if hello := expect[*codec.Hello](a); hello.Token != "t3" {
		t.Errorf("%+v", hello)
	}
	a.close(4401, "not this one either")
	var end *client.CloseError
	if err := closedFor(t, c); !errors.As(err, &end) || end.Code != 4401 || asked.Load() != 3 {
		t.Errorf("%v after %d", err, asked.Load())
	}
}

func TestTokenIsRenewedWhenItEnds(t *testing.T) {
	s := play(t, codec.Msgpack)
	var asked atomic.Int64
	c := start(t, s.url, "", func(o *client.Options) {
		o.Codec = codec.Msgpack
		o.Token = func(context.Context) (string, error) { return fmt.Sprint("t", asked.Add(1)), nil }
	})
	// The server's clock is an hour behind.
	now := time.Now().Add(-time.Hour)
	a, _ := s.greet(func(w *codec.Welcome) { w.Now, w.Exp = now.UnixMilli(), now.Add(30*time.Second).UnixMilli() })
	session, err := c.Session(soon(t))
	if left := time.Until(session.Expires); err != nil || left < 20*time.Second || left > 31*time.Second {
		t.Errorf("%+v, %v", session, err)
	}
	a.say(&codec.Expiring{})
	a.say(&codec.Expiring{})
	r := expect[*codec.Token](a)
	if r.Token != "t2" {
		t.Errorf("%+v", r)
	}
	a.ok(r.ID, &codec.TokenResult{Exp: now.Add(time.Minute).UnixMilli(), Resume: "sealed again"})
	a.close(0, "")
	if _, hello := s.greet(nil); hello.Token != "t2" || hello.Resume != "sealed again" {
		t.Errorf("%+v", hello)
	}
}

// Credentials that are about to end as soon as they are given are not asked for on and
// on: see renewAfter.
func TestTokenThatDoesNotLast(t *testing.T) {
	s := play(t, codec.JSON)
	var asked atomic.Int64
	start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) { asked.Add(1); return "the same", nil }
	})
	a, _ := s.greet(nil)
	const left = 8 * time.Second
	began := time.Now()
	a.say(&codec.Expiring{In: left})
	if r := expect[*codec.Token](a); r.Token != "the same" || time.Since(began) < left/2 || asked.Load() != 2 {
		t.Errorf("%+v, asked for the %dth time, after %v", r, asked.Load(), time.Since(began))
	}
}

// A refused token is asked for until the callback has another one, and credentials
// that have ended meanwhile are not shown again.
func TestTokenThatIsBadIsNotShownAgain(t *testing.T) {
	s := play(t, codec.JSON)
	var asked atomic.Int64
	start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) {
			if n := asked.Add(1); n == 1 || n > 3 {
				return fmt.Sprint("t", n), nil
			}
			return "", errors.New("the issuer is away")
		}
	})
	a, _ := s.greet(nil)
	a.close(4401, "ended")
	b := s.next()
	hello := expect[*codec.Hello](b)
	if hello.Token != "t4" {
		t.Errorf("%+v", hello)
	}
	now := time.Now().UnixMilli()
	b.welcome(hello, func(w *codec.Welcome) { w.Now, w.Exp = now, now-1 })
	b.close(0, "")
	if _, hello := s.greet(nil); hello.Token != "t5" {
		t.Errorf("%+v", hello)
	}
}

// What the callback's error means: it is asked again, unless it closes the client.
func TestTokenThatCannotBeHad(t *testing.T) {
	s := play(t, codec.JSON)
	var asked atomic.Int64
	c := start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) {
			if asked.Add(1) < 3 {
				return "", errors.New("the issuer is away")
			}
			return "good", nil
		}
	})
	a, hello := s.greet(nil)
	if hello.Token != "good" {
		t.Errorf("%+v", hello)
	}
	a.close(4409, "")
	closedFor(t, c)

	signedOut := errors.New("signed out")
	c = start(t, s.url, "", func(o *client.Options) {
		o.Token = func(context.Context) (string, error) { return "", fmt.Errorf("%w: %w", client.ErrClosed, signedOut) }
	})
	if err := closedFor(t, c); !errors.Is(err, signedOut) {
		t.Errorf("%v", err)
	}
}
