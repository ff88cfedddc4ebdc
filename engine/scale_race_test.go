//go:build race

package engine

// scale divides counts that only a long run needs, under the race detector.
const scale = 10
