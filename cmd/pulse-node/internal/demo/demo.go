// Package demo is the page of pulse-node dev: a chat between browser windows
// that shows what the node does when a connection is lost.
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
	// Token returns a token for one of them.
	Token func(subject string) (string, error)
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
	static := http.FileServerFS(page)
	mux := http.NewServeMux()
	for _, pattern := range []string{"GET /{$}", "GET /demo.css", "GET /client.js", "GET /page.js"} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Security-Policy", policy)
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
	token, err := p.Token(subject)
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
