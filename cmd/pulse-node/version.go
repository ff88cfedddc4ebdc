package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the build.
var (
	version = "dev"
	commit  = ""
)

func (p *program) version() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of the program, its source, Go and the protocol",
		Example: `  pulse-node version --json | jq -r .version`,
		Args:    none,
	}
	asJSON := cmd.Flags().Bool("json", false, "as one line of JSON")
	cmd.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
			return asFailure(json.NewEncoder(p.stdout).Encode(map[string]any{
				"version": version, "commit": revision(), "go": runtime.Version(), "protocols": []string{protocol},
			}))
		}
		_, err := fmt.Fprintf(p.stdout, "pulse-node %s\ncommit %s\ngo %s\nprotocols %s\n",
			version, revision(), runtime.Version(), protocol)
		return asFailure(err)
	}
	return cmd
}

const protocol = "pulse.v1"

// revision returns the commit that the program was built from.
func revision() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
