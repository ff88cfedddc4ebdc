package codec

import (
	"strings"
	"testing"
)

// The size of a member is what it adds to a list, in neither codec less.
func TestMemberSize(t *testing.T) {
	for _, m := range []Member{
		{Subject: "a", Sessions: 1},
		{Subject: strings.Repeat("\x01\"é", 60), Sessions: 1 << 40},
		{Subject: "b", Sessions: 2, Data: mustData(t, JSON, []byte(`{"a":[1.5,2.5,true,null],"b":"text"}`))},
		{Subject: "c", Sessions: 3, Data: mustData(t, Msgpack, []byte("\xc4\x03\x00\x01\x02"))},
	} {
		most := 0
		for _, p := range Protocols() {
			one := len(p.Append(nil, &PresenceFrame{Full: true, Members: []Member{m}}))
			two := len(p.Append(nil, &PresenceFrame{Full: true, Members: []Member{m, m}}))
			most = max(most, two-one)
		}
		if got := m.Size(); got < most || got > most+1 {
			t.Errorf("%s: size %d, adds %d", m.Subject, got, most)
		}
	}
}

func TestDataSame(t *testing.T) {
	one, other := mustData(t, JSON, []byte("1")), mustData(t, JSON, []byte("2"))
	for name, same := range map[string]bool{
		"itself":        one.Same(mustData(t, JSON, []byte("1"))),
		"both absent":   Data{}.Same(Data{}),
		"another":       !one.Same(other),
		"another codec": !one.Same(mustData(t, Msgpack, []byte("1"))),
		"absent":        !one.Same(Data{}) && !Data{}.Same(mustData(t, JSON, []byte("null"))),
	} {
		if !same {
			t.Error(name)
		}
	}
}
