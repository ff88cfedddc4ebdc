package engine

import (
	"net/http"

	"github.com/yaza-dev/pulse/transport"
)

// shareWith lets the page of an accepted Origin read the answer, credentials
// included.
func shareWith(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Origin")
	if origin := r.Header.Get("Origin"); origin != "" {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
	}
}

// preflight answers a browser that asks before it sends a request of another
// origin.
func (e *Engine) preflight(w http.ResponseWriter, r *http.Request) {
	if err := e.admission.judge(r); err != nil {
		transport.Refuse(w, err)
		return
	}
	shareWith(w, r)
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
	w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Pulse-Session")
	w.Header().Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
