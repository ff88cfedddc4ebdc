package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/yaza-dev/pulse/soak/history"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command is the program: 0 all is well, 1 it is not, 2 wrong use.
func command(args []string, stdout, stderr io.Writer) int {
	o := options{Out: stdout, Settle: 2 * time.Second, Ending: time.Minute}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Uint64Var(&o.Seed, "seed", rand.Uint64N(1_000_000), "of the choices: which faults come when")
	flags.DurationVar(&o.Duration, "duration", 5*time.Minute, "how long faults are made; each of them is made once at least")
	flags.IntVar(&o.Clients, "clients", 200, "each of them in two rooms")
	flags.IntVar(&o.Rooms, "rooms", 20, "one in ten has a short history")
	flags.IntVar(&o.Rate, "rate", 100, "events a second in all")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || o.Clients < o.Rooms || o.Rooms < 2 || o.Rate < 1 {
		fmt.Fprintln(stderr, "soak: at least two rooms, as many clients as rooms, one event a second")
		return 2
	}
	code := 1
	err := perform(func(s *stage) {
		l := newLab(s)
		r, err := run(o, l, func(now func() time.Duration) []history.Fault { return l.deal(l.deck(), o, now) })
		if err != nil {
			s.Fatal(err)
		}
		r.write(stdout)
		if r.well() {
			code, s.clean = 0, true
		}
	})
	if err != nil {
		fmt.Fprintln(stderr, "soak:", err)
		return 1
	}
	return code
}
