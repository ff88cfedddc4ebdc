//go:build !race

package e2e

const lavish = 1
