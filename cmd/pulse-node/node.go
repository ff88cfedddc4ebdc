package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/yaza-dev/pulse/engine"
	"github.com/yaza-dev/pulse/transport/ws"
)

// node is what it takes to run one: an engine and its listeners.
type node struct {
	engine           engine.Config
	listen, internal string
	// spare: where the internal address is taken, any free port will do.
	spare            bool
	certificate      *certificate // nil: plain
	handshakeTimeout time.Duration
	drainTimeout     time.Duration
	traces           string // where they go; empty: nowhere
	// around wraps the public handler; nil: nothing.
	around func(http.Handler) http.Handler
	// reload is called for each of reloads; nil: never.
	reload  func(*engine.Engine)
	reloads <-chan os.Signal
	// ready is called when clients may come, after the line that says so; nil: nothing.
	ready func()
}

// runNode runs n until ctx ends, then drains it. It prints where n listens once
// n is ready.
func (p *program) runNode(ctx context.Context, n node) error {
	// Who reads what a node says may end before it, as a log's collector does that is
	// started anew. A line lost is no reason to cut its clients off.
	signal.Ignore(syscall.SIGPIPE)
	public, err := net.Listen("tcp", n.listen)
	if err != nil {
		return failure{err}
	}
	defer public.Close()
	internal, err := net.Listen("tcp", n.internal)
	if err != nil && n.spare {
		internal, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return failure{err}
	}
	defer internal.Close()

	reports, err := newTelemetry(ctx, n.traces, n.engine.TraceRatio, n.engine.Logger)
	if err != nil {
		return failure{err}
	}
	reports.give(&n.engine)
	e, err := engine.Start(ctx, n.engine)
	if err != nil {
		return failure{errors.Join(err, reports.close())}
	}
	handler := e.Handler()
	if n.around != nil {
		handler = n.around(handler)
	}
	servers := [2]*http.Server{n.server(handler), n.server(e.InternalHandler())}
	servers[0].ConnContext = ws.ConnContext
	servers[0].ConnState = newDoor(n.engine.Limits.MaxUnauthenticated).state
	scheme := "http"
	if n.certificate != nil {
		scheme = "https"
		servers[0].TLSConfig = n.certificate.config()
	}
	ended := make(chan error, len(servers))
	for i, listener := range [2]net.Listener{e.Listener(public), internal} {
		go func() { ended <- serveOn(servers[i], listener) }()
	}
	says := fmt.Sprintf("listening public=%s://%s internal=http://%s", scheme, reachable(public), reachable(internal))
	if _, err := fmt.Fprintln(p.stdout, says); err != nil {
		n.engine.Logger.Warn(says, "err", err)
	}
	if n.ready != nil {
		n.ready()
	}

	running := len(servers)
	var broken error
	for serving := true; serving; {
		select {
		case <-n.reloads:
			n.reload(e)
		case <-ctx.Done():
			serving = false
		case broken = <-ended:
			running--
			serving = false
		}
	}
	// The internal listener answers until the very end, so that health can be
	// watched while the node drains.
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.drainTimeout)
	defer cancel()
	servers[0].SetKeepAlivesEnabled(false) // who asks again asks another node
	err = errors.Join(broken, e.Drain(drain))
	answered, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	_ = servers[0].Shutdown(answered) // what does not end is cut
	for _, s := range servers {
		err = errors.Join(err, s.Close())
	}
	for range running {
		err = errors.Join(err, <-ended)
	}
	return asFailure(errors.Join(err, reports.close()))
}

// lastAnswers is how long answers that are made have to go out at the end.
const lastAnswers = 500 * time.Millisecond

// maxHeader bounds the headers of a request. Tokens and cookies are the largest of
// them.
const maxHeader = 32 << 10

func (n node) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: n.handshakeTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		// Over HTTP/1 the engine sees to it.
		HTTP2: &http.HTTP2Config{WriteByteTimeout: n.engine.Limits.WriteTimeout},
		// What clients do to their own connections is no news to an operator.
		ErrorLog: slog.NewLogLogger(n.engine.Logger.Handler(), slog.LevelDebug),
	}
}

// serveOn serves l until the server is closed.
func serveOn(s *http.Server, l net.Listener) error {
	var err error
	if s.TLSConfig != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// reachable returns an address of l that a client on this machine can use.
func reachable(l net.Listener) string {
	a := l.Addr().(*net.TCPAddr)
	if a.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", a.Port)
	}
	return a.String()
}

// asFailure marks err, if there is one, as nobody's wrong use.
func asFailure(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}
