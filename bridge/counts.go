package bridge

// Counts are what a Broker that reaches other nodes has counted since it began: what
// cannot be seen from outside it.
type Counts struct {
	Outages      uint64 // times that it went from live to not, however many connections fell
	Resubscribed uint64 // channels, after what carried them was lost
	ProbesMissed uint64 // connections that brought nothing, though they stood
	Unreadable   uint64 // messages and kept events that this build cannot read

	Waiting int // calls that wait for the store, or are under way: now
}

// Counted is a Broker that counts.
type Counted interface {
	Broker
	Counts() Counts
}
