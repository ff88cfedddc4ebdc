//go:build !race

package engine

const scale = 1
