package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/yaza-dev/pulse/codec"
)

// Publish is an event for a room.
type Publish struct {
	Room, Event string
	// Data is a codec.Data as it is, or a value that encoding/json can encode.
	Data any
	// DedupKey, of at most 256 bytes, lets the server recognise a repeat. Empty: one
	// is made for this call. Set it to repeat a call that failed with ErrUnknown.
	DedupKey string
	// TTL, if above 0, is how long the event may wait, here and at the server; later
	// it is refused.
	TTL time.Duration
}

// Publish offers an event and waits for what becomes of it. After a lost
// connection it is repeated, for a minute from its first sending; a server that
// remembers keys for as long does it once. A refusal is an *Error. An error that wraps ErrUnknown, ctx's after it
// was sent included, leaves open whether the event was published.
func (c *Client) Publish(ctx context.Context, p Publish) (codec.PublishResult, error) {
	if p.DedupKey == "" {
		p.DedupKey = rand.Text()
	}
	r, err := p.request()
	if err != nil {
		return codec.PublishResult{}, err
	}
	request := &call{request: r, size: requestSize + r.Data.Len() + len(p.DedupKey), lost: isRepeated, publish: true}
	if r.HasTTL {
		request.until = time.Now().Add(p.TTL)
	}
	ok, err := result[*codec.PublishResult](c.do(ctx, request))
	if err != nil {
		return codec.PublishResult{}, err
	}
	return *ok, nil
}

// TryPublish hands an event to the connection and does not wait: for what is worth
// nothing later, like a cursor. It is never repeated, and a refusal by the server
// is only counted. The error is ErrOffline, ErrFull, or says what is wrong with p.
func (c *Client) TryPublish(p Publish) error {
	r, err := p.request()
	if err != nil {
		return err
	}
	return c.trySend(r)
}

func (c *Client) trySend(r codec.Request) error {
	frame := codec.AppendRequest(nil, c.o.Codec, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing != nil:
		return c.closing
	case c.link == nil || c.link.leaving:
		return ErrOffline
	case len(frame) > c.maxBytes:
		return codec.NewError(codec.CodeTooLarge, "the request is over the server's max_message_bytes")
	case !c.link.trySend(frame):
		return ErrFull
	}
	return nil
}

func (p *Publish) request() (*codec.Publish, error) {
	data, err := dataOf(p.Data)
	if err != nil {
		return nil, err
	}
	return &codec.Publish{
		Room: p.Room, Event: p.Event, Data: data, DedupKey: p.DedupKey, TTL: p.TTL, HasTTL: p.TTL > 0,
	}, nil
}

// Command is a request to a room's handler, or without a Room to the tenant's.
type Command struct {
	Room, Name string
	// Data is a codec.Data as it is, or a value that encoding/json can encode; nil:
	// none.
	Data any
	// DedupKey, of at most 256 bytes, lets the server recognise a repeat: with it
	// the command is repeated after a lost connection, as a publish is.
	DedupKey string
}

// Command asks and waits for the answer. The server learns how long ctx lets it
// wait. Without a DedupKey a lost connection ends it with ErrUnknown. A refusal,
// the handler's own included, is an *Error.
func (c *Client) Command(ctx context.Context, cmd Command) (codec.Data, error) {
	r := &codec.Command{Room: cmd.Room, Name: cmd.Name, DedupKey: cmd.DedupKey}
	if cmd.Data != nil {
		data, err := dataOf(cmd.Data)
		if err != nil {
			return codec.Data{}, err
		}
		r.Data = data
	}
	request := &call{request: r, size: requestSize + r.Data.Len()}
	request.until, _ = ctx.Deadline()
	if cmd.DedupKey != "" {
		request.lost = isRepeated
	}
	ok, err := result[*codec.CommandResult](c.do(ctx, request))
	if err != nil {
		return codec.Data{}, err
	}
	return ok.Data, nil
}

func dataOf(v any) (codec.Data, error) {
	data, err := codec.NewData(v)
	if err != nil {
		return data, fmt.Errorf("client: %w", err)
	}
	return data, nil
}

// HistoryQuery asks for buffered events of a room: those after the position, oldest
// first; in Reverse those before it, newest first. The zero position is the end to
// begin at. Limit is 100 when 0, and at most 1,000.
type HistoryQuery struct {
	Room     string
	Position codec.Position
	Limit    int
	Reverse  bool
}

// HistoryPage is a part of a room's history.
type HistoryPage struct {
	Events   []*Event
	Position codec.Position // where the next page goes on
	More     bool
	// Reset, if not zero, says that the position asked from does not hold.
	Reset codec.ResetReason
}

// History fetches one page of buffered events.
func (c *Client) History(ctx context.Context, q HistoryQuery) (*HistoryPage, error) {
	ok, err := result[*codec.HistoryResult](c.do(ctx, &call{
		request: &codec.History{Room: q.Room, Position: q.Position, HasPosition: !q.Position.IsZero(), Limit: q.Limit, Reverse: q.Reverse},
		size:    requestSize, lost: isRepeated,
	}))
	if err != nil {
		return nil, err
	}
	page := &HistoryPage{Position: ok.Position, More: ok.More, Reset: ok.Reset}
	for _, e := range ok.Events {
		page.Events = append(page.Events, eventOf(e))
	}
	return page, nil
}

// PresenceQuery asks who is in a room, in order of subject, after the subject
// After. Limit is 100 when 0, and at most 1,000.
type PresenceQuery struct {
	Room, After string
	Limit       int
}

// PresencePage is a part of a room's members.
type PresencePage struct {
	Members []codec.Member
	Count   int    // of all
	After   string // where the next page goes on; empty: no more
}

// Presence fetches one page of members.
func (c *Client) Presence(ctx context.Context, q PresenceQuery) (*PresencePage, error) {
	ok, err := result[*codec.PresenceResult](c.do(ctx, &call{
		request: &codec.PresenceQuery{Room: q.Room, Limit: q.Limit, After: q.After},
		size:    requestSize, lost: isRepeated,
	}))
	if err != nil {
		return nil, err
	}
	return &PresencePage{Members: ok.Members, Count: ok.Count, After: ok.After}, nil
}

// requestSize is what a waiting request is counted with besides its data.
const requestSize = 512

// reads reports whether the request changes nothing.
func (c *call) reads() bool {
	switch c.request.(type) {
	case *codec.History, *codec.PresenceQuery:
		return true
	}
	return false
}

// result is the answer as the type that its request gets.
func result[R codec.Result](r codec.Result, err error) (ok R, _ error) {
	if err != nil {
		return ok, err
	}
	ok, fits := r.(R)
	if !fits {
		return ok, fmt.Errorf("client: the server answered with a %T", r)
	}
	return ok, nil
}
