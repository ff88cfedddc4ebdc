package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// limited runs a node with short limits for strangers.
func limited(t *testing.T, more ...string) *running {
	t.Helper()
	return start(t, append([]string{"serve", "--config", write(t, "pulse.yaml", keys), "--listen=127.0.0.1:0", "--internal.listen=127.0.0.1:0",
		"--transport.handshake_timeout=500ms"}, more...)...)
}

func dialTCP(t *testing.T, n *running) net.Conn {
	t.Helper()
	_, address, _ := strings.Cut(n.public, "://")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ended waits until c has ended, from the other side; false: it did not within d.
func ended(c net.Conn, d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := io.Copy(io.Discard, c)
	timeout, ok := err.(net.Error)
	return !ok || !timeout.Timeout()
}

// warmcat/libwebsockets#2154, kent8192/reinhardt-web#508: a slow handshake held
// its place.
func TestB112_SlowHandshakesAreCut(t *testing.T) {
	cert, key, _ := newCertificate(t)
	for _, scheme := range []struct {
		name  string
		flags []string
	}{{"plain", nil}, {"TLS", []string{"--tls.cert_file=" + cert, "--tls.key_file=" + key}}} {
		n := limited(t, scheme.flags...)
		for name, send := range map[string]string{
			"nothing":             "",
			"half a request line": "GET /v1/w",
			"half of the headers": "GET /v1/ws HTTP/1.1\r\nHost: pulse\r\nUpgrade: web",
			"half of TLS":         "\x16\x03\x01\x02\x00\x01",
		} {
			t.Run(scheme.name+"/"+name, func(t *testing.T) {
				c := dialTCP(t, n)
				if _, err := io.WriteString(c, send); err != nil {
					t.Fatal(err)
				}
				stop := make(chan struct{})
				defer close(stop)
				go func() {
					drip := time.NewTicker(50 * time.Millisecond)
					defer drip.Stop()
					for {
						select {
						case <-drip.C:
							_, _ = c.Write([]byte("x")) // fails when it was cut
						case <-stop:
							return
						}
					}
				}()
				if !ended(c, 10*time.Second) {
					t.Error("not cut")
				}
			})
		}
	}
}

func TestB112_HugeHeadersAreRefused(t *testing.T) {
	n := limited(t)
	c := dialTCP(t, n)
	go func() {
		fmt.Fprintf(c, "GET /v1/ws HTTP/1.1\r\nHost: pulse\r\n")
		for {
			if _, err := fmt.Fprintf(c, "X-More: %01000d\r\n", 0); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", resp.StatusCode)
	}
	if !ended(c, 10*time.Second) {
		t.Error("not cut")
	}
}

// Many that say nothing keep nobody out: the oldest of them go.
func TestB112_HalfOpenConnectionsKeepNobodyOut(t *testing.T) {
	cert, key, _ := newCertificate(t)
	for name, flags := range map[string][]string{"plain": nil, "TLS": {"--tls.cert_file=" + cert, "--tls.key_file=" + key}} {
		t.Run(name, func(t *testing.T) {
			n := limited(t, append(flags, "--transport.handshake_timeout=1m", "--transport.max_unauthenticated=20")...)
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
			served := func() {
				t.Helper()
				resp, err := client.Get(n.public + "/v1/negotiate")
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Errorf("status %d", resp.StatusCode)
				}
			}
			var silent []net.Conn
			for i := range 200 {
				silent = append(silent, dialTCP(t, n))
				if i%10 == 0 {
					served()
				}
			}
			served()
			for i, c := range silent[:len(silent)-20] {
				if !ended(c, 10*time.Second) {
					t.Fatalf("connection %d of %d is still there", i, len(silent))
				}
			}
			_, err := io.WriteString(silent[len(silent)-1], "x")
			if err != nil || ended(silent[len(silent)-1], 50*time.Millisecond) {
				t.Error("the last has gone too")
			}
		})
	}
}

// named is a connection that remembers whether it was closed.
type named struct {
	net.Conn
	closed bool
}

func (c *named) Close() error { c.closed = true; return nil }

func TestDoor(t *testing.T) {
	d := newDoor(2)
	var c [5]*named
	for i := range c {
		c[i] = &named{}
	}
	who := func() (closed string) {
		for i, c := range c {
			if c.closed {
				closed += fmt.Sprint(i)
			}
		}
		return closed
	}
	for _, step := range []struct {
		conn   int
		state  http.ConnState
		closed string
	}{
		{0, http.StateNew, ""},
		{1, http.StateNew, ""},
		{2, http.StateNew, "0"},
		{0, http.StateClosed, "0"},
		{1, http.StateActive, "0"}, // it has spoken, and is nobody's to displace
		{3, http.StateNew, "0"},
		{4, http.StateNew, "02"},
		{1, http.StateIdle, "02"},
		{1, http.StateClosed, "02"},
		{3, http.StateHijacked, "02"},
		{4, http.StateClosed, "02"},
	} {
		if d.state(c[step.conn], step.state); who() != step.closed {
			t.Errorf("%d is %v: closed are %q, want %q", step.conn, step.state, who(), step.closed)
		}
	}
	if d.waiting.Len() != 0 || len(d.places) != 0 {
		t.Errorf("%d wait, %d have places", d.waiting.Len(), len(d.places))
	}
}

// From accept to hello there is one time: a header that took most of it leaves the rest
// for the hello.
func TestB112_ASlowHeaderLeavesLessTimeForTheHello(t *testing.T) {
	cert, key, _ := newCertificate(t)
	for name, flags := range map[string][]string{"plain": nil, "TLS": {"--tls.cert_file=" + cert, "--tls.key_file=" + key}} {
		n := limited(t, append(flags, "--transport.handshake_timeout=6s", "--transport.write_timeout=100ms")...)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			c := dialTCP(t, n)
			if flags != nil {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			}
			fmt.Fprintf(c, "GET /v1/ws HTTP/1.1\r\nHost: pulse\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
			time.Sleep(5 * time.Second) // that is the slow header
			fmt.Fprintf(c, "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
			if !ended(c, 20*time.Second) {
				t.Fatal("not cut")
			}
			if took := time.Since(began); took < 5900*time.Millisecond || took > 10*time.Second {
				t.Errorf("cut after %v", took)
			}
		})
	}
}
