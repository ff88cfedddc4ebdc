package engine

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"path"
	"time"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// Health is how an Engine is.
type Health struct {
	Ready    bool // it takes connections
	Degraded bool // it works with a restriction
	Why      string
	Since    time.Time // of Degraded
	Sessions int
	Tenants  int
}

// Health tells how the Engine is; it never waits.
func (e *Engine) Health() Health {
	e.mu.Lock()
	tenants := len(e.tenants)
	e.mu.Unlock()
	h := Health{Ready: !e.guests.areLeaving(), Sessions: int(e.sessions.Load()), Tenants: tenants}
	if b := e.broker.Health(); b.State != bridge.Up {
		h.Degraded, h.Why, h.Since = true, b.Why, b.Since
		if h.Why == "" {
			h.Why = "bridge " + b.State.String()
		}
	}
	return h
}

// watch is told how the broker is, by one goroutine at a time, and lets clients
// know. A tenant that begins meanwhile has sessions that look by themselves.
func (e *Engine) watch(h bridge.Health) {
	status := codec.Status{Live: h.State.Live()}
	if e.wasLive.Swap(status.Live) && !status.Live {
		e.counts.outages.Add(1)
	}
	if !status.Live {
		status.Reason = h.State.String()
	}
	if e.reach.Set(status) {
		for _, n := range e.all() {
			n.Notice()
		}
	}
}

// Handler serves clients: the public listener.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+socketPath, e.sockets)
	e.serveHTTP(mux)
	return e.hurry(e.proxies.around(exact(mux)))
}

const socketPath = "/v1/ws"

// Listener makes l ready for a server of the Handler, below TLS if there is any: the
// handshake's timeout counts from when a connection is accepted, and few handshakes are
// computed at once, fairly by address. The server's ConnContext has to be
// ws.ConnContext.
func (e *Engine) Listener(l net.Listener) net.Listener { return e.shaking.Listener(l) }

// InternalHandler serves operators: it must not be reachable by clients.
func (e *Engine) InternalHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch h := e.Health(); {
		case !h.Ready:
			answer(w, http.StatusServiceUnavailable, map[string]any{"status": "draining"})
		case h.Degraded:
			answer(w, http.StatusOK, map[string]any{
				"status": "degraded", "why": h.Why, "since_ms": h.Since.UnixMilli(),
			})
		default:
			answer(w, http.StatusOK, map[string]any{"status": "ok"})
		}
	})
	if e.cfg.Metrics != nil {
		mux.Handle("GET /metrics", e.cfg.Metrics)
	}
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return exact(mux)
}

// exact answers a path that is not clean like any other that does not exist. The mux
// alone would send the client on to the clean one, and repeat its query for it.
func exact(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if clean := path.Clean(r.URL.Path); r.URL.Path != clean && r.URL.Path != clean+"/" {
			transport.Refuse(w, errNoEndpoint)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that is gone is all that can fail here.
	_ = json.NewEncoder(w).Encode(body)
}
