package engine

import (
	"context"
	"net/http"
	"time"

	"github.com/yaza-dev/pulse/transport/ws"
)

// hurry gives each request the time that a handshake has: counted from when its
// connection was accepted, if it is the first there and came through Listener, else
// from now. An upgrade has to be a session by then. Of other requests the body has to
// be there, whatever becomes of them: the server reads also that of one that was
// refused, and who sends it slowly would hold a connection for as long as they like.
// Once it is read the time is no more: an answer may take longer, but not the client to
// take it.
func (e *Engine) hurry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		due, ok := ws.Arrived(r.Context())
		if !ok {
			due = time.Now().Add(e.cfg.Limits.HandshakeTimeout)
		}
		if r.Body != nil && r.Body != http.NoBody {
			// Fails for what is no connection, such as a test's recorder.
			_ = http.NewResponseController(w).SetReadDeadline(due)
		}
		if r.URL.Path == socketPath {
			ctx, cancel := context.WithDeadline(r.Context(), due)
			defer cancel()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(answering{w, e.cfg.Limits.WriteTimeout}, r)
	})
}

// answering is an answer that is given up when the client takes nothing of it for as long
// as timeout: who never reads would hold its connection, and a goroutine, for ever.
type answering struct {
	http.ResponseWriter
	timeout time.Duration
}

// Unwrap lets http.ResponseController through, to upgrade the connection too.
func (a answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a answering) WriteHeader(status int) {
	a.begin()
	a.ResponseWriter.WriteHeader(status)
}

func (a answering) Write(b []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(b)
}

// begin sets the deadline of what is written next, which the server may keep until the
// request is done. That for one answer does not outlive it.
func (a answering) begin() {
	// Fails as SetReadDeadline does.
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.timeout))
}
