package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

// program is one run of pulse-node, apart from the process it runs in.
type program struct {
	args           []string
	environ        []string
	stdout, stderr io.Writer
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // it was used rightly, and did not work
	exitWrong  = 2 // wrong use or configuration
)

// failure is an error that is nobody's wrong use.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// run runs the command that the arguments name, until it ends or ctx does.
func (p *program) run(ctx context.Context) int {
	root := &cobra.Command{
		Use:   "pulse-node",
		Short: "A realtime node: tenants, rooms and events over WebSocket",
		Long: `A realtime node: tenants, rooms and events over WebSocket.

Exit codes: 0 done, or a clean end; 1 it was used rightly and did not work, such as a
port that is taken; 2 wrong use or configuration, with every fault on standard error.`,
		Example: `  pulse-node dev                                 # try it: http://127.0.0.1:8080
  pulse-node config --config pulse.yaml          # what is in force, or what is wrong
  pulse-node serve --config pulse.yaml           # run it
  pulse-node token --config pulse.yaml --tenant acme --sub alice --rooms 'chat:*' > alice.jwt
  pulse-node tail --url ws://127.0.0.1:8080 --token-file alice.jwt chat:lobby`,
		RunE:          func(*cobra.Command, []string) error { return errors.New("a command is missing; see pulse-node --help") },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(p.config(), p.dev(), p.health(), p.publish(), p.replay(), p.serve(), p.tail(), p.token(), p.version())
	root.SetArgs(p.args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	strict(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(p.stderr, "pulse-node: %s\n", line)
		}
	}
	if f := (failure{}); errors.As(err, &f) {
		return exitFailed
	}
	return exitWrong
}

// strict has the commands that cobra brings along end as ours do: what they do not know
// is wrong use, and what they cannot print has failed.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Run, cmd.RunE = nil, func(_ *cobra.Command, args []string) error {
				about, _, err := root.Find(args)
				if err != nil {
					return err
				}
				return asFailure(about.Help())
			}
		case "completion":
			cmd.RunE = func(*cobra.Command, []string) error {
				return errors.New("a shell is missing; see pulse-node completion --help")
			}
			for _, shell := range cmd.Commands() {
				script := shell.RunE
				shell.RunE = func(cmd *cobra.Command, args []string) error { return asFailure(script(cmd, args)) }
			}
		}
	}
}

// none is of commands that take no arguments.
func none(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: %s takes no arguments, see --help", args[0], cmd.CommandPath())
	}
	return nil
}

// flags records the flags of settings, as they were given.
type flags struct{ given []config.Flag }

// addSettings makes a flag of every setting that may be one. A flag that is
// none is a fault among the others, so the parser lets it through.
func (f *flags) addSettings(cmd *cobra.Command) {
	cmd.FParseErrWhitelist.UnknownFlags = true
	for _, s := range config.Settings() {
		cmd.Flags().Var(&recorder{flags: f, name: s.Path, value: s.Default}, s.Path, s.Doc)
		if len(s.Words) > 0 {
			// Fails for a flag that there is not, or twice.
			_ = cmd.RegisterFlagCompletionFunc(s.Path, cobra.FixedCompletions(s.Words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// unknown adds the flags in args that cmd does not know: all with one dash are such.
func (f *flags) unknown(cmd *cobra.Command, args []string) {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, _, hasValue := strings.Cut(args[i], "=")
		long, isLong := strings.CutPrefix(name, "--")
		switch known := cmd.Flags().Lookup(long); {
		case !isLong && strings.HasPrefix(name, "-"):
			f.given = append(f.given, config.Flag{Name: name})
		case !isLong:
		case known == nil:
			f.given = append(f.given, config.Flag{Name: long})
		case !hasValue && known.NoOptDefVal == "":
			i++ // the next argument is its value
		}
	}
}

// recorder is the value of one flag: it adds itself to flags, to be read with
// all the other sources.
type recorder struct {
	flags *flags
	name  string
	value string
}

func (r *recorder) Set(text string) error {
	r.flags.given = append(r.flags.given, config.Flag{Name: r.name, Value: text})
	return nil
}

func (r *recorder) String() string { return r.value }

func (r *recorder) Type() string { return "value" }
