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
				_ = c.SetWriteDeadline(began.Add(10 * timeout))
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
