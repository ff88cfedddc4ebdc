package redis

import (
	"crypto/rand"
	random "math/rand/v2"
)

// fresh is a text that nobody else has: a node's name.
func fresh() string { return rand.Text()[:16] }

// epochLetters are those of epochs: none of them separates anything.
const epochLetters = "abcdefghijklmnopqrstuvwxyz234567"

// freshEpoch is one that no topic has had: 80 random bits. Nobody gains anything
// by guessing it, so that it comes from the fast generator.
func freshEpoch() string {
	var text [16]byte
	high, low := random.Uint64(), random.Uint64()
	for i := range text {
		n := high
		if i >= 8 {
			n = low
		}
		text[i] = epochLetters[n>>(5*(i&7))&31]
	}
	return string(text[:])
}
