// Command pulse-node runs one Pulse node.
//
// Its commands, their output and their exit codes are described in
// docs/CONFIG.md. The files of this package are the commands, one each; node.go
// holds a node's listeners and its life from start to drained end; engine.go is
// the one place where the configuration becomes the engine's. The main goroutine
// owns everything: what a command starts has ended when the command returns.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal finds no handler, and ends the process at once.
	context.AfterFunc(ctx, stop)
	p := program{args: os.Args[1:], environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.run(ctx))
}
