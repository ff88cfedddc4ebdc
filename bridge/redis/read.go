package redis

import (
	"errors"
	"slices"

	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
)

var readScript = newScript("position", "read")

// What one page carries at most, whatever is asked for: a server does nothing else
// meanwhile.
const (
	pageEvents = 4096
	pageBytes  = 4 << 20
)

// Read implements bridge.Broker.
func (b *Bridge) Read(topic codec.Topic, req bridge.ReadRequest, done func(bridge.Page, *codec.Error)) {
	b.read(topic, req, req.HasSince, func(page bridge.Page, err *codec.Error) {
		l := b.listenerOf(b.names.room(topic))
		if err == nil {
			l.learn(topic, page.Head)
		}
		done(page, err)
		if err == nil && req.HasSince && !req.Reverse && req.Limit > 0 && !page.More {
			l.readToTheEnd(topic)
		}
	})
}

// read asks for a page; joins keeps the topic's record for a day.
func (b *Bridge) read(topic codec.Topic, req bridge.ReadRequest, joins bool, done func(bridge.Page, *codec.Error)) {
	if req.Bytes < 1 || req.Bytes > pageBytes {
		req.Bytes = pageBytes
	}
	at := b.names.placeOf(topic)
	claim := b.listenerOf(at.channel).claim(topic)
	k := &call{
		script: &readScript,
		keys:   []string{at.buffer, at.meta},
		// Those that ask for heads alone go together, others may bring a lot.
		company: &company{script: &readScript, slot: at.tag, alone: req.Limit > 0},
		args: []any{
			claim.Epoch, decimal(claim.Offset),
			flag(req.HasSince), req.Since.Epoch, decimal(min(req.Since.Offset, codec.MaxOffset)),
			min(max(req.Limit, 0), pageEvents), req.Bytes, flag(req.Reverse), flag(joins),
		},
		done: func(reply any, err error) {
			page, bad := b.page(topic, req, reply, err)
			if bad != nil {
				b.log.Error("redis: a read was refused", "err", bad)
				done(bridge.Page{}, errServer)
				return
			}
			done(page, nil)
		},
	}
	b.caller.put(topic.Tenant, at.channel, &op{
		size: 256, call: k, fail: func(err error) { done(bridge.Page{}, coded(err)) },
	})
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// page reads the script's answer.
func (b *Bridge) page(topic codec.Topic, req bridge.ReadRequest, reply any, err error) (page bridge.Page, bad error) {
	list, ok := reply.([]any)
	if err != nil || !ok || len(list) != 5 {
		return page, errors.Join(errReply, err)
	}
	members, err := stringsOf(list[4])
	head, wrong := stringsOf(list[:4])
	if err = errors.Join(err, wrong); err != nil {
		return page, err
	}
	if page.Head, err = position(head[0], head[1]); err != nil {
		return page, err
	}
	switch head[2] {
	case "epoch":
		page.Reset = codec.ResetEpoch
	case "expired":
		page.Reset = codec.ResetExpired
	}
	page.More = head[3] == "1"
	for i, member := range members {
		offset, text, err := memberOf(member)
		at := codec.Position{Epoch: page.Head.Epoch, Offset: offset}
		var e *codec.Event
		if err == nil {
			e, err = event(topic, at, text, b.config.PayloadMax)
		}
		hole := err == nil && i > 0 && len(page.Events) > 0 && !follows(page.Events[len(page.Events)-1].Position.Offset, offset, req.Reverse)
		if err != nil || hole {
			b.counters.Unreadable.Add(1)
			b.log.Error("redis: a member is no event that can be read", "offset", offset, "err", err)
			if req.Reverse {
				page.More = false // the history begins after it
				break
			}
			page.Events = nil // it, and what is before, is gone
			if req.HasSince {
				page.Reset, page.More = codec.ResetExpired, false
				break
			}
			if err != nil {
				continue
			}
		}
		page.Events = append(page.Events, e)
	}
	if req.HasSince && !req.Reverse && len(page.Events) > 0 && page.Events[0].Position.Offset != req.Since.Offset+1 {
		page.Events, page.Reset, page.More = nil, codec.ResetExpired, false
	}
	page.Events = slices.Clip(page.Events)
	return page, nil
}

func follows(before, offset uint64, reverse bool) bool {
	if reverse {
		return offset == before-1
	}
	return offset == before+1
}
