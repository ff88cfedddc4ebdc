//go:build race

package main

// scale divides the load of tests that the race detector would make an overload.
const scale = 5
