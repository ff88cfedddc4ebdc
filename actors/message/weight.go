package message

import "github.com/yaza-dev/pulse/codec"

// Weight is what a client's request counts for against a rate of bytes: its data,
// names and keys, whatever codec they came in.
func Weight(r codec.Request) int {
	switch r := r.(type) {
	case *codec.Publish:
		return r.Data.Len() + len(r.Room) + len(r.Event) + len(r.DedupKey)
	case *codec.Command:
		return r.Data.Len() + len(r.Room) + len(r.Name) + len(r.DedupKey)
	case *codec.Join:
		return r.Data.Len() + len(r.Room)
	case *codec.History:
		return len(r.Room)
	}
	return 0
}
