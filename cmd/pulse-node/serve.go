package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

func (p *program) serve() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [--config FILE]",
		Short: "Run a node",
		Long: `Run a node until SIGTERM or SIGINT, which drain it: clients are told to go elsewhere,
each at a time of its own, and who is left is closed within node.drain_timeout. A
second signal ends it at once. SIGHUP reads the configuration again and takes over
what a running node can; what it cannot is told in the log.

When clients may come, one line says where it listens, on standard output. Logs go
to standard error.`,
		Example: `  pulse-node serve --config /etc/pulse/pulse.yaml
  PULSE_LOG_LEVEL=debug pulse-node serve --config pulse.yaml --listen=:9090`,
		Args: none,
	}
	load := p.sources(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		// From before the first reading to the end of the process: a signal that comes
		// early or late ends nothing.
		reloads := make(chan os.Signal, 1)
		signal.Notify(reloads, syscall.SIGHUP)
		c, err := load()
		if err != nil {
			return err
		}
		level := new(slog.LevelVar)
		log := newLogger(p.stderr, c.Log, level)
		certificate, err := loadCertificate(c.TLS, log)
		if err != nil {
			return err
		}
		jwt, err := newJWT(c, log)
		if err != nil {
			return err
		}
		r := &reloader{load: load, log: log, level: level, certificate: certificate, config: c, jwt: jwt}
		defer r.close()
		if err := selfCheck(cmd.Context(), c, jwt); err != nil {
			return err
		}
		r.warn()
		nodes, err := newRedis(c, log)
		if err != nil {
			return err
		}
		defer nodes.close()
		r.nodes = nodes
		cfg := engineConfig(c, jwt, log)
		nodes.give(&cfg)
		return p.runNode(cmd.Context(), node{
			engine:           cfg,
			listen:           c.Listen,
			internal:         c.Internal.Listen,
			certificate:      certificate,
			handshakeTimeout: c.Transport.HandshakeTimeout,
			traces:           c.Telemetry.OTLPEndpoint,
			drainTimeout:     c.Node.DrainTimeout,
			reload:           r.reload,
			reloads:          reloads,
		})
	}
	return cmd
}

// sources gives cmd the flags of a configuration, and returns what loads it from
// them, the environment and the file.
func (p *program) sources(cmd *cobra.Command) (load func() (*config.Config, error)) {
	given := new(flags)
	file := cmd.Flags().String("config", "", "configuration, YAML")
	given.addSettings(cmd)
	known := false
	return func() (*config.Config, error) {
		if !known {
			given.unknown(cmd, p.args)
			known = true
		}
		return config.Load(config.Sources{File: *file, Environ: p.environ, Flags: given.given})
	}
}
