package auth

import "fmt"

// Right is one thing that a grant can allow in the rooms it names.
type Right uint8

// The rights of the protocol.
const (
	Join Right = iota
	Publish
	Command
	Presence
	History
	rights // number of rights
)

var rightNames = [rights]string{"join", "publish", "command", "presence", "history"}

// Rights lists every right, in the order in which they are documented.
func Rights() []Right { return []Right{Join, Publish, Command, Presence, History} }

// String returns the word that names r in a token.
func (r Right) String() string {
	if r >= rights {
		return fmt.Sprintf("Right(%d)", uint8(r))
	}
	return rightNames[r]
}

// MarshalText writes the word that names r in a token.
func (r Right) MarshalText() ([]byte, error) {
	if r >= rights {
		return nil, fmt.Errorf("auth: no such right: %d", uint8(r))
	}
	return []byte(rightNames[r]), nil
}

// ParseRight returns the right that word names.
func ParseRight(word string) (Right, error) {
	for r, name := range rightNames {
		if name == word {
			return Right(r), nil
		}
	}
	return 0, fmt.Errorf("auth: %q is no right; rights are join, publish, command, presence, history", word)
}

// rightSet has one bit for each Right.
type rightSet uint8

func (s rightSet) has(r Right) bool { return r < rights && s&(1<<r) != 0 }

func (s rightSet) with(r Right) rightSet { return s | 1<<r }
