package client_test

import (
	"errors"
	"testing"

	"github.com/yaza-dev/pulse/client"
	"github.com/yaza-dev/pulse/codec"
)

// OnStatus hears of what happens, in order, and may close the client.
func TestOnStatus(t *testing.T) {
	s := play(t, codec.JSON)
	heard := make(chan client.Status, 10)
	closing := make(chan struct{})
	var c *client.Client
	begin := make(chan struct{})
	c = start(t, s.url, "alice", func(o *client.Options) {
		o.OnStatus = func(st client.Status) {
			<-begin
			heard <- st
			if st.State == client.Connected && st.Session.Resumed {
				c.Close()
				close(closing)
			}
		}
	})
	close(begin)
	// What is passed over meanwhile is not what happened last.
	want := func(rule string, fits func(client.Status) bool) {
		t.Helper()
		for {
			select {
			case st := <-heard:
				if fits(st) {
					return
				}
			case <-soon(t).Done():
				t.Fatal("not heard: ", rule)
			}
		}
	}
	a, _ := s.greet(nil)
	want("connected", func(st client.Status) bool {
		return st.State == client.Connected && st.Session.ID == "s1" && !st.Session.Resumed && st.Live && st.Err == nil
	})
	a.close(1011, "fault")
	want("lost", func(st client.Status) bool {
		var end *client.CloseError
		return errors.As(st.Err, &end) && end.Code == 1011 && (st.State == client.Waiting || st.State == client.Connecting)
	})
	s.greet(nil)
	want("connected again", func(st client.Status) bool { return st.State == client.Connected })
	<-closing
	want("closed", func(st client.Status) bool { return st.State == client.Closed && errors.Is(st.Err, client.ErrClosed) })
}
