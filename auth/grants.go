package auth

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxName is the longest room name of the protocol, in bytes.
const maxName = 128

// Grant allows some rights in the rooms that a pattern names.
type Grant struct {
	// Rooms is the exact name of a room, or a prefix of names ending in "*".
	Rooms string `json:"rooms"`
	// Allow lists the rights.
	Allow []Right `json:"allow"`
}

// Grants says which rights an identity has in which rooms. The zero value
// grants nothing. It is immutable.
type Grants struct {
	// Both are sorted by name, each name once. rights of a prefix include those
	// of every shorter prefix that covers it, so the longest match decides.
	exact    []granted
	prefixes []granted
}

type granted struct {
	name   string
	rights rightSet
}

// AllowAll grants every right in every room, and for the tenant's own commands.
func AllowAll() Grants {
	var all rightSet
	for _, r := range Rights() {
		all = all.with(r)
	}
	return Grants{prefixes: []granted{{name: "", rights: all}}}
}

// NewGrants compiles a list of grants, which may overlap: rights add up.
func NewGrants(list ...Grant) (Grants, error) {
	var g Grants
	for _, grant := range list {
		var set rightSet
		for _, r := range grant.Allow {
			if r >= rights {
				return Grants{}, fmt.Errorf("auth: no such right: %d", uint8(r))
			}
			set = set.with(r)
		}
		name, isPrefix := strings.CutSuffix(grant.Rooms, "*")
		if err := checkPattern(name, isPrefix); err != nil {
			return Grants{}, err
		}
		if isPrefix {
			g.prefixes = append(g.prefixes, granted{name, set})
		} else {
			g.exact = append(g.exact, granted{name, set})
		}
	}
	g.exact = merge(g.exact)
	g.prefixes = merge(g.prefixes)
	// Shorter prefixes sort before the longer ones they cover, so each finds the
	// one above it finished.
	for i := range g.prefixes {
		p := &g.prefixes[i]
		p.rights |= longest(g.prefixes[:i], p.name)
	}
	return g, nil
}

// List is a list that makes the same grants.
func (g Grants) List() []Grant {
	list := make([]Grant, 0, len(g.exact)+len(g.prefixes))
	add := func(name string, set rightSet) {
		grant := Grant{Rooms: name, Allow: []Right{}}
		for _, r := range Rights() {
			if set.has(r) {
				grant.Allow = append(grant.Allow, r)
			}
		}
		list = append(list, grant)
	}
	for _, e := range g.exact {
		add(e.name, e.rights)
	}
	for _, p := range g.prefixes {
		add(p.name+"*", p.rights)
	}
	return list
}

// Allows reports whether right is granted in room.
func (g Grants) Allows(right Right, room string) bool {
	if i, ok := find(g.exact, room); ok && g.exact[i].rights.has(right) {
		return true
	}
	return longest(g.prefixes, room).has(right)
}

// AllowsTenant reports whether right is granted for the tenant itself, outside
// any room: only the pattern "*" does.
func (g Grants) AllowsTenant(right Right) bool {
	return longest(g.prefixes, "").has(right)
}

func checkPattern(name string, isPrefix bool) error {
	if name == "" && !isPrefix {
		return errors.New("auth: a grant names no room")
	}
	if len(name) > maxName {
		return fmt.Errorf("auth: a grant's room name is over %d bytes", maxName)
	}
	for i := range len(name) {
		if c := name[i]; !isNameByte(c) && c != '~' && c != ':' {
			return errors.New("auth: a grant's rooms are an exact name, or a prefix ending in *")
		}
	}
	return nil
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'
}

// merge sorts list by name and joins the rights of equal names.
func merge(list []granted) []granted {
	slices.SortFunc(list, func(a, b granted) int { return cmp.Compare(a.name, b.name) })
	out := list[:0]
	for _, g := range list {
		if n := len(out); n > 0 && out[n-1].name == g.name {
			out[n-1].rights |= g.rights
			continue
		}
		out = append(out, g)
	}
	return out
}

func find(list []granted, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(g granted, n string) int { return cmp.Compare(g.name, n) })
}

// longest returns the rights of the longest prefix in list that covers name.
// The greatest entry not above name shares at least as much with name as that
// prefix does; so each round either ends or shortens name to what is shared.
func longest(list []granted, name string) rightSet {
	for {
		i, ok := find(list, name)
		if !ok {
			i--
		}
		if i < 0 {
			return 0
		}
		n := shared(list[i].name, name)
		if n == len(list[i].name) {
			return list[i].rights
		}
		name = name[:n]
	}
}

func shared(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
