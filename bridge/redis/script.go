package redis

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
)

//go:embed scripts/*.lua
var sources embed.FS

// script is one atomic step on the server.
type script struct{ text, hash string }

// newScript joins files to one script. They are part of the program, so that a
// missing one is a broken invariant.
func newScript(files ...string) script {
	var text []byte
	for _, name := range files {
		part, err := sources.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		text = append(append(text, part...), '\n')
	}
	sum := sha1.Sum(text) // by which the server names scripts
	return script{string(text), hex.EncodeToString(sum[:])}
}
