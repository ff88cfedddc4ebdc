package auth

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// named is a token of p whose header names id.
func (p pair) named(id string) string {
	return p.token(fmt.Sprintf(`{"alg":%q,"kid":%q}`, p.alg, id), claims(""))
}

// issuer is an endpoint with a key set, and a JWT that fetches from it by a clock
// that the test moves.
type issuer struct {
	*JWT
	server  *httptest.Server
	fetches atomic.Int32
	skipped atomic.Int64 // what the clock has been moved by
	log     bytes.Buffer // read when nothing is fetched any more

	mu     sync.Mutex
	answer http.HandlerFunc
}

func newIssuer(t *testing.T, keys string, change func(*JWTConfig)) *issuer {
	is := &issuer{}
	is.serve(keys)
	is.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" { // where no redirect leads
			is.fetches.Add(1)
		}
		is.mu.Lock()
		answer := is.answer
		is.mu.Unlock()
		answer(w, r)
	}))
	is.JWT = newJWT(t, func(c *JWTConfig) {
		c.Keys = nil
		c.JWKS = JWKSConfig{URL: is.server.URL + "/keys", Logger: slog.New(slog.NewTextHandler(&is.log, nil))}
		c.Now = func() time.Time { return now.Add(time.Duration(is.skipped.Load())) }
		if change != nil {
			change(c)
		}
	})
	t.Cleanup(func() {
		is.Close()
		is.server.Close()
		goleak.VerifyNone(t)
	})
	return is
}

func (is *issuer) handle(answer http.HandlerFunc) {
	is.mu.Lock()
	is.answer = answer
	is.mu.Unlock()
}

func (is *issuer) serve(keys string) {
	is.handle(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, keys) })
}

func (is *issuer) skip(d time.Duration) { is.skipped.Add(int64(d)) }

// settle waits until no fetch is under way.
func (is *issuer) settle() { is.set.fetches.Wait() }

func (is *issuer) want(t *testing.T, rule, token string, want error, fetches int32) {
	t.Helper()
	err := authenticate(is.JWT, token)
	is.settle()
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", rule, err, want)
	}
	if n := is.fetches.Load(); n != fetches {
		t.Errorf("%s: %d fetches, want %d", rule, n, fetches)
	}
}

func TestKeySetVerifiesEveryAlgorithm(t *testing.T) {
	for _, alg := range []string{RS256, ES256, EdDSA} {
		t.Run(alg, func(t *testing.T) {
			p := pairs()[alg]
			is := newIssuer(t, set(
				p.jwk(`"kid":"a","use":"sig","alg":"`+alg+`","key_ops":["verify"],"x5t":"ignored"`),
				pairs()["other "+alg].jwk(`"kid":"b"`)), nil)
			is.want(t, "named", p.named("a"), nil, 1)
			is.want(t, "without a name", p.plain(), nil, 1)
			is.want(t, "under another's name", p.named("b"), ErrUnauthenticated, 1)
		})
	}
}

func TestKeySetIsKeptAndRefreshed(t *testing.T) {
	first, second := pairs()[ES256], pairs()["other "+ES256]
	is := newIssuer(t, set(first.jwk("")), func(c *JWTConfig) { c.JWKS.Refresh = 30 * time.Second })
	is.want(t, "the first token fetches", first.plain(), nil, 1)
	is.serve(set(second.jwk("")))
	is.skip(29 * time.Second)
	is.want(t, "not before its time", first.plain(), nil, 1)
	is.skip(time.Second)
	// Whose token makes the set be fetched again is still judged by the old one.
	_ = authenticate(is.JWT, first.plain())
	is.settle()
	is.want(t, "the new set is there", second.named("x"), nil, 2)
	is.want(t, "the old key is gone", first.plain(), ErrUnauthenticated, 2)
	// Keys without names are for any token, so a name that none has is no reason
	// to look for more.
	is.skip(fetchPause)
	is.want(t, "keys without names", second.named("y"), nil, 2)
}

