package backpressure

// Policy says what happens to an entry that meets a full lane.
type Policy uint8

const (
	// Reject refuses the entry: the producer learns it, and the queue is as before.
	Reject Policy = iota
	// DropOldest removes waiting entries from the front until the new one fits.
	DropOldest
	// CoalesceLatest replaces the waiting entry with the same key, full or not, in its place. Without one it acts as Reject.
	CoalesceLatest
	// RequireAck bounds what a member is sent by a window of unacknowledged events, which its owner keeps. In a lane it acts as Reject.
	RequireAck

	// Policies is the number of policies.
	Policies = 4
)

var policyNames = [Policies]string{"reject", "drop_oldest", "coalesce_latest", "require_ack"}

// String is the policy's name in configuration.
func (p Policy) String() string {
	if p < Policies {
		return policyNames[p]
	}
	return "unknown"
}
