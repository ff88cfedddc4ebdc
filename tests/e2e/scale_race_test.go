//go:build race

package e2e

// lavish divides what a test sends in bulk, where the race detector takes ten times
// as long.
const lavish = 4
