//go:build !race

package scheduler

const scale = 1
