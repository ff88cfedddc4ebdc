package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaza-dev/pulse/soak/history"
)

// report is what a run came to.
type report struct {
	Seed                                         uint64
	Took                                         time.Duration
	Published, Accepted, Delivered               int
	Connections, Recovered, Refusals, Duplicates int
	Resets                                       map[string]int // by reason and what went before
	Faults                                       []history.Fault
	Median, Slow, Slowest                        time.Duration // from publish to arrival, outages included
	Findings                                     []history.Finding
	Oddities                                     []string

	rooms []history.Room
}

func newReport(o options, c *crowd, faults []history.Fault) *report {
	r := &report{Seed: o.Seed, Took: c.now(), Faults: faults, Resets: map[string]int{}}
	rooms, oddities := c.histories()
	r.Oddities, r.rooms = oddities, rooms
	for _, room := range rooms {
		for _, p := range room.Sent {
			r.Published++
			if p.Accepted {
				r.Accepted++
			}
		}
		for _, m := range room.Members {
			if strings.HasSuffix(m.Name, "(wire)") {
				r.count(m.Entries)
			}
		}
	}
	r.Connections, r.Refusals, r.Duplicates = int(c.connected.Load()), int(c.refused.Load()), int(c.duplicates.Load())
	r.Median, r.Slow, r.Slowest = c.delays.quantile(.5), c.delays.quantile(.99), c.delays.quantile(1)
	r.Findings = history.Check(&history.Run{Rooms: rooms, Faults: faults})
	return r
}

func (r *report) count(entries []history.Entry) {
	for _, e := range entries {
		switch {
		case e.Kind == history.Event:
			r.Delivered++
		case e.Recovered:
			r.Recovered++
		case e.Reason != 0:
			r.Resets[fmt.Sprintf("%v after %s", e.Reason, r.before(e.At))]++
		}
	}
}

// before names the last fault that may have lost history, or that was made at all.
func (r *report) before(at time.Duration) string {
	name := "nothing"
	for _, f := range r.Faults {
		if f.From <= at && (f.Loses || name == "nothing") {
			name = f.Name
		}
	}
	return name
}

// well reports whether nothing was found.
func (r *report) well() bool { return len(r.Findings) == 0 && len(r.Oddities) == 0 }

// shown is how many findings are printed.
const shown = 40

func (r *report) write(w io.Writer) {
	count := map[string]int{}
	for _, f := range r.Faults {
		count[f.Name]++
	}
	fmt.Fprintf(w, "\nseed %d, %.0f s, faults %v\n", r.Seed, r.Took.Seconds(), count)
	fmt.Fprintf(w, "published %d, accepted %d, refused and repeated %d, known by key %d\n", r.Published, r.Accepted, r.Refusals, r.Duplicates)
	fmt.Fprintf(w, "delivered %d; median %v, p99 %v, slowest %v, outages included\n", r.Delivered, r.Median, r.Slow, r.Slowest)
	fmt.Fprintf(w, "connections %d, joins recovered %d\n", r.Connections, r.Recovered)
	for _, why := range slices.Sorted(maps.Keys(r.Resets)) {
		fmt.Fprintf(w, "resets: %d %s\n", r.Resets[why], why)
	}
	for i, f := range r.Findings {
		if i == shown {
			fmt.Fprintf(w, "… and %d more\n", len(r.Findings)-shown)
			break
		}
		fmt.Fprintf(w, "%s in %s at %.3fs: %s: %s\n", f.Rule, f.Room, f.At.Seconds(), f.Member, f.Text)
		if i < explained {
			r.explain(w, f)
		}
	}
	for _, o := range r.Oddities {
		fmt.Fprintln(w, o)
	}
	fmt.Fprintln(w, map[bool]string{true: "verdict: every history holds", false: "verdict: it does not hold"}[r.well()])
}

// explained is how many findings are printed with what the member was told around them.
const explained = 3

// explain prints what the member was told, and what the room's epochs were.
func (r *report) explain(w io.Writer, f history.Finding) {
	i := slices.IndexFunc(r.rooms, func(room history.Room) bool { return room.Name == f.Room })
	began := map[string]history.Entry{} // by epoch, when somebody first heard of it
	for _, m := range r.rooms[i].Members {
		for n, e := range m.Entries {
			if first, ok := began[e.Position.Epoch]; e.Position.Epoch != "" && (!ok || e.At < first.At) {
				began[e.Position.Epoch] = e
			}
			if m.Name == f.Member && e.At > f.At-3*time.Second && e.At < f.At+time.Second {
				fmt.Fprintf(w, "    %d. %.3fs %v\n", n, e.At.Seconds(), e)
			}
		}
	}
	for _, m := range r.rooms[i].Members {
		for n, e := range m.Entries[1:] {
			if before := m.Entries[n]; e.Kind == history.Event && e.Position.Epoch != before.Position.Epoch && strings.HasSuffix(m.Name, "(wire)") {
				fmt.Fprintf(w, "    %.3fs %s went on from %v to %v\n", e.At.Seconds(), m.Name, before.Position, e.Position)
			}
		}
	}
	for _, epoch := range slices.SortedFunc(maps.Keys(began), func(a, b string) int { return cmp.Compare(began[a].At, began[b].At) }) {
		fmt.Fprintf(w, "    %.3fs epoch %s: %v\n", began[epoch].At.Seconds(), epoch, began[epoch])
	}
}

// delays counts times in buckets that are a twelfth wide.
type delays struct {
	mu     sync.Mutex
	counts [400]int // guarded by mu
}

const bucket = 12 // to a factor of e

func (d *delays) add(late time.Duration) {
	i := int(bucket * math.Log(max(1, float64(late.Microseconds()))))
	d.mu.Lock()
	d.counts[min(i, len(d.counts)-1)]++
	d.mu.Unlock()
}

// quantile is the upper bound of the bucket that holds it.
func (d *delays) quantile(q float64) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	total := 0
	for _, n := range d.counts {
		total += n
	}
	left := q * float64(total)
	for i, n := range d.counts {
		if left -= float64(n); n > 0 && left <= 0 {
			return time.Duration(math.Exp(float64(i+1)/bucket)) * time.Microsecond
		}
	}
	return 0
}