func TestUnknownKidFetchesOnceAndNotAgainForAWhile(t *testing.T) {
	first, second := pairs()[ES256], pairs()["other "+ES256]
	is := newIssuer(t, set(first.jwk(`"kid":"1"`)), nil)
	is.want(t, "first use", first.named("1"), nil, 1)
	is.serve(set(first.jwk(`"kid":"1"`), second.jwk(`"kid":"2"`)))
	is.want(t, "too early", second.named("2"), ErrUnauthenticated, 1)
	is.skip(fetchPause)
	is.want(t, "the issuer's new key", second.named("2"), nil, 2)
	is.want(t, "and the old one", first.named("1"), nil, 2)
	for i := range 100 {
		is.want(t, "a stranger's", second.named(fmt.Sprint("stranger ", i)), ErrUnauthenticated, 2)
	}
	is.skip(fetchPause - time.Nanosecond)
	is.want(t, "a stranger's, just too early", second.named("3"), ErrUnauthenticated, 2)
	is.skip(time.Nanosecond)
	is.want(t, "a stranger's, later", second.named("3"), ErrUnauthenticated, 3)
}

func TestTokensThatNoSetCouldVerifyFetchNothing(t *testing.T) {
	p := pairs()[ES256]
	is := newIssuer(t, set(p.jwk("")), func(c *JWTConfig) {
		c.Keys = []Key{{Alg: HS256, ID: "own", Secret: secret}, {Alg: HS256, Secret: secret}, {Alg: ES256, ID: "mine", PEM: p.public}}
	})
	is.want(t, "HMAC", hs256(plain, claims("")), nil, 0)
	is.want(t, "HMAC with an unknown name", hs256(`{"alg":"HS256","kid":"x"}`, claims("")), nil, 0)
	is.want(t, "a key that is configured", p.named("mine"), nil, 0)
	is.want(t, "another's by that name", pairs()["other "+ES256].named("mine"), ErrUnauthenticated, 0)
	is.want(t, "none", forge(`{"alg":"none","kid":"x"}`, claims(""), nil, nil), ErrUnauthenticated, 0)
	is.want(t, "an algorithm that no key is for", pair{alg: "PS256", private: pairs()[RS256].private}.named("x"), ErrUnauthenticated, 0)
	is.want(t, "no token", "a.b.c", ErrUnauthenticated, 0)
}

func TestKeysStayWhileTheEndpointIsDown(t *testing.T) {
	first, second := pairs()[ES256], pairs()["other "+ES256]
	for name, broken := range brokenAnswers() {
		t.Run(name, func(t *testing.T) {
			is := newIssuer(t, set(first.jwk(`"kid":"1"`)), nil)
			is.want(t, "first use", first.named("1"), nil, 1)
			is.handle(broken)
			is.skip(24 * time.Hour)
			is.JWT.validator = newJWT(t, nil).validator // tokens stay good, only the set grows old
			is.want(t, "the set is old", first.named("1"), nil, 2)
			is.want(t, "and not asked for all the time", first.named("1"), nil, 2)
			is.want(t, "the new key may be in the set that cannot be had", second.named("2"), errNoKeys, 2)
			is.serve(set(second.jwk(`"kid":"2"`)))
			is.skip(fetchPause)
			is.want(t, "it is back", second.named("2"), nil, 3)
			is.want(t, "and the old key gone", first.named("1"), ErrUnauthenticated, 3)
			is.Close()
			if !strings.Contains(is.log.String(), "key set not fetched") {
				t.Error("nobody is told that the endpoint is down")
			}
		})
	}
}

