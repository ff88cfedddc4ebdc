package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/soak/history"
)

// options of a run.
type options struct {
	Seed           uint64
	Duration       time.Duration // of making faults
	Settle         time.Duration // after each
	Ending         time.Duration // how long the last events may take to be with everybody
	Clients, Rooms int
	Rate           int // events a second in all
	Out            io.Writer
}

// faulty makes faults while a crowd is at work, and says which.
type faulty func(now func() time.Duration) []history.Fault

// run lets a crowd work at a site while faults are made, and judges what it heard.
func run(o options, s site, faults faulty) (*report, error) {
	fmt.Fprintf(o.Out, "seed %d: %d clients in %d rooms, %d events a second\n", o.Seed, o.Clients, o.Rooms, o.Rate)
	ctx, cancel := context.WithCancel(context.Background())
	c := gather(o, s)
	stop := make(chan struct{})
	var publishing, wandering sync.WaitGroup
	defer func() { // however it ends
		cancel()
		publishing.Wait()
		wandering.Wait()
		c.leave()
	}()
	if err := c.come(ctx); err != nil {
		return nil, err
	}
	every := time.Duration(len(c.publishers)) * time.Second / time.Duration(o.Rate)
	for _, p := range c.publishers {
		publishing.Go(func() { p.run(ctx, every, stop) })
	}
	errs := make(chan error, len(c.members))
	for i, m := range c.members {
		if i/o.Rooms >= sources && i%wanderers == 0 {
			wandering.Go(func() {
				if err := m.wander(ctx, o.Seed+uint64(i), stop); err != nil {
					errs <- err
				}
			})
		}
	}
	made := faults(c.now)
	close(stop)
	publishing.Wait()
	wandering.Wait()
	final, done := context.WithTimeout(ctx, o.Ending)
	defer done()
	c.last(final)
	c.leave()
	select {
	case err := <-errs:
		return nil, err
	default:
	}
	return newReport(o, c, made), nil
}
