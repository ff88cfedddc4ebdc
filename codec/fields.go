package codec

// field names the fields of requests, so that the gate can note where they are
// without a map.
type field uint8

const (
	fieldUnknown field = iota
	fieldT
	fieldRequestID
	fieldAccept
	fieldAfter
	fieldClient
	fieldData
	fieldDeadlineMS
	fieldDedupKey
	fieldEcho
	fieldEpoch
	fieldEvent
	fieldLimit
	fieldName
	fieldOffset
	fieldPresence
	fieldResume
	fieldReverse
	fieldRoom
	fieldRooms
	fieldToken
	fieldTTLMS
	fieldCount
)

// span is a piece of a message. As places, not slices, many of them are cheap to
// note and to forget.
type span struct{ at, end uint32 }

// fields are where the values of one object's known fields are; empty where there
// is none.
type fields [fieldCount]span

func fieldOf(name string) field {
	switch name {
	case "t":
		return fieldT
	case "id":
		return fieldRequestID
	case "accept":
		return fieldAccept
	case "after":
		return fieldAfter
	case "client":
		return fieldClient
	case "data":
		return fieldData
	case "deadline_ms":
		return fieldDeadlineMS
	case "dedup_key":
		return fieldDedupKey
	case "echo":
		return fieldEcho
	case "epoch":
		return fieldEpoch
	case "event":
		return fieldEvent
	case "limit":
		return fieldLimit
	case "name":
		return fieldName
	case "offset":
		return fieldOffset
	case "presence":
		return fieldPresence
	case "resume":
		return fieldResume
	case "reverse":
		return fieldReverse
	case "room":
		return fieldRoom
	case "rooms":
		return fieldRooms
	case "token":
		return fieldToken
	case "ttl_ms":
		return fieldTTLMS
	}
	return fieldUnknown
}