// brokenAnswers are what endpoints say that is no key set.
func brokenAnswers() map[string]http.HandlerFunc {
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, s) }
	}
	symmetric := `{"kty":"oct","kid":"2","k":"` + base64.RawURLEncoding.EncodeToString(secret) + `"}`
	return map[string]http.HandlerFunc{
		"500":                     func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"404 with a set":          func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound); fmt.Fprint(w, set()) },
		"a page":                  text("<html>sign in</html>"),
		"another object":          text(`{"error":"x"}`),
		"keys of the wrong type":  text(`{"keys":{"kty":"RSA"}}`),
		"keys twice":              text(`{"keys":[],"keys":[]}`),
		"a list":                  text(`[]`),
		"nothing":                 text(``),
		"cut short":               text(`{"keys":[`),
		"no key that can be used": text(set(symmetric)),
		"huge":                    text(`{"pad":"` + strings.Repeat("x", maxSetBytes) + `","keys":[]}`),
		"too many keys":           text(set(slices.Repeat([]string{pairs()[EdDSA].jwk("")}, maxSetKeys+1)...)),
		"a broken connection":     func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
		"redirected in a circle":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
		"redirected to file": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		},
		"redirected to a neighbour": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1"+r.URL.Path, http.StatusFound)
		},
	}
}

func TestRedirectWithinTheHostIsFollowed(t *testing.T) {
	p := pairs()[ES256]
	is := newIssuer(t, "", nil)
	is.handle(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			http.Redirect(w, r, "/moved", http.StatusFound)
			return
		}
		fmt.Fprint(w, set(p.jwk("")))
	})
	is.want(t, "moved", p.plain(), nil, 1)
}

func TestRedirectsEnd(t *testing.T) {
	var asked atomic.Int32
	is := newIssuer(t, "", nil)
	is.handle(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	is.want(t, "in a circle", pairs()[ES256].plain(), errNoKeys, 1)
	if n := asked.Load(); n != 4 {
		t.Errorf("%d requests", n)
	}
}

func TestRedirectToAnotherHostIsNotFollowed(t *testing.T) {
	p := pairs()[ES256]
	reached := false
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = true
		fmt.Fprint(w, set(p.jwk("")))
	}))
	defer evil.Close()
	is := newIssuer(t, "", nil)
	is.handle(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, evil.URL, http.StatusFound) })
	is.want(t, "redirected", p.plain(), errNoKeys, 1)
	evil.Close()
	if reached {
		t.Error("followed")
	}
}

