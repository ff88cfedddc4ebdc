package auth

import "github.com/golang-jwt/jwt/v5"

// verifier is a key ready for use. It is immutable.
type verifier struct {
	alg string
	id  string // empty: of any token
	key any    // as the library takes it for alg
}

// keyring is a list of keys. It is immutable.
type keyring []verifier

// names reports whether a key has this id.
func (r keyring) names(id string) bool {
	for _, v := range r {
		if v.id == id {
			return true
		}
	}
	return false
}

// candidates returns the keys that may verify a token of alg. One that names a
// key goes to that key only; one whose name no key has, to the keys without a
// name; one that names none, to all. A key of another algorithm is never among
// them.
func (r keyring) candidates(alg, id string) (keys []jwt.VerificationKey) {
	named := id != "" && r.names(id)
	for _, v := range r {
		if v.alg == alg && (id == "" || v.id == id || v.id == "" && !named) {
			keys = append(keys, v.key)
		}
	}
	return keys
}
