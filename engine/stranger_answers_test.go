package engine

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Who asks and never reads the answers is cut, credentials or not, when it has taken
// nothing for as long as a write may take.
func TestAnswersThatNobodyReads(t *testing.T) {
	w := startWeb(t, func(c *Config) { c.Limits.WriteTimeout = 300 * time.Millisecond })
	w.e.publish(t, "acme", "chat:1", "message", strings.Repeat("x", 60<<10))
	for name, request := range map[string]string{
		"small":  "GET /v1/negotiate HTTP/1.1\r\nHost: pulse.test\r\n\r\n",
		"large":  "GET /v1/rooms/chat:1/history HTTP/1.1\r\nHost: pulse.test\r\n" + asAlice + "\r\n\r\n",
		"errors": "GET /nowhere HTTP/1.1\r\nHost: pulse.test\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			cut := make(chan struct{})
			go func() {
				defer close(cut)
				for err := error(nil); err == nil; {
					_, err = io.WriteString(c, request)
				}
			}()
			select {
			case <-cut:
			case <-time.After(30 * time.Second):
				t.Error("never cut")
			}
		})
	}
	t.Run("then others", func(t *testing.T) {
		if resp, f := w.do("GET", "/v1/negotiate", ""); resp.StatusCode != 200 {
			t.Errorf("%d %v", resp.StatusCode, f)
		}
	})
}

// A connection on which nothing was asked for a while is answered as before.
func TestAnswersAfterAPause(t *testing.T) {
	const pause = 100 * time.Millisecond
	w := startWeb(t, func(c *Config) { c.Limits.WriteTimeout = pause })
	r := w.raw("")
	for range 3 {
		r.say("GET /v1/negotiate HTTP/1.1\r\nHost: pulse.test\r\n\r\n")
		if status, _, _ := r.answer(); status != 200 {
			t.Fatal(status)
		}
		<-time.After(2 * pause)
	}
	r.say("POST /v1/rooms/chat:1/publish HTTP/1.1\r\nHost: pulse.test\r\nContent-Type: application/json\r\n" + asAlice +
		"\r\nExpect: 100-continue\r\nContent-Length: 28\r\n\r\n")
	if status, _, _ := r.answer(); status != 100 {
		t.Fatalf("%d, and the body was waited for", status)
	}
	r.say(`{"event":"message","data":1}`)
	if status, _, f := r.answer(); status != 200 {
		t.Errorf("%d %v", status, f)
	}
}
