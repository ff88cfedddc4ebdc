package memory

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// Options of a link. The zero value is that of a well-behaved client.
type Options struct {
	Window          int           // bytes on their way, each way, beyond which the sender waits or parks; 64 KiB
	MaxMessageBytes int           // a longer message closes the link with CauseTooLarge; 64 KiB
	WriteTimeout    time.Duration // for a parked write and for the answer to a close; 10 s
	Header          http.Header   // of the request that the Acceptor sees
	Remote          netip.Addr    // likewise; 127.0.0.1
}

func (o Options) withDefaults() Options {
	if o.Window == 0 {
		o.Window = 64 << 10
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = 64 << 10
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if !o.Remote.IsValid() {
		o.Remote = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return o
}

// CloseError is how a link ended, as its client saw it. Code 1006 stands for a
// link that broke off without a close.
type CloseError struct {
	Code   uint16
	Reason string
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("memory: closed %d %q", e.Code, e.Reason)
}

// Client is the client's end of a link. Send, Recv, Close and Cut may be called
// by different goroutines at once; two Recv at once share the messages.
type Client struct {
	link    *link
	refused *codec.Error // immutable; the Acceptor's refusal, then link is nil
	done    chan struct{}
}

// Dial makes a link that speaks protocol and hands its server end to a. Where a
// refuses it, every call of the Client returns that *codec.Error.
func Dial(a transport.Acceptor, protocol codec.Protocol, o Options) *Client {
	o = o.withDefaults()
	r := request(o)
	c := &Client{done: make(chan struct{})}
	if c.refused = a.Admit(r); c.refused != nil {
		close(c.done)
		return c
	}
	c.link = newLink(FramingOf(protocol), o)
	go func() {
		defer close(c.done)
		c.link.read(a, transport.NewRequest(r))
	}()
	return c
}

func request(o Options) *http.Request {
	header := o.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Request{
		Method: http.MethodGet, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Host: "memory", URL: &url.URL{Path: "/v1/ws"}, RequestURI: "/v1/ws",
		Header: header, Body: http.NoBody,
		RemoteAddr: netip.AddrPortFrom(o.Remote, 1).String(),
	}
}

// Send sends one message of the protocol's kind. It waits while the window is
// full, that is, while the server does not read.
func (c *Client) Send(doc []byte) error {
	if c.refused != nil {
		return c.refused
	}
	return c.link.send(doc, c.link.framing.Protocol.Binary())
}

// SendKind is Send with the kind of message chosen, also the wrong one.
func (c *Client) SendKind(doc []byte, binary bool) error {
	if c.refused != nil {
		return c.refused
	}
	return c.link.send(doc, binary)
}

// Recv returns the next document. After the last one it returns *CloseError,
// and in doing so answers the server's close.
func (c *Client) Recv(ctx context.Context) ([]byte, error) {
	if c.refused != nil {
		return nil, c.refused
	}
	return c.link.recv(ctx)
}

// Close sends a close with this code behind what was sent, and does not wait.
func (c *Client) Close(code uint16) {
	if c.link != nil {
		c.link.peerClose(code)
	}
}

// Cut breaks the link off, as a pulled cable would; what is on its way is lost.
func (c *Client) Cut() {
	if c.link != nil {
		c.link.cut(codec.CauseAbrupt, transport.ErrClosed)
	}
}

// Done is closed when Receiver.Closed has returned, or the link was refused.
func (c *Client) Done() <-chan struct{} { return c.done }
