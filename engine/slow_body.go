package engine

import (
	"net/http"
	"time"
)

// boundBodies gives the body of each request as long as a hello may take, whatever
// becomes of the request: the server reads also that of one that was refused, and
// who sends it slowly would hold a connection for as long as they like. Once it is
// read the time is no more: an answer may take longer.
func (e *Engine) boundBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			// Fails for what is no connection, such as a test's recorder.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(e.cfg.Limits.HandshakeTimeout))
		}
		next.ServeHTTP(w, r)
	})
}
