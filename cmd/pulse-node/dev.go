package main

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/demo"
)

const (
	devTenant = "dev"
	devTTL    = 24 * time.Hour
)

// devSubjects are the two that dev prints tokens for.
var devSubjects = [...]string{"alice", "bob"}

func (p *program) dev() *cobra.Command {
	var listen string
	var insecure bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a node to try things with: fresh key, every kind of room, a demo page",
		Long: `Run a node to try things with: events in memory, a fresh key, every kind of room open,
tenant dev, and a demo page at /. Two tokens are printed after the line that says where
it listens. It is for this machine alone.`,
		Example: `  pulse-node dev
  pulse-node dev --listen 127.0.0.1:9000`,
		Args: none,
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "public listener, a loopback address")
	cmd.Flags().BoolVar(&insecure, "insecure-listen", false, "allow any address: whoever reaches it may be anybody")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !insecure && !isLoopback(listen) {
			return fmt.Errorf("--listen %s is no loopback address; --insecure-listen allows it", listen)
		}
		key := auth.Key{Alg: auth.HS256, Secret: make([]byte, 32)}
		rand.Read(key.Secret)
		issue := func(subject string, life time.Duration) (string, error) {
			return key.Sign(auth.Claims{
				Tenant: devTenant, Subject: subject, Expires: time.Now().Add(life),
				Grants: []auth.Grant{{Rooms: "*", Allow: auth.Rights()}},
			})
		}
		c, err := devConfig(key)
		if err != nil {
			return err
		}
		log := newLogger(p.stderr, c.Log, new(slog.LevelVar))
		jwt, err := newJWT(c, log)
		if err != nil {
			return err
		}
		defer jwt.Close()
		cfg := engineConfig(c, jwt, log)
		// A page that is being developed has an origin of its own. What any origin
		// may do here needs a token, and tokens go to the demo page alone.
		cfg.Origins = []string{"*"}
		var lines string
		for _, subject := range devSubjects {
			token, err := issue(subject, devTTL)
			if err != nil {
				return failure{err}
			}
			lines += fmt.Sprintf("token %s %s\n", subject, token)
		}
		page := demo.Page{Subjects: devSubjects[:], Token: issue, Life: devTTL, AnyHost: insecure}
		return p.runNode(cmd.Context(), node{
			engine:           cfg,
			listen:           listen,
			internal:         c.Internal.Listen,
			spare:            true,
			handshakeTimeout: c.Transport.HandshakeTimeout,
			traces:           c.Telemetry.OTLPEndpoint,
			drainTimeout:     5 * time.Second,
			around:           func(engine http.Handler) http.Handler { return page.Handler(engine) },
			ready:            func() { fmt.Fprint(p.stdout, lines) },
		})
	}
	return cmd
}

// devConfig is what a file would have to say for dev.
func devConfig(key auth.Key) (*config.Config, error) {
	c, err := config.Load(config.Sources{Flags: []config.Flag{{Name: "log.format", Value: "text"}}})
	if err != nil {
		return nil, err
	}
	c.Auth.JWT.Keys = []config.Key{{Key: key}}
	c.Rooms = map[string]config.Room{"*": devRoom()}
	c.TenantDefaults.SessionRate = config.SessionRate{} // no limit: the page sends bursts
	return c, nil
}

// devRoom declares every room of dev: what the demo page needs, and any other
// event as a kind that says nothing has it.
func devRoom() config.Room {
	r := config.DefaultRoom()
	r.Presence = true
	r.Events = map[string]config.Event{
		"*":      {Delivery: "at_least_once", Lane: "interactive", Overflow: "reject"},
		"cursor": {Delivery: "transient", Lane: "lossy", Overflow: "coalesce_latest", CoalesceBy: "session"},
	}
	return r
}

// isLoopback reports whether a listener on address is reached from this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
