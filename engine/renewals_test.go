package engine

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport/memory"
)

// A session is renewed at any node of its deployment: its own takes the new credentials,
// with what they allow and when they end, and the answer is the same.
func TestSessionIsRenewedAtAnyNode(t *testing.T) {
	d := deploy(t)
	open := func(c *Config) {
		c.Authenticator = authFunc(func(ctx context.Context, cr auth.Credentials) (*auth.Identity, error) {
			if strings.HasSuffix(cr.Token, "s") {
				return ending{}.Authenticate(ctx, cr)
			}
			return asTold{}.Authenticate(ctx, cr)
		})
	}
	a := d.node(t, "a", &faults{}, open)
	b := d.node(t, "b", &faults{}, open)
	w := webOf(t, b)
	alice := dial(t, a, codec.JSON, memory.Options{})
	welcome := alice.hello("acme/alice", "chat:1", "bare")
	session := fmt.Sprint("Pulse-Session: ", welcome["session"])
	known(t, d, fmt.Sprint(welcome["session"]))
	for name, test := range map[string]struct {
		headers []string
		status  int
	}{
		"another subject's": {[]string{session, "Authorization: Bearer acme/bob"}, 403},
		"another tenant's":  {[]string{session, "Authorization: Bearer other/alice"}, 403},
		"no such session":   {[]string{"Pulse-Session: none", "Authorization: Bearer acme/alice"}, 403},
		"no credentials":    {[]string{session}, 401},
	} {
		if resp, f := w.do("POST", "/v1/session/token", "", test.headers...); resp.StatusCode != test.status {
			t.Errorf("%s: %d %v, want %d", name, resp.StatusCode, f, test.status)
		}
	}
	if _, before := alice.ask(`{"t":"join","room":"chat:2"}`); len(before) > 0 {
		t.Errorf("refused renewals did something: %v", before)
	}
	resp, f := w.do("POST", "/v1/session/token", "", session, "Authorization: Bearer acme/alice/90s")
	if resp.StatusCode != http.StatusOK || f.at("ok.exp_ms") == nil {
		t.Fatalf("%d %v", resp.StatusCode, f)
	}
	grants := `Authorization: Bearer acme/alice/[{"rooms":"bare","allow":["join"]}]`
	if resp, f = w.do("POST", "/v1/session/token", "", session, grants); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", resp.StatusCode, f)
	}
	left := map[string]bool{}
	for range 2 {
		left[fmt.Sprint(alice.until("left")["room"])] = true
	}
	if !left["chat:1"] || !left["chat:2"] {
		t.Errorf("rooms that the new credentials do not cover: %v", left)
	}
	alice.cut()
	if _, again := resume(t, b, codec.JSON, "acme/alice", f.at("ok.resume")); again["resumed"] != true || again["session"] != welcome["session"] {
		t.Errorf("by the token of the answer: %v", again)
	}
}

// Where the store or the session's node does not answer, or nobody else could read what
// it is told, that is told, and soon.
func TestRenewalThatNobodyAnswers(t *testing.T) {
	d := deploy(t)
	f := &faults{}
	a := d.node(t, "a", f, nil)
	alice := dial(t, a, codec.JSON, memory.Options{})
	id := fmt.Sprint(alice.hello("acme/alice")["session"])
	known(t, d, id)
	w := webOf(t, d.node(t, "b", &faults{}, func(c *Config) { c.DeploymentKeys = [][]byte{[]byte(strings.Repeat("o", 32))} }))
	began := time.Now()
	resp, got := w.do("POST", "/v1/session/token", "", "Pulse-Session: "+id, "Authorization: Bearer acme/alice")
	if resp.StatusCode != http.StatusServiceUnavailable || got.at("err.code") != "unavailable" || got.at("err.retry_after_ms") == nil || time.Since(began) > 2*renewTime {
		t.Errorf("after %v: %d %v", time.Since(began), resp.StatusCode, got)
	}
	d.store.Lose()
	if resp, got = w.do("POST", "/v1/session/token", "", "Pulse-Session: "+id, "Authorization: Bearer acme/alice"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a session that the store does not know: %d %v", resp.StatusCode, got)
	}
}

// What nodes say of an identity is what it was, whatever is in it; what a later version
// adds is passed over.
func TestNotesOfIdentities(t *testing.T) {
	grants, err := auth.NewGrants(auth.Grant{Rooms: "chat:*", Allow: []auth.Right{auth.Join}}, auth.Grant{Rooms: "desk", Allow: auth.Rights()})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []auth.Identity{
		{Tenant: "acme", Subject: "alice", Grants: grants, Expires: time.UnixMilli(1234567), Leeway: 5 * time.Second, TokenID: "t"},
		{Tenant: "acme", Subject: "alice \x00", Grants: auth.AllowAll()},
		{Tenant: "acme", Subject: "nobody"},
	} {
		got := noteOf("s", &id).identity()
		if got.Tenant != id.Tenant || got.Subject != id.Subject || !got.Expires.Equal(id.Expires) || got.Leeway != id.Leeway || got.TokenID != id.TokenID {
			t.Errorf("%+v became %+v", id, got)
		}
		for _, room := range []string{"chat:1", "desk", "other"} {
			for _, right := range auth.Rights() {
				if got.Grants.Allows(right, room) != id.Grants.Allows(right, room) {
					t.Errorf("%s: %v in %s", id.Subject, right, room)
				}
			}
		}
	}
	later := noteRenew{Grants: []byte(`[{"rooms":"chat:*","allow":["fly","join"]}]`)}
	if g := later.identity().Grants; !g.Allows(auth.Join, "chat:1") || slices.ContainsFunc(auth.Rights()[1:], func(r auth.Right) bool { return g.Allows(r, "chat:1") }) {
		t.Error("a right of a later version is another now")
	}
}

// known waits until the store knows a session.
func known(t *testing.T, d *deployment, session string) {
	t.Helper()
	eventually(t, "the store knows the session", func() bool {
		_, found := d.holder("acme", session)
		return found
	})
}
