package main

import (
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
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the program, its source, Go and the protocol",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.stdout, "pulse-node %s\ncommit %s\ngo %s\nprotocols %s\n",
				version, revision(), runtime.Version(), "pulse.v1")
			return asFailure(err)
		},
	}
}

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
