package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// ParseGrants compiles the JSON text of a token's "pulse" claim: an array of
// {"rooms": text, "allow": [text]}. Words in allow that name no right, and
// fields besides these two, are ignored; anything else malformed is an error.
func ParseGrants(claim []byte) (Grants, error) {
	v, err := decodeStrict(claim)
	if err != nil {
		return Grants{}, err
	}
	return grantsOf(v)
}

func grantsOf(claim any) (Grants, error) {
	entries, ok := claim.([]any)
	if !ok {
		return Grants{}, errors.New("auth: the pulse claim is no array")
	}
	list := make([]Grant, 0, len(entries))
	for i, e := range entries {
		fields, ok := e.(map[string]any)
		if !ok {
			return Grants{}, fmt.Errorf("auth: entry %d of the pulse claim is no object", i)
		}
		rooms, ok := fields["rooms"].(string)
		if !ok {
			return Grants{}, fmt.Errorf("auth: entry %d of the pulse claim has no text for rooms", i)
		}
		words, ok := fields["allow"].([]any)
		if !ok {
			return Grants{}, fmt.Errorf("auth: entry %d of the pulse claim has no array for allow", i)
		}
		grant := Grant{Rooms: rooms}
		for _, w := range words {
			word, ok := w.(string)
			if !ok {
				return Grants{}, fmt.Errorf("auth: entry %d of the pulse claim allows something that is no text", i)
			}
			if r, err := ParseRight(word); err == nil {
				grant.Allow = append(grant.Allow, r)
			}
		}
		list = append(list, grant)
	}
	return NewGrants(list...)
}

var (
	errRepeatedKey = errors.New("auth: a key is repeated")
	errNotUTF8     = errors.New("auth: invalid UTF-8")
	errLeftOver    = errors.New("auth: something follows the JSON value")
	errTooDeep     = errors.New("auth: nested too deep")
)

// maxDepth is the nesting that a claim set may have; the protocol's own frames
// stop at the same number.
const maxDepth = 64

// decodeStrict decodes one JSON value, with numbers as json.Number. Two readers
// of a document must not see two meanings in it, so repeated keys are refused at
// any depth, and keys are compared exactly.
func decodeStrict(text []byte) (any, error) {
	if !utf8.Valid(text) {
		return nil, errNotUTF8
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := decodeValue(dec, maxDepth)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errLeftOver
	}
	return v, nil
}

func decodeValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("auth: no JSON: %w", err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == 0 {
		return nil, errTooDeep
	}
	if delim == '[' {
		list := []any{}
		for dec.More() {
			v, err := decodeValue(dec, depth-1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, end(dec)
	}
	object := map[string]any{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("auth: no JSON: %w", err)
		}
		name := key.(string) // the decoder gives no other key
		if _, repeated := object[name]; repeated {
			return nil, errRepeatedKey
		}
		if object[name], err = decodeValue(dec, depth-1); err != nil {
			return nil, err
		}
	}
	return object, end(dec)
}

// end takes the closing bracket of the value that dec is in.
func end(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("auth: no JSON: %w", err)
	}
	return nil
}