func TestConcurrentFirstUseIsOneFetch(t *testing.T) {
	p := pairs()[EdDSA]
	is := newIssuer(t, "", nil)
	asked, let := make(chan struct{}, 50), make(chan struct{})
	is.handle(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-let
		fmt.Fprint(w, set(p.jwk(`"kid":"1"`)))
	})
	const clients = 50
	answers := make(chan error, clients)
	token := p.named("1")
	for range clients {
		go func() { answers <- authenticate(is.JWT, token) }()
	}
	<-asked
	is.skip(fetchPause) // enough for another one, if this one were not under way
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := is.Authenticate(ended, Credentials{Token: token}); !errors.Is(err, context.Canceled) {
		t.Errorf("who cannot wait: %v", err)
	}
	close(let)
	for range clients {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	is.settle()
	if n := is.fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// B106: what cannot be verified does not hold a connection longer than its
// deadline (reearth/ygo#47).
func TestB106_AKeyEndpointThatHangsHoldsNobody(t *testing.T) {
	known, unknown := pairs()[ES256], pairs()["other "+ES256]
	is := newIssuer(t, set(known.jwk(`"kid":"1"`)), nil)
	is.want(t, "first use", known.named("1"), nil, 1)
	asked := make(chan struct{}, 10)
	is.handle(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"keys":[`)
		w.(http.Flusher).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
	})
	is.skip(fetchPause)
	ctx, cancel := context.WithCancel(context.Background())
	answer := make(chan error)
	go func() {
		_, err := is.Authenticate(ctx, Credentials{Token: unknown.named("2")})
		answer <- err
	}()
	<-asked
	if err := authenticate(is.JWT, known.named("1")); err != nil {
		t.Errorf("a key that is there waits for one that is not: %v", err)
	}
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnauthenticated) {
		t.Errorf("at its deadline: %v", err)
	}
	is.Close() // ends the fetch; goleak sees that nothing is left
	if is.fetches.Load() != 2 {
		t.Errorf("%d fetches", is.fetches.Load())
	}
	is.skip(time.Hour)
	tried := is.set.tried
	if err := authenticate(is.JWT, known.named("1")); !errors.Is(err, ErrUnauthenticated) { // it has expired
		t.Error(err)
	}
	if err := authenticate(is.JWT, unknown.named("2")); !errors.Is(err, errNoKeys) || is.set.tried != tried {
		t.Errorf("after Close: %v, and a fetch is begun %v", err, is.set.tried != tried)
	}
}

func TestHangingFetchEndsByItself(t *testing.T) {
	p := pairs()[ES256]
	is := newIssuer(t, "", nil)
	is.set.timeout = 20 * time.Millisecond
	is.handle(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	is.want(t, "hanging", p.plain(), errNoKeys, 1)
	is.want(t, "not asked again at once", p.plain(), errNoKeys, 1)
	is.serve(set(p.jwk("")))
	is.skip(fetchPause)
	is.want(t, "asked again", p.plain(), nil, 2)
}

// Once the endpoint has failed, tokens that name keys which nobody has do not all wait
// for it: each holds one of few places in which tokens are judged.
func TestOneWaitsForAnEndpointThatFailed(t *testing.T) {
	known, unknown := pairs()[ES256], pairs()["other "+ES256]
	is := newIssuer(t, set(known.jwk(`"kid":"1"`)), nil)
	is.want(t, "first use", known.named("1"), nil, 1)
	is.handle(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	is.skip(fetchPause)
	is.want(t, "it fails", unknown.named("2"), errNoKeys, 2)

	is.set.timeout = time.Minute
	asked, answer := make(chan struct{}), make(chan struct{})
	is.handle(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		fmt.Fprint(w, set(unknown.jwk(`"kid":"2"`)))
	})
	is.skip(fetchPause)
	began := make(chan error)
	go func() { began <- authenticate(is.JWT, unknown.named("2")) }()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := is.Authenticate(ctx, Credentials{Token: unknown.named("2")}); !errors.Is(err, errNoKeys) {
		t.Errorf("who comes while it is asked again: %v", err)
	}
	close(answer)
	if err := <-began; err != nil {
		t.Errorf("who has made it be asked again: %v", err)
	}
	is.want(t, "then", unknown.named("2"), nil, 3)
}

func TestKeySetFaults(t *testing.T) {
	for url, want := range map[string]string{
		"keys":                          "takes https://host/path",
		"https://":                      "takes https://host/path",
		"http://issuer.example/keys":    "takes https, or http to this machine",
		"http://127.evil.example/keys":  "takes https, or http to this machine",
		"http://localhost.evil/keys":    "takes https, or http to this machine",
		"http://10.0.0.1/keys":          "takes https, or http to this machine",
		"ftp://issuer.example/keys":     "takes https, or http to this machine",
		"file:///etc/passwd":            "takes https://host/path",
		"https://u:p@issuer.example/k":  "has a user",
		"https://issuer.example/\x00":   "takes https://host/path",
		"https://issuer.example/keys":   "",
		"http://localhost:8080/keys":    "",
		"http://127.0.0.1/keys":         "",
		"http://[::1]:80/keys?p=policy": "",
	} {
		_, err := NewJWT(JWTConfig{JWKS: JWKSConfig{URL: url}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	if _, err := NewJWT(JWTConfig{JWKS: JWKSConfig{URL: "https://issuer.example", Refresh: -1}}); err == nil {
		t.Error("a negative refresh")
	}
}
