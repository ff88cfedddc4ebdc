package main

import (
	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

func (p *program) serve() *cobra.Command {
	var given flags
	cmd := &cobra.Command{
		Use:   "serve [--config FILE]",
		Short: "Run a node",
		Args:  cobra.NoArgs,
	}
	file := cmd.Flags().String("config", "", "configuration, YAML")
	given.addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given.unknown(cmd, p.args[1:])
		c, err := config.Load(config.Sources{File: *file, Environ: p.environ, Flags: given.given})
		if err != nil {
			return err
		}
		log := newLogger(p.stderr, c.Log)
		certificate, err := loadCertificate(c.TLS, log)
		if err != nil {
			return err
		}
		if len(c.Auth.JWT.Keys) == 0 && c.Auth.JWT.JWKS.URL == "" {
			log.Warn("no key verifies tokens: every client will be refused", "setting", "auth.jwt.keys")
		}
		jwt, err := newJWT(c, log)
		if err != nil {
			return err
		}
		defer jwt.Close()
		return p.runNode(cmd.Context(), node{
			engine:           engineConfig(c, jwt, log),
			listen:           c.Listen,
			internal:         c.Internal.Listen,
			certificate:      certificate,
			handshakeTimeout: c.Transport.HandshakeTimeout,
			traces:           c.Telemetry.OTLPEndpoint,
			drainTimeout:     c.Node.DrainTimeout,
		})
	}
	return cmd
}
