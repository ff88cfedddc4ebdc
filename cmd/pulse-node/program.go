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
		Use:               "pulse-node",
		Short:             "A realtime node: tenants, rooms and events over WebSocket",
		Args:              cobra.NoArgs,
		RunE:              func(*cobra.Command, []string) error { return errors.New("a command is missing; see pulse-node --help") },
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(p.dev(), p.serve(), p.token(), p.version())
	root.SetArgs(p.args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(p.stderr, "pulse-node: %s\n", strings.TrimSuffix(line, "\n"))
	}
	if f := (failure{}); errors.As(err, &f) {
		return exitFailed
	}
	return exitWrong
}

// flags records the flags of settings, as they were given.
type flags struct{ given []config.Flag }

// addSettings makes a flag of every setting that may be one. A flag that is
// none is a fault among the others, so the parser lets it through.
func (f *flags) addSettings(cmd *cobra.Command) {
	cmd.FParseErrWhitelist.UnknownFlags = true
	for _, s := range config.Settings() {
		cmd.Flags().Var(&recorder{flags: f, name: s.Path, value: s.Default}, s.Path, s.Doc)
	}
}

// unknown adds the flags in args that cmd does not know.
func (f *flags) unknown(cmd *cobra.Command, args []string) {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag {
			continue
		}
		name, _, hasValue := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		known := cmd.Flags().Lookup(name)
		switch {
		case known == nil:
			f.given = append(f.given, config.Flag{Name: name})
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
