//go:build !race

package backpressure

// checked is false in release: a broken invariant is counted and made safe.
const checked = false
