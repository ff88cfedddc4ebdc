package redis_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/tests/redis/server"
)

// renewAt asks a host to renew a session from a subject's credentials.
func renewAt(t *testing.T, h *host, session, subject string) (status int, resume string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(h.url, "ws")+"/v1/session/token", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Pulse-Session", session)
	r.Header.Set("Authorization", "Bearer "+subject)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	var body struct {
		OK struct{ Resume string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body.OK.Resume
}

// The credentials of a session are renewed at any node; one that there is not, or that is
// another's, is refused at each, and while there is no server that is told.
func TestASessionIsRenewedAtAnotherEngine(t *testing.T) {
	s := server.Start(t)
	a, b := sharing(t, s.Address()), sharing(t, s.Address())
	session, err := dial(t, a, "ann").Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a lease", func() bool { return s.Do("EXISTS", "pulse:session:acme:"+session.ID) == "1" })
	for name, c := range map[string]struct {
		at               *host
		session, subject string
		status           int
	}{
		"its own node":    {a, session.ID, "ann", 200},
		"another":         {b, session.ID, "ann", 200},
		"another's":       {b, session.ID, "bob", 403},
		"none":            {b, "none", "ann", 403},
		"no id":           {b, session.ID + ":x", "ann", 400},
		"none, by itself": {a, "none", "ann", 403},
	} {
		if status, resume := renewAt(t, c.at, c.session, c.subject); status != c.status || (resume != "") != (status == 200) {
			t.Errorf("%s: %d %q, want %d", name, status, resume, c.status)
		}
	}
	s.Kill()
	if status, _ := renewAt(t, b, session.ID, "ann"); status != http.StatusServiceUnavailable {
		t.Errorf("without a server: %d", status)
	}
}
