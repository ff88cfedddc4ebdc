package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// JWKSConfig says where a JSON Web Key Set is fetched. Its keys count like those
// that are configured.
type JWKSConfig struct {
	// URL is https, or http to this machine itself; empty: none.
	URL string
	// Refresh is how old the set becomes before it is fetched again; 0: 10 minutes.
	Refresh time.Duration
	// Logger is told when a set cannot be fetched; nil: nobody is.
	Logger *slog.Logger
}

const (
	defaultRefresh = 10 * time.Minute
	// fetchPause is the least time between two fetches, whatever strangers send:
	// a key that the issuer has just begun to use is known after that long.
	fetchPause   = 5 * time.Second
	fetchTimeout = 5 * time.Second
	maxSetBytes  = 256 << 10
)

// errNoKeys says that a token cannot be judged now.
var errNoKeys = errors.New("auth: the key set is not available")

func (c JWKSConfig) validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "":
		return errors.New("auth: the key set's URL is none; it takes https://host/path")
	case u.User != nil:
		return errors.New("auth: the key set's URL has a user; it takes none")
	case !fetchable(u):
		return errors.New("auth: the key set's URL takes https, or http to this machine itself")
	case c.Refresh < 0:
		return errors.New("auth: a negative refresh of the key set")
	}
	return nil
}

func fetchable(u *url.URL) bool {
	host := u.Hostname()
	return u.Scheme == "https" || u.Scheme == "http" && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// keySet is a set of keys elsewhere: fetched when it is first asked for, again
// when it has become old or a token names a key that it does not have, and kept
// as it is while it cannot be fetched. One fetch is under way at most, on a
// goroutine of its own which ends with it; nobody waits for it who can do with
// the keys that are there.
type keySet struct {
	// Immutable.
	url     string
	refresh time.Duration
	timeout time.Duration
	now     func() time.Time
	log     *slog.Logger
	client  *http.Client
	live    context.Context // of every fetch, ended by close
	close   context.CancelFunc

	fetches sync.WaitGroup // the goroutine of the fetch under way

	// Guarded by mu.
	mu      sync.Mutex
	keys    keyring       // of the last good answer
	fetched time.Time     // when it was asked for; zero: there was none
	tried   time.Time     // when the last fetch began; zero: none has
	failed  bool          // the last fetch
	flight  chan struct{} // closed when the fetch under way ends; nil: none is
}

func newKeySet(c JWKSConfig, now func() time.Time) *keySet {
	s := &keySet{
		url: c.URL, refresh: c.Refresh, timeout: fetchTimeout, now: now, log: c.Logger,
		client: &http.Client{
			CheckRedirect: sameHost,
			Transport: &http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				DisableKeepAlives:      true, // one request in minutes: nothing stays open
				MaxResponseHeaderBytes: 64 << 10,
			},
		},
	}
	if s.refresh == 0 {
		s.refresh = defaultRefresh
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.live, s.close = context.WithCancel(context.Background())
	return s
}

// sameHost lets a redirect go no further than the host that was configured.
func sameHost(to *http.Request, from []*http.Request) error {
	if to.URL.Host != from[0].URL.Host || to.URL.Scheme != from[0].URL.Scheme {
		return errors.New("auth: the key set is redirected to another host")
	}
	if len(from) > 3 {
		return errors.New("auth: the key set is redirected too often")
	}
	return nil
}

// find returns the keys to judge a token by that names id, or none. It waits, as
// long as ctx allows, only when there is no set yet, or when a fetch may bring
// the key that is named. After one that failed nobody waits for the next but who
// began it: those who wait keep places that others need, and strangers can name any
// key. Its error is ctx's or errNoKeys; the keys that are there come all the same.
func (s *keySet) find(ctx context.Context, id string) (keyring, error) {
	s.mu.Lock()
	begun := (s.lacks(id) || s.now().Sub(s.fetched) >= s.refresh) && s.fetch()
	keys, lacks, flight, wait := s.keys, s.lacks(id), s.flight, begun || !s.failed
	s.mu.Unlock()
	if !lacks {
		return keys, nil
	}
	if flight != nil && wait {
		select {
		case <-flight:
		case <-ctx.Done():
			return keys, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lacks(id) && s.failed { // the key may be in the set that could not be had
		return s.keys, errNoKeys
	}
	return s.keys, nil
}

// lacks reports whether there is no set, or one that names its keys and has none
// of this name.
func (s *keySet) lacks(id string) bool {
	return s.fetched.IsZero() || id != "" && !s.keys.names(id) && !s.keys.names("")
}

// fetch begins a fetch, and reports so, unless one is under way or has been just now.
func (s *keySet) fetch() bool {
	now := s.now()
	if s.flight != nil || s.live.Err() != nil || !s.tried.IsZero() && now.Sub(s.tried) < fetchPause {
		return false
	}
	s.tried = now
	s.flight = make(chan struct{})
	s.fetches.Go(func() {
		keys, err := s.get()
		if err != nil && s.live.Err() == nil {
			s.log.Warn("key set not fetched", "url", s.url, "err", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = err != nil
		if err == nil {
			s.keys, s.fetched = keys, now
		}
		close(s.flight)
		s.flight = nil
	})
	return true
}

func (s *keySet) get() (keyring, error) {
	ctx, cancel := context.WithTimeout(s.live, s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("auth: the key set's answer has status %d", resp.StatusCode)
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxSetBytes))
	if err != nil {
		return nil, fmt.Errorf("auth: the key set cannot be read, of at most %d bytes: %w", maxSetBytes, err)
	}
	return parseKeySet(text)
}

// end gives a fetch under way up, and begins no other. What was fetched stays.
func (s *keySet) end() {
	s.mu.Lock() // so that no fetch is begun while end waits
	s.close()
	s.mu.Unlock()
	s.fetches.Wait()
}
