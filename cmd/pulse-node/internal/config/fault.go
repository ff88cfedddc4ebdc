package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	Key     string // path of the setting, or the file that could not be read
	Source  string // where its value comes from
	Problem string // what is wrong, or what would be right
}

func (f Fault) Error() string { return fmt.Sprintf("%s (%s): %s", f.Key, f.Source, f.Problem) }

// Faults is everything that is wrong with a configuration, in order of key.
type Faults []Fault

// Error has one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

func (f Faults) sorted() Faults {
	f = slices.Clone(f)
	slices.SortStableFunc(f, func(a, b Fault) int { return cmp.Compare(a.Key, b.Key) })
	return slices.Compact(f)
}
