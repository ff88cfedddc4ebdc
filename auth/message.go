package auth

import (
	"encoding/binary"
	"errors"
	"time"
)

// messagePurpose is bound into what nodes tell each other.
const messagePurpose = "pulse.v1 between nodes"

// messageLife is for how long a message is taken, either way: clocks of nodes differ by
// less.
const messageLife = time.Minute

// ErrMessage is the one error of OpenMessage.
var ErrMessage = errors.New("auth: no message of a node")

// SealMessage makes a message that only nodes with one of the keys can read, and only
// for a minute: what carries it learns nothing, and cannot make up another.
func (s *Sealer) SealMessage(plain []byte, now time.Time) []byte {
	dated := append(binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli())), plain...)
	return s.aeads[0].Seal(nil, nil, dated, []byte(messagePurpose))
}

// OpenMessage reads what SealMessage has made, or returns ErrMessage.
func (s *Sealer) OpenMessage(sealed []byte, now time.Time) ([]byte, error) {
	for _, aead := range s.aeads {
		plain, err := aead.Open(nil, nil, sealed, []byte(messagePurpose))
		if err != nil || len(plain) < 8 {
			continue
		}
		at := time.UnixMilli(int64(binary.BigEndian.Uint64(plain)))
		if age := now.Sub(at); age < messageLife && age > -messageLife {
			return plain[8:], nil
		}
	}
	return nil, ErrMessage
}
