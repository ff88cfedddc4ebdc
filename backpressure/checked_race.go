//go:build race

package backpressure

// checked makes a broken invariant panic where tests run.
const checked = true
