package engine

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Who asks and never reads the answers is cut, credentials or not, when it has taken
// nothing for as long as a write may take. Virtual time.
func TestAnswersThatNobodyReads(t *testing.T) {
	for name, request := range map[string]string{
		"small":    "GET /v1/negotiate HTTP/1.1\r\nHost: pulse.test\r\n\r\n",
		"large":    "GET /v1/rooms/chat:1/history HTTP/1.1\r\nHost: pulse.test\r\n" + asAlice + "\r\n\r\n",
		"refusals": "GET /nowhere HTTP/1.1\r\nHost: pulse.test\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 3 * time.Second
				e := start(t, func(c *Config) { c.Limits.WriteTimeout = timeout })
				e.publish(t, "acme", "chat:1", "message", strings.Repeat("x", 60<<10))
				c := e.overPipes(t).dial()
				began := time.Now()
				for err := error(nil); err == nil; {
					_, err = io.WriteString(c, request)
				}
				if took := time.Since(began); took < timeout || took > timeout+time.Second {
					t.Errorf("cut after %v", took)
				}
			})
		})
	}
}

// The time for one answer is not that of the next: a connection on which nothing was
// asked for a while is answered as before. Virtual time.
func TestAnswersAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		r := start(t, func(c *Config) { c.Limits.WriteTimeout = timeout }).overPipes(t).raw("")
		for range 3 {
			r.say("GET /v1/negotiate HTTP/1.1\r\nHost: pulse.test\r\n\r\n")
			if status, _, _ := r.answer(); status != 200 {
				t.Fatal(status)
			}
			time.Sleep(2 * timeout)
		}
		r.say("POST /v1/rooms/chat:1/publish HTTP/1.1\r\nHost: pulse.test\r\nContent-Type: application/json\r\n" + asAlice +
			"\r\nExpect: 100-continue\r\nContent-Length: 28\r\n\r\n")
		if status, _, _ := r.answer(); status != 100 {
			t.Fatalf("%d, and the body was waited for", status)
		}
		time.Sleep(2 * timeout)
		r.say(`{"event":"message","data":1}`)
		if status, _, f := r.answer(); status != 200 {
			t.Errorf("%d %v", status, f)
		}
	})
}
