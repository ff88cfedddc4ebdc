package redis

import "github.com/yaza-dev/pulse/bridge"

// partSubjects is how many subjects one call changes at most; callBytes bounds what
// they have. The server does nothing else meanwhile.
const partSubjects = 512

// part is what one call changes. The parts of an update have its effect one after
// another, each by itself; members stand in the last one or in one before it.
type part struct {
	bridge.PresenceUpdate
	// stay are those of earlier parts, if Whole.
	stay []string
	size int
}

// partsOf cuts an update up: those who leave first. There is always one part, and
// only the last can be Whole.
func partsOf(u bridge.PresenceUpdate) (parts []part) {
	var p part
	room := func(size int) {
		if len(p.Put)+len(p.Remove) == partSubjects || p.size > 0 && p.size+size > callBytes {
			parts = append(parts, p)
			p = part{}
		}
		p.size += size
	}
	if !u.Whole {
		for _, subject := range u.Remove {
			room(len(subject) + 16)
			p.Remove = append(p.Remove, subject)
		}
	}
	for _, m := range u.Put {
		room(len(m.Subject) + m.Data.Len() + 32)
		p.Put = append(p.Put, m)
	}
	if p.Whole = u.Whole; u.Whole {
		for _, earlier := range parts {
			for _, m := range earlier.Put {
				p.stay = append(p.stay, m.Subject)
				p.size += len(m.Subject) + 16
			}
		}
	}
	return append(parts, p)
}
