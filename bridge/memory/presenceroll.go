package memory

import (
	"slices"
	"sort"
	"strings"

	"github.com/yaza-dev/pulse/codec"
)

// rollPart is the most members that one part of a roll holds: so many are moved
// at most where one comes or goes.
const rollPart = 256

// roll is members in order of subject, in parts of bounded length, so that
// neither a change nor a page costs more with more members, but for a binary
// search. Pure.
//
// Invariant: parts are not empty, and ascending, each and all together.
type roll struct {
	parts [][]codec.Member
	count int
}

func (r *roll) len() int { return r.count }

// find is where a subject is, or belongs. With no part that begins at or below
// it, it belongs into the first.
func (r *roll) find(subject string) (part, at int, found bool) {
	part = max(0, sort.Search(len(r.parts), func(i int) bool { return r.parts[i][0].Subject > subject })-1)
	if part < len(r.parts) {
		at, found = slices.BinarySearchFunc(r.parts[part], subject, func(m codec.Member, s string) int {
			return strings.Compare(m.Subject, s)
		})
	}
	return part, at, found
}

// put adds a member, or takes the place of the one of its subject, whose data it
// returns.
func (r *roll) put(m codec.Member) (old codec.Data, known bool) {
	part, at, found := r.find(m.Subject)
	if found {
		old = r.parts[part][at].Data
		r.parts[part][at] = m
		return old, true
	}
	r.count++
	if len(r.parts) == 0 {
		r.parts = [][]codec.Member{{m}}
		return old, false
	}
	p := slices.Insert(r.parts[part], at, m)
	r.parts[part] = p
	if len(p) > rollPart {
		half := len(p) / 2
		r.parts = slices.Insert(r.parts, part+1, slices.Clone(p[half:]))
		r.parts[part] = slices.Clone(p[:half]) // which lets go of the other half
	}
	return old, false
}

// remove takes a subject out. False: it was not there.
func (r *roll) remove(subject string) bool {
	part, at, found := r.find(subject)
	if !found {
		return false
	}
	r.count--
	p := slices.Delete(r.parts[part], at, at+1)
	r.parts[part] = p
	switch {
	case len(p) == 0:
		r.parts = slices.Delete(r.parts, part, part+1)
	case cap(p) > 64 && len(p) < cap(p)/4:
		r.parts[part] = slices.Clone(p)
	}
	return true
}

// page copies at most limit members after a subject; empty: from the first.
func (r *roll) page(after string, limit int) (members []codec.Member, more bool) {
	part, at := 0, 0
	if after != "" {
		var found bool
		if part, at, found = r.find(after); found {
			at++
		}
	}
	for ; part < len(r.parts); part, at = part+1, 0 {
		rest := r.parts[part][at:]
		if n := limit - len(members); len(rest) > n {
			return append(members, rest[:max(n, 0)]...), true
		}
		members = append(members, rest...)
	}
	return members, false
}

// besides are the subjects that are not among the given ones.
func (r *roll) besides(members []codec.Member) (others []string) {
	known := make(map[string]bool, len(members))
	for _, m := range members {
		known[m.Subject] = true
	}
	for _, p := range r.parts {
		for _, m := range p {
			if !known[m.Subject] {
				others = append(others, m.Subject)
			}
		}
	}
	return others
}
