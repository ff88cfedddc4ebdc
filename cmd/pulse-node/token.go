package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

func (p *program) token() *cobra.Command {
	var file, tenant, subject string
	var rooms, allow []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "token --config FILE --tenant T --sub S",
		Short: "Print a token, signed by the first key that can sign",
		Long: `Print a token (JWT), signed by the first of auth.jwt.keys that can sign. It opens the
rooms that --rooms names, by name or as a prefix ending in *, and no other. Whoever has
it is that subject until it ends: keep it as you keep a password.`,
		Example: `  pulse-node token --config pulse.yaml --tenant acme --sub alice --rooms 'chat:*' > alice.jwt
  pulse-node token --config pulse.yaml --tenant acme --sub screen --rooms 'news:*' --allow join,history --ttl 24h`,
		Args: none,
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration, YAML")
	f.StringVar(&tenant, "tenant", "", "tenant")
	f.StringVar(&subject, "sub", "", "subject")
	f.StringSliceVar(&rooms, "rooms", nil, "rooms that it opens, such as 'chat:*'; none unless given")
	f.StringSliceVar(&allow, "allow", nil, "rights in them; all unless given")
	f.DurationVar(&ttl, "ttl", time.Hour, "how long it is good")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, required := range []string{"config", "tenant", "sub"} {
			if !f.Changed(required) {
				return fmt.Errorf("--%s is missing", required)
			}
		}
		if ttl <= 0 {
			return errors.New("--ttl must be above zero")
		}
		rights := auth.Rights()
		if f.Changed("allow") {
			rights = nil
			for _, word := range allow {
				r, err := auth.ParseRight(word)
				if err != nil {
					return fmt.Errorf("--allow: %w", err)
				}
				rights = append(rights, r)
			}
		}
		c, err := config.Load(config.Sources{File: file, Environ: p.environ})
		if err != nil {
			return err
		}
		keys := authKeys(c)
		signer := slices.IndexFunc(keys, auth.Key.CanSign)
		if signer < 0 {
			return config.Faults{{Key: "auth.jwt.keys", Source: file, Problem: "must have a key that can sign"}}
		}
		claims := auth.Claims{
			Tenant: tenant, TenantClaim: c.Auth.JWT.TenantClaim, Subject: subject,
			Issuer: c.Auth.JWT.Issuer, Audience: c.Auth.JWT.Audience,
			Expires: time.Now().Add(ttl), TokenID: rand.Text(),
		}
		for _, pattern := range rooms {
			claims.Grants = append(claims.Grants, auth.Grant{Rooms: pattern, Allow: rights})
		}
		token, err := keys[signer].Sign(claims)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.stdout, token)
		return asFailure(err)
	}
	return cmd
}
