package main

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

func (p *program) config() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config [--config FILE]",
		Short: "Print the configuration in force, or everything that is wrong with it",
		Long: `Print every setting as it is in force, from defaults, file, environment and flags, in
the form of a file, with secrets as ***; or all that is wrong, each with its key, its
source and what would be right, and exit with 2.`,
		Example: `  pulse-node config --config pulse.yaml
  PULSE_TRANSPORT_PING=20s pulse-node config --json | jq .transport.ping`,
		Args: none,
	}
	load := p.sources(cmd)
	asJSON := cmd.Flags().Bool("json", false, "as one line of JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := load()
		if err != nil {
			return err
		}
		jwt, err := newJWT(c, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer jwt.Close()
		if err := selfCheck(cmd.Context(), c, jwt); err != nil {
			return err
		}
		text := c.YAML()
		if *asJSON {
			var tree any
			if err := yaml.Unmarshal(text, &tree); err != nil {
				return failure{err}
			}
			if text, err = json.Marshal(tree); err != nil {
				return failure{err}
			}
			text = append(text, '\n')
		}
		_, err = p.stdout.Write(text)
		return asFailure(err)
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the configuration file",
		Example: `  pulse-node config schema > pulse.schema.json`,
		Args:    none,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.stdout, "%s", config.JSONSchema())
			return asFailure(err)
		},
	})
	return cmd
}
