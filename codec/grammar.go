package codec

import "unicode/utf8"

// Bounds of names, in bytes.
const (
	maxTenant   = 64
	maxRoom     = 128
	maxKind     = 32
	maxEvent    = 64
	maxSubject  = 256
	maxClient   = 128
	maxDedupKey = 256
	maxEpoch    = 16
)

// ValidTenant reports whether s is a tenant's name: 1-64 of [A-Za-z0-9_.-], not
// "." or "..".
func ValidTenant(s string) bool { return validName(s, maxTenant) }

// ValidKind reports whether s is a room kind: 1-32 of [A-Za-z0-9_.-], not "." or
// "..".
func ValidKind(s string) bool { return validName(s, maxKind) }

// ValidEvent reports whether s is an event's or a command's name: 1-64 of
// [A-Za-z0-9_.-], not "." or "..".
func ValidEvent(s string) bool { return validName(s, maxEvent) }

// ValidRoom reports whether s is a room: a kind, or a kind, ':' and a rest that
// is not empty; at most 128 of [A-Za-z0-9_.~:-].
func ValidRoom(s string) bool {
	kind := RoomKind(s)
	if len(s) > maxRoom || !ValidKind(kind) || len(s) == len(kind)+1 {
		return false
	}
	for i := len(kind); i < len(s); i++ {
		if c := s[i]; !nameByte(c) && c != '~' && c != ':' {
			return false
		}
	}
	return true
}

// ValidSubject reports whether s can be a subject: 1-256 bytes of UTF-8.
func ValidSubject(s string) bool {
	return len(s) >= 1 && len(s) <= maxSubject && utf8.ValidString(s)
}

func validName(s string, most int) bool {
	if len(s) < 1 || len(s) > most || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}
