package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

func at(epoch string, offset uint64) codec.Position {
	return codec.Position{Epoch: epoch, Offset: offset}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// told makes entries that come a second apart, from a second on.
func told(entries ...Entry) []Entry {
	for i := range entries {
		if entries[i].At == 0 {
			entries[i].At = seconds(i + 1)
		}
	}
	return entries
}

func joined(p codec.Position) Entry    { return Entry{Kind: Joined, Position: p} }
func recovered(p codec.Position) Entry { return Entry{Kind: Joined, Position: p, Recovered: true} }
func event(p codec.Position, number int) Entry {
	return Entry{Kind: Event, Position: p, Key: Key{1, number}}
}
func reset(reason codec.ResetReason, p codec.Position) Entry {
	return Entry{Kind: Reset, Position: p, Reason: reason}
}

var lost, left = Entry{Kind: Lost}, Entry{Kind: Left}

// accepted are the publisher's numbers 1 … at these positions, a second apart.
func accepted(list ...codec.Position) (sent []Publication) {
	for i, p := range list {
		sent = append(sent, Publication{Key: Key{1, i + 1}, Accepted: true, Position: p, At: seconds(i + 2)})
	}
	return sent
}

var (
	three = accepted(at("e", 1), at("e", 2), at("e", 3))
	// Two were accepted and lost, by a failover at the fifth second, and two follow.
	tail = append(accepted(at("e", 1), at("e", 2), at("e", 3)),
		Publication{Key{1, 4}, true, at("f", 2), seconds(8)}, Publication{Key{1, 5}, true, at("f", 3), seconds(9)})
	failover = []Fault{{"failover", true, seconds(4), seconds(6)}}
	flush    = []Fault{{"flush", true, seconds(4), seconds(5)}}
	bounce   = []Fault{{"bounce", false, seconds(1), seconds(60)}}
)

func TestCheck(t *testing.T) {
	whole := told(joined(at("e", 0)), event(at("e", 1), 1), event(at("e", 2), 2), event(at("e", 3), 3))
	for _, c := range []struct {
		name    string
		sent    []Publication
		faults  []Fault
		members [][]Entry
		want    []Rule
	}{
		{"all is well", three, nil, [][]Entry{whole, whole}, nil},
		{"who joins later has what comes later", three, nil, [][]Entry{whole, told(joined(at("e", 2)), event(at("e", 3), 3))}, nil},
		{"a lost connection, and on from where it was", three, nil,
			[][]Entry{told(joined(at("e", 0)), event(at("e", 1), 1), lost, recovered(at("e", 1)), event(at("e", 2), 2), event(at("e", 3), 3))}, nil},
		{"what was given up may come, or not", append(slices.Clone(three), Publication{Key: Key{1, 4}}, Publication{Key: Key{1, 5}}), nil,
			[][]Entry{append(slices.Clone(whole), event(at("e", 4), 4))}, nil},

		{"a hole", three, nil, [][]Entry{told(joined(at("e", 0)), event(at("e", 1), 1), event(at("e", 3), 3))}, []Rule{Loss, Loss}},
		{"a hole after coming back", three, nil,
			[][]Entry{whole, told(joined(at("e", 0)), event(at("e", 1), 1), lost, recovered(at("e", 2)), event(at("e", 3), 3))}, []Rule{Loss}},
		{"begun anew in silence", three, nil,
			[][]Entry{whole, told(joined(at("e", 0)), event(at("e", 1), 1), lost, joined(at("e", 2)), event(at("e", 3), 3))}, []Rule{Loss}},
		{"the end is missing", three, nil, [][]Entry{whole, whole[:3]}, []Rule{Loss}},
		{"it never came back", three, nil, [][]Entry{whole, append(slices.Clone(whole[:2]), lost)}, []Rule{Loss, Loss}},
		{"nobody had it", three, nil, [][]Entry{told(joined(at("e", 3)))}, []Rule{Loss, Loss, Loss}},
		{"another epoch with a hole", append(slices.Clone(three[:1]), Publication{Key{1, 2}, true, at("f", 3), seconds(3)}), failover,
			[][]Entry{told(joined(at("e", 0)), event(at("e", 1), 1), event(at("f", 3), 2))}, []Rule{Loss}},

		{"an event twice", three, nil, [][]Entry{append(slices.Clone(whole), event(at("e", 3), 3))}, []Rule{Repeat}},
		{"a publication twice", three, nil, [][]Entry{append(slices.Clone(whole), event(at("e", 4), 3))}, []Rule{Repeat}},
		{"on from before where it was", three, nil,
			[][]Entry{append(slices.Clone(whole), lost, recovered(at("e", 2)), event(at("e", 3), 3))}, []Rule{Repeat}},

		{"a publisher's events in another order", accepted(at("e", 2), at("e", 1), at("e", 3)), nil,
			[][]Entry{told(joined(at("e", 0)), event(at("e", 1), 2), event(at("e", 2), 1), event(at("e", 3), 3))}, []Rule{Disorder}},
		{"two events change places", three, nil, [][]Entry{whole,
			told(joined(at("e", 0)), event(at("e", 2), 2), event(at("e", 1), 1), event(at("e", 3), 3))}, []Rule{Loss, Repeat}},
		{"before the answer to the join", three, nil,
			[][]Entry{whole, told(event(at("e", 1), 1), joined(at("e", 1)), event(at("e", 2), 2), event(at("e", 3), 3))}, []Rule{Disorder}},
		{"after the room was left", three, nil,
			[][]Entry{whole, told(joined(at("e", 0)), event(at("e", 1), 1), event(at("e", 2), 2), left, event(at("e", 3), 3))}, []Rule{Disorder, Loss}},

		{"two orders", three, nil, [][]Entry{whole,
			told(joined(at("e", 0)), event(at("e", 1), 2), event(at("e", 2), 1), event(at("e", 3), 3))}, []Rule{Split, Split, Split, Split}},
		{"not what its publisher was told", three, nil,
			[][]Entry{told(joined(at("e", 0)), event(at("e", 1), 1), event(at("e", 2), 3), event(at("e", 3), 2))}, []Rule{Split, Split}},
		{"from nowhere", three, nil, [][]Entry{append(slices.Clone(whole), event(at("e", 4), 9))}, []Rule{Unknown}},
		{"recovered without a position", three, nil,
			[][]Entry{told(recovered(at("e", 0)), event(at("e", 1), 1), event(at("e", 2), 2), event(at("e", 3), 3))}, []Rule{Unknown}},

		{"reset, and nothing was lost", three, bounce,
			[][]Entry{whole, told(joined(at("e", 0)), event(at("e", 1), 1), reset(codec.ResetEpoch, at("f", 0)))}, []Rule{Needless, Loss}},
		{"reset by a join, and nothing was lost", three, nil,
			[][]Entry{whole, told(joined(at("e", 0)), lost, Entry{Kind: Joined, Reason: codec.ResetExpired, Position: at("e", 3)})}, []Rule{Needless}},
		{"reset after a flush", append(slices.Clone(three), Publication{Key{1, 4}, true, at("f", 1), seconds(7)}), flush,
			[][]Entry{append(slices.Clone(whole), reset(codec.ResetEpoch, at("f", 0)), event(at("f", 1), 4))}, nil},
		{"reset to beyond what came first after a flush", append(slices.Clone(three), Publication{Key{1, 4}, true, at("f", 1), seconds(7)}, Publication{Key{1, 5}, true, at("f", 2), seconds(8)}), flush,
			[][]Entry{append(slices.Clone(whole), reset(codec.ResetEpoch, at("f", 1)), event(at("f", 2), 5))}, nil},
		{"reset twice for one flush", append(slices.Clone(three), Publication{Key{1, 4}, true, at("g", 1), seconds(7)}), flush,
			[][]Entry{append(slices.Clone(whole), Entry{At: seconds(6), Kind: Reset, Reason: codec.ResetEpoch, Position: at("f", 0)},
				Entry{At: seconds(7), Kind: Reset, Reason: codec.ResetEpoch, Position: at("g", 0)}, event(at("g", 1), 4))}, []Rule{Needless}},
		{"a flush that nobody was told of", append(slices.Clone(three), Publication{Key{1, 4}, true, at("f", 1), seconds(7)}), flush,
			[][]Entry{append(slices.Clone(whole), event(at("f", 1), 4))}, []Rule{Repeat, Loss, Loss}},

		{"a failover resets who saw what was lost, and nobody else", tail, failover, [][]Entry{
			told(joined(at("e", 0)), event(at("e", 1), 1), event(at("e", 2), 2), event(at("e", 3), 3), reset(codec.ResetEpoch, at("f", 1)), event(at("f", 2), 4), event(at("f", 3), 5)),
			told(joined(at("e", 0)), event(at("e", 1), 1), event(at("f", 2), 4), event(at("f", 3), 5)),
		}, nil},
		{"one stays in the past without a word", tail, failover, [][]Entry{
			told(joined(at("e", 0)), event(at("e", 1), 1), event(at("f", 2), 4), event(at("f", 3), 5)),
			whole,
		}, []Rule{Loss}},
		{"a failover resets one too many", tail, failover, [][]Entry{
			told(joined(at("e", 0)), event(at("e", 1), 1), event(at("f", 2), 4), event(at("f", 3), 5)),
			told(joined(at("e", 0)), event(at("e", 1), 1), Entry{At: seconds(5), Kind: Reset, Reason: codec.ResetEpoch, Position: at("f", 1)}, event(at("f", 2), 4), event(at("f", 3), 5)),
		}, []Rule{Needless}},
		{"what a failover loses, lost without one", tail, nil, [][]Entry{
			told(joined(at("e", 0)), event(at("e", 1), 1), event(at("f", 2), 4), event(at("f", 3), 5)),
		}, []Rule{Loss, Loss, Loss, Loss}},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := Room{Name: "chat:1", Kept: 100, Sent: c.sent}
			for i, entries := range c.members {
				room.Members = append(room.Members, Member{fmt.Sprint(i), told(entries...)})
			}
			var got []Rule
			found := Check(&Run{Rooms: []Room{room}, Faults: c.faults})
			for _, f := range found {
				got = append(got, f.Rule)
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) {
				t.Errorf("found %+v, want %v", found, c.want)
			}
		})
	}
}

// Whoever is further behind than the buffer reaches is reset, and whoever is not is not.
func TestResetsBeyondTheBuffer(t *testing.T) {
	for _, c := range []struct {
		to    uint64
		heard int // of the next event, in seconds; 0: there is none
		want  int
	}{
		{10, 0, 1}, {11, 0, 0},
		{10, 4, 0}, // it was in the buffer already when the room read
		{10, 5, 1},
	} {
		room := Room{Name: "chat:1", Kept: 10, Members: []Member{{"ann", told(joined(at("e", 0)), lost,
			Entry{Kind: Joined, Reason: codec.ResetExpired, Position: at("e", c.to)})}}}
		if c.heard > 0 {
			e := event(at("e", c.to+1), 1)
			e.At = seconds(c.heard)
			room.Members[0].Entries = append(room.Members[0].Entries, e)
			room.Sent = []Publication{{Key{1, 1}, true, e.Position, e.At}}
		}
		if got := Check(&Run{Rooms: []Room{room}}); len(got) != c.want {
			t.Errorf("reset at %d of a buffer of 10, the next event heard of at second %d: %+v", c.to, c.heard, got)
		}
	}
}
