package transport

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Acceptor decides about new connections. Every Admit that returned nil is
// followed by exactly one Accept or one Abandon, so that what Admit reserved is
// either used or given back. Calls come from many goroutines at once.
type Acceptor interface {
	// Admit is asked before the upgrade, on the HTTP server's goroutine: origin,
	// credentials, caps, draining. A refusal is answered by Refuse.
	Admit(r *http.Request) *codec.Error

	// Accept takes the connection over, on its reader goroutine, before anything is
	// read from it. It may already write to c or close it.
	Accept(c Conn, r Request) Receiver

	// Abandon takes an admission back: the client was gone before its connection
	// was made, or spoke no protocol.
	Abandon(r *http.Request)
}

// Request is what stays known of the HTTP request that became a connection.
type Request struct {
	Header   http.Header // Host and the headers that an Acceptor may judge by (see NewRequest)
	Remote   netip.Addr  // the socket's other end; not valid for transports without addresses
	Held     int         // bytes that the connection holds beside its messages, for as long as it lives
	Deadline time.Time   // of the handshake, hello included; zero: the Acceptor's own
}

// keptHeaders are what authenticators, origin rules and logs of a session need.
// The rest of a browser's headers, over a kilobyte, is let go with the request:
// it would stay in memory as long as the connection.
var keptHeaders = [...]string{
	"Authorization", "Cookie", "Origin", "User-Agent",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip",
	"Sec-Fetch-Site",
}

// NewRequest keeps of r what a Request has, sharing nothing with r. The deadline of its
// context, if it has one, is that of the handshake. The host, which net/http moves out of
// the headers, is in Header as "Host".
func NewRequest(r *http.Request) Request {
	kept := make(http.Header, 4)
	if r.Host != "" {
		kept.Set("Host", r.Host)
	}
	for _, name := range keptHeaders {
		if values := r.Header[name]; len(values) > 0 {
			kept[name] = append([]string(nil), values...)
		}
	}
	var remote netip.Addr
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		remote = at.Addr().Unmap()
	}
	deadline, _ := r.Context().Deadline()
	return Request{Header: kept, Remote: remote, Deadline: deadline}
}
