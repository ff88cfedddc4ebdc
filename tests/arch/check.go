package arch

import (
	"fmt"
	"slices"
	"strings"
)

// Package is what a rule looks at of one package.
type Package struct {
	Path        string   // import path
	Imports     []string // outside tests
	TestImports []string // of its tests, in the package and beside it
}

// Check returns one line for each import of packages that breaks a rule.
func Check(packages []Package) []string {
	var broken []string
	for _, p := range packages {
		folder := strings.TrimPrefix(strings.TrimPrefix(p.Path, Module), "/")
		broken = append(broken, checkLayer(folder, p.Imports)...)
		broken = append(broken, checkExclusives(folder, p.Imports, false)...)
		broken = append(broken, checkExclusives(folder, p.TestImports, true)...)
	}
	return broken
}

func checkLayer(folder string, imports []string) []string {
	l, ok := layerOf(folder)
	if !ok {
		return []string{fmt.Sprintf("%s: no rule says what this folder may import", folder)}
	}
	var broken []string
	for _, path := range imports {
		target, ok := strings.CutPrefix(path, Module+"/")
		if !ok || within(target, l.folder) && !isLayer(target, l) || allowed(target, l.may) {
			continue
		}
		broken = append(broken, fmt.Sprintf("%s may not import %s: %s may import %v", folder, target, l.folder, l.may))
	}
	return broken
}

func allowed(target string, may []string) bool {
	return slices.ContainsFunc(may, func(pattern string) bool {
		root, below := strings.CutSuffix(pattern, "/...")
		return target == root || below && within(target, root)
	})
}

// isLayer reports whether target belongs to a layer of its own below l.
func isLayer(target string, l layer) bool {
	own, ok := layerOf(target)
	return ok && own.folder != l.folder
}

func layerOf(folder string) (layer, bool) {
	var best layer
	found := false
	for _, l := range layers {
		if within(folder, l.folder) && len(l.folder) >= len(best.folder) {
			best, found = l, true
		}
	}
	return best, found
}

func checkExclusives(folder string, imports []string, inTests bool) []string {
	var broken []string
	for _, path := range imports {
		i := slices.IndexFunc(exclusives, func(e exclusive) bool { return within(path, e.module) })
		if i < 0 {
			continue
		}
		e := exclusives[i]
		if !slices.ContainsFunc(e.folders, func(f string) bool { return within(folder, f) }) && !(inTests && e.tests) {
			broken = append(broken, fmt.Sprintf("%s may not import %s: only %v may", folder, path, e.folders))
		}
	}
	return broken
}

// within reports whether path is root or lies below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
