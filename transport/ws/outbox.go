package ws

// kind is what a piece of output is.
type kind uint8

const (
	kindWrite   kind = iota // a Write's: ready is owed if it waited
	kindControl             // a ping, a pong or the close frame
)

// piece is something to be written as a whole, before anything else.
type piece struct {
	b    []byte
	kind kind
}

// outbox is what waits for the writing side of a socket, and whether that side
// has an owner. Whoever finds it without one becomes the owner, and must write
// what take returns until there is nothing; everybody else only leaves what it
// has. So pieces never mix, and nobody waits for a socket that another is using.
//
// It is pure; its conn guards it.
type outbox struct {
	owned bool
	dead  bool // the socket takes nothing more; there will be no owner

	write   []byte // a Write that found an owner; nil: none
	pong    []byte // payload of the newest ping that is not answered yet; nil: none
	ping    bool
	records bool   // TLS has records of its own, which go out beside any piece
	close   []byte // the close frame; nil: none
	ended   bool   // the close frame was taken: nothing may follow
}

// claim makes the caller the owner, unless there is one or can be none.
func (o *outbox) claim() bool {
	if o.owned || o.dead {
		return false
	}
	o.owned = true
	return true
}

// take returns what to write next; false ends the ownership. A write comes first,
// since its session waits for it, and the close comes last.
func (o *outbox) take() (p piece, ok bool) {
	switch {
	case o.dead || o.ended:
		o.owned = false
		return piece{}, false
	case o.write != nil:
		p = piece{o.write, kindWrite}
		o.write = nil
	case o.pong != nil:
		p = piece{appendFrame(nil, opPong, o.pong), kindControl}
		o.pong = nil
	case o.ping:
		p = piece{appendFrame(nil, opPing, nil), kindControl}
		o.ping = false
	case o.records:
		p = piece{nil, kindControl}
		o.records = false
	case o.close != nil:
		p = piece{o.close, kindControl}
		o.ended = true
	default:
		o.owned = false
		return piece{}, false
	}
	return p, true
}
