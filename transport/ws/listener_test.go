package ws

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
)

// tap keeps what was read.
type tap struct {
	net.Conn
	mu   sync.Mutex
	read bytes.Buffer // guarded by mu
}

func (c *tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read.Write(p[:n])
	return n, err
}

func (c *tap) seen(b []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.read.Bytes(), b)
}

// TLS answers key updates while it reads; that must not wait for the next Write.
func TestRecordsOfTLSGoOutByThemselves(t *testing.T) {
	a := newHall()
	site := serve(t, sides[1], Config{Acceptor: a})
	raw, err := net.Dial("tcp", site.addr)
	if err != nil {
		t.Fatal(err)
	}
	below := &tap{Conn: raw}
	c := tls.Client(below, &tls.Config{InsecureSkipVerify: true})
	t.Cleanup(func() { _ = raw.Close() })
	if _, err := io.WriteString(c, handshake+"\r\n"); err != nil {
		t.Fatal(err)
	}
	g := soon(t, a.guests, "Accept")
	held := g.conn.socket.tls.held
	if n, err := held.Write([]byte("record of TLS")); n != 13 || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
	go func() { _, _ = io.Copy(io.Discard, c) }() // ends with the connection
	if _, err := c.Write(clientFrame(0x81, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	soon(t, g.messages, "the message")
	waitFor(t, "the record", func() bool { return below.seen([]byte("record of TLS")) })
}

func TestRecordsOfTLSAreBounded(t *testing.T) {
	below := new(script)
	h := &heldConn{Conn: below, arrival: newArrival(below, new(Handshakes))}
	h.hold()
	write := func(n int) error {
		_, err := h.Write(make([]byte, n))
		return err
	}
	if err := write(maxOwnRecords); err != nil {
		t.Fatal(err)
	}
	if err := write(1); err == nil {
		t.Error("TLS may keep as much as it likes")
	}
	if b := h.take(); len(*b) != maxOwnRecords || h.waiting() {
		t.Errorf("%d bytes were kept", len(*b))
	}
	h.permit(64 << 10)
	if err := write(64<<10 + maxOwnRecords); err != nil {
		t.Errorf("a write beside TLS's own records: %v", err)
	}
}

// A TLS client can tell the end of a connection from a cut.
func TestEndOfTLSIsSaid(t *testing.T) {
	for _, side := range sides {
		if !side.tls {
			continue
		}
		t.Run(side.name, func(t *testing.T) {
			a := newHall()
			raw, err := net.Dial("tcp", serve(t, side, Config{Acceptor: a}).addr)
			if err != nil {
				t.Fatal(err)
			}
			below := &tap{Conn: raw}
			c := tls.Client(below, &tls.Config{InsecureSkipVerify: true})
			t.Cleanup(func() { _ = raw.Close() })
			w := &wire{t, c, bufio.NewReader(c)}
			w.upgrade(clientClose(1000, ""))
			if got, want := w.rest(), closeFrame(1000, ""); !bytes.Equal(got, want) {
				t.Errorf("sent % X, want % X", got, want)
			}
			// Go's client takes an end without the alert too. An alert of TLS 1.3 is a
			// record of 19 bytes, which nothing else here is.
			if !below.seen([]byte{0x17, 0x03, 0x03, 0x00, 0x13}) {
				t.Error("no alert ended the stream")
			}
		})
	}
}
