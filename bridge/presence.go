package bridge

import "github.com/yaza-dev/pulse/codec"

// Presence counts who is in a room over all nodes. Each node tells which
// subjects it has, counting its own sessions by itself; a subject is present
// while at least one node has it. The subjects of a node that died leave once,
// whoever notices. A Presence is one node's: two engines do not share it.
type Presence interface {
	// Change tells who is in the topic on this node. done gets a mark at which it
	// has taken effect: every page and change from there on reflects it.
	//
	// generation rises with every Change of this node about this topic; one that
	// is not above the highest that took effect is a late repeat, and changes
	// nothing. A topic that nobody is in or watches may be forgotten, its
	// generation too.
	Change(topic codec.Topic, generation uint64, u PresenceUpdate, done func(Mark, *codec.Error))

	// List reads a page of members in order of subject, those after the given one
	// (empty: from the first), limit at most; below 1: none, which asks for the
	// count alone. It reflects every change that was brought before the call.
	List(topic codec.Topic, after string, limit int, done func(MemberPage, *codec.Error))

	// Watch begins to bring the topic's changes to w, which must be comparable.
	// Until it can, nothing comes.
	Watch(topic codec.Topic, w Watcher)

	// Unwatch ends it. What was under way may still come afterwards.
	Unwatch(topic codec.Topic, w Watcher)

	// Close ends it. Nobody is removed: that is for whoever closes the rooms. It
	// is idempotent.
	Close()
}

// PresenceUpdate is a change of who is in a topic on one node. Applied twice it
// is the same as once.
type PresenceUpdate struct {
	// Whole: this node has those in Put and nobody else.
	Whole bool

	// Put are present on this node, with this data and this node's number of
	// sessions; the number alone is no change that is told.
	Put []codec.Member

	// Remove are not present on this node.
	Remove []string
}

// Mark places a change: Seq counts the changes of one topic within an epoch, and
// the epoch is new whenever the count may have begun anew.
type Mark struct {
	Epoch string // at most 16 bytes
	Seq   uint64 // at most codec.MaxOffset
}

// MemberPage is a part of a topic's members at one instant.
type MemberPage struct {
	Mark    Mark // what the page reflects
	Count   int  // subjects in all
	Members []codec.Member
	More    bool
}

// Watcher gets changes of presence, one call after another for one topic, on any
// goroutine. It only posts, like a Sink.
type Watcher interface {
	// Anew comes first, and again whenever changes, or what this node has told,
	// may have been lost: changes come from here on. List, and tell whole whom
	// this node has.
	Anew()

	// Changed brings one change. A watcher is whole while Prev is the Seq that it
	// has, in the same epoch; otherwise it lists anew. Applying one twice is
	// harmless.
	Changed(c PresenceChange)
}

// PresenceChange is what one step changed: who came, whose data is another, who
// has left every node. It is shared by all watchers: nobody changes it.
type PresenceChange struct {
	Mark    Mark
	Prev    uint64 // Seq of the change before
	Joined  []codec.Member
	Updated []codec.Member
	Left    []string
}
