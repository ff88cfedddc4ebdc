package bridge

import "github.com/yaza-dev/pulse/codec"

// Presence counts who is in a room over all nodes. A node counts its own
// sessions by itself and tells of a subject when it has its first or has lost
// its last, and when its data changes: a subject is present while at least one
// node has it. The subjects of a node that died leave once, whoever notices.
type Presence interface {
	// Put makes subjects present on this node, or changes their data. generation
	// rises with every Put and Remove of this node about this topic; one that is
	// not above the highest that was applied is a late repeat, and changes nothing.
	Put(topic codec.Topic, generation uint64, members []Member, done func(Mark, *codec.Error))

	// Remove ends this node's having them.
	Remove(topic codec.Topic, generation uint64, subjects []string, done func(Mark, *codec.Error))

	// List reads a page of members in order of subject, those after the given
	// one (empty: from the first), limit at most.
	List(topic codec.Topic, after string, limit int, done func(MemberPage, *codec.Error))

	// Watch begins to bring the topic's changes to w, which must be comparable;
	// Unwatch ends it as Broker.Unsubscribe does.
	Watch(topic codec.Topic, w Watcher)
	Unwatch(topic codec.Topic, w Watcher)

	// Close ends it. Nobody is removed: that is for whoever closes the rooms.
	Close()
}

// Member is a subject in a room.
type Member struct {
	Subject  string
	Sessions int        // in Put this node's at that moment, in a page the sum over nodes; informative, its changes alone are not told
	Data     codec.Data // what it joined with last; may be absent
}

// Mark places a change: Seq counts the changes of one room within an epoch, and
// the epoch is new whenever the count may have begun anew.
type Mark struct {
	Epoch string
	Seq   uint64
}

// MemberPage is a part of a room's members.
type MemberPage struct {
	Mark    Mark // what the page reflects
	Count   int  // subjects in all
	Members []Member
	More    bool
}

// Watcher gets changes of presence. It only posts, like a Sink.
type Watcher interface {
	// Changed brings one change. A watcher is whole while Prev is the Seq that
	// it has, in the same epoch; otherwise it lists anew. Applying one twice is
	// harmless.
	Changed(c PresenceChange)

	// Lost tells that changes may have been lost on the way: list anew.
	Lost()
}

// PresenceChange is what one step changed: who came, whose data is another, who
// has left every node. Subjects whose state did not change are not in it.
type PresenceChange struct {
	Mark    Mark
	Prev    uint64 // Seq of the change before
	Joined  []Member
	Updated []Member
	Left    []string
}
