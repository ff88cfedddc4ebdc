// Package config is the configuration of pulse-node: its one schema, and the way
// from a file, the environment and flags to values that are whole and checked.
//
// The schema is the struct Config: a field's tags carry its key, its default and
// what is allowed, and everything else is read off them. Load returns either a
// configuration without a fault, or every fault at once, each with its key, the
// source it came from and what would be right. Values of secrets are never part
// of a fault.
//
// The package starts no goroutine. It reads the file that it is given and the
// files that the configuration names for secrets, once.
package config
