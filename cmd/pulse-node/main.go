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
	p := program{args: os.Args[1:], environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr}
	asMain(p.run)
}

// asMain runs run until it returns, and ends the process with its code. The first
// signal to end ends run's context, a second one the process at once.
func asMain(run func(context.Context) int) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with the process
		<-signals
		// Before anything ends: a second signal finds no handler, and ends the
		// process at once.
		signal.Stop(signals)
		cancel()
	}()
	os.Exit(run(ctx))
}
