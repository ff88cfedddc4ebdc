// Package demo is the page of pulse-node dev: rooms with a chat, presence and
// live cursors between browser windows, which shows what the node does when a
// connection is lost, and when somebody reads too slowly.
//
// Page.Handler serves the page's own files and the tokens it asks for, and hands
// every other request on. Tokens go to the page's own origin only. The package
// keeps no state and starts no goroutine.
package demo

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"time"
)

//go:embed page
var files embed.FS

// policy lets the page load and reach its own origin, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Page is the demo page of one node.
type Page struct {
	// Subjects may be chosen on the page.
	Subjects []string
	// Token returns a token for one of them that is good for so long, at most Life.
	Token func(subject string, life time.Duration) (string, error)
	Life  time.Duration
	// AnyHost serves the page under any name. Otherwise only under names of
	// this machine, so that no web site can reach it by pointing its own name here.
	AnyHost bool
}

// Handler serves the page at / and passes what is not the page's to next.
func (p Page) Handler(next http.Handler) http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	names, err := fs.Glob(page, "*")
	if err != nil {
		panic(err)
	}
	static := http.FileServerFS(page)
	mux := http.NewServeMux()
	for _, name := range append(names, "{$}") {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Security-Policy", policy)
			// Alone in its process, the page may share memory with its worker.
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
			h.Set("Cross-Origin-Embedder-Policy", "require-corp")
			h.Set("Cache-Control", "no-cache")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("X-Content-Type-Options", "nosniff")
			static.ServeHTTP(w, r)
		})
	}
	mux.HandleFunc("GET /demo/token/{subject}", p.serveToken)
	mux.Handle("/", next)
	return mux
}

func (p Page) serveToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" && site != "none" || !p.AnyHost && !isLocal(r.Host) {
		http.Error(w, "tokens are for the demo page", http.StatusForbidden)
		return
	}
	subject := r.PathValue("subject")
	if !slices.Contains(p.Subjects, subject) {
		http.NotFound(w, r)
		return
	}
	life := p.Life
	if text := r.URL.Query().Get("ttl"); text != "" {
		asked, err := time.ParseDuration(text)
		if err != nil || asked <= 0 || asked > p.Life {
			http.Error(w, "ttl is a duration such as 30s", http.StatusBadRequest)
			return
		}
		life = asked
	}
	token, err := p.Token(subject, life)
	if err != nil {
		http.Error(w, "no token", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]string{"token": token})
}

// isLocal reports whether the Host header names this machine by itself.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
