//go:build race

package scheduler

// scale divides the length of simulations: they have no concurrency for the detector to look at.
const scale = 20
