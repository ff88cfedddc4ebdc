// Package arch keeps the architecture's import rules: which folder may import
// which, and which folder alone may touch a given outside module. Its test reads
// the module's packages from `go list -json` and names every import that breaks
// a rule; a folder that no rule knows breaks one too.
package arch
