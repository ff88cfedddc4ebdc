package codec

import "testing"

// inCodec is a JSON text in codec c, transcoded by the package itself; tests that
// must not trust it use the msgpack library.
func inCodec(t testing.TB, c Codec, text string) []byte {
	t.Helper()
	if c == JSON {
		return []byte(text)
	}
	return Data{JSON, []byte(text)}.In(Msgpack)
}
