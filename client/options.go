package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Bound limits what waits, in items and in bytes. A zero field is its default. A
// single item is always taken, however large.
type Bound struct{ Items, Bytes int }

// Options say where to connect, and as whom. Only URL is needed.
type Options struct {
	// URL is the node's: ws, wss, http or https. Without a path it gets /v1/ws. It
	// never holds credentials.
	URL string
	// Token returns the credentials. It is asked before the first connection, when
	// the server says that they end or have ended, and once per welcome when it
	// refuses them. It runs on a goroutine of the client and returns when ctx ends.
	// An error is as good as a lost connection: it is asked again later. One that
	// wraps ErrClosed closes the client for good. nil: no token.
	Token func(ctx context.Context) (string, error)
	// Codec of the connection [JSON].
	Codec codec.Codec
	// Name tells the server what program this is, in at most 128 bytes.
	Name string
	// HTTPClient makes the connections: TLS, proxies, addresses [one of its own
	// with Go's defaults]. Redirects are not followed, for the token would be told
	// to whoever they point at.
	HTTPClient *http.Client
	// Header is sent with each attempt, for what stands between.
	Header http.Header
	// Timeout bounds each stage by itself: the token, the upgrade, the welcome,
	// each write [10 s].
	Timeout time.Duration
	// Requests bounds what waits for a connection, or for others to be answered
	// [1,024 items, 4 MiB]. Beyond, requests fail with ErrFull.
	Requests Bound
	// DropOldest lets a publish that finds Requests full take the place of the one
	// that has waited longest, which fails with ErrDropped.
	DropOldest bool
	// Events bounds what waits in each Subscription [256 items, 4 MiB]; see Gap.
	Events Bound
	// OnStatus, if set, hears of every change of the connection, in order, on a
	// goroutine of its own. While it is busy only the newest change is kept. It may
	// call every method of the Client.
	OnStatus func(Status)
	// OnFrame, if set, is shown every frame that comes, as it came, before anything is
	// done about it: for tools. It runs on the reader's goroutine, so that nothing is
	// read while it does not return; it must not call the Client.
	OnFrame func(frame []byte)
}

// Status is where the connection stands.
type Status struct {
	State State
	// Session is what the last welcome said.
	Session Session
	// Live is false while events from other nodes may be late; nothing is lost
	// unannounced.
	Live bool
	// Err is why the last connection ended; when Connected, why credentials could not
	// be renewed; when Closed, why for good.
	Err error
	// Wait, when Waiting, is how long until the next attempt.
	Wait time.Duration
}

// Session is what the server said of this client.
type Session struct {
	ID, Tenant, Subject, Node string
	Resumed                   bool      // the same session as before the connection was lost
	Expires                   time.Time // of the credentials, by this machine's clock; zero: not known
}

// prepare fills the defaults in and reports every fault at once.
func (o *Options) prepare() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("client: "+format, args...)) }
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		fault("URL cannot be read") // its text may hold what no log should
	case u.Host == "":
		fault("URL has no host")
	case u.User != nil:
		fault("URL holds credentials; Token is their place")
	default:
		switch u.Scheme {
		case "ws", "wss", "http", "https":
		default:
			fault("the scheme %q of URL is none of ws, wss, http, https", u.Scheme)
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/ws"
		}
		o.URL = u.String()
	}
	if o.Codec != codec.JSON && o.Codec != codec.Msgpack {
		fault("there is no codec %d", o.Codec)
	}
	if len(o.Name) > 128 {
		fault("Name is over 128 bytes")
	}
	if o.Timeout < 0 || min(o.Requests.Items, o.Requests.Bytes, o.Events.Items, o.Events.Bytes) < 0 {
		fault("Timeout or a bound is negative")
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	o.Requests.defaults(1024, 4<<20)
	o.Events.defaults(256, 4<<20)
	o.HTTPClient = o.httpClient()
	return errors.Join(faults...)
}

func (b *Bound) defaults(items, bytes int) {
	if b.Items == 0 {
		b.Items = items
	}
	if b.Bytes == 0 {
		b.Bytes = bytes
	}
}

func (o *Options) httpClient() *http.Client {
	c := &http.Client{}
	if o.HTTPClient != nil {
		*c = *o.HTTPClient
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableKeepAlives = true // a refused attempt leaves no connection behind
		c.Transport = t
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}
