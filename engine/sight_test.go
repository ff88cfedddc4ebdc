package engine

import (
	"encoding/json"
	"errors"
	"fmt"
)

// sight is what a client knows of who is in a room, as PROTOCOL.md tells clients
// to keep it.
type sight struct {
	pe    string
	seq   int64
	there map[string]string // data by subject, as text; nil: only the count is known
	count int64
}

func whole(v any) int64 {
	n, _ := v.(json.Number)
	i, _ := n.Int64()
	return i
}

// begin takes a join's result.
func (c *sight) begin(ok frame) {
	c.pe, _ = ok["pe"].(string)
	c.seq, c.count, c.there = whole(ok["seq"]), whole(ok["count"]), nil
	if list, listed := ok["members"].([]any); listed {
		c.list(list)
	}
}

func (c *sight) list(members []any) {
	c.there = map[string]string{}
	for _, m := range members {
		c.add(m)
	}
}

func (c *sight) add(m any) {
	f := frame(m.(map[string]any))
	data, _ := json.Marshal(f["data"])
	c.there[f["subject"].(string)] = string(data)
}

// change takes a presence frame.
func (c *sight) change(f frame) error {
	pe, _ := f["pe"].(string)
	full, _ := f["full"].(bool)
	if !full && (pe != c.pe || whole(f["prev"]) != c.seq) {
		return fmt.Errorf("not whole: at %s:%d", c.pe, c.seq)
	}
	if c.seq >= whole(f["seq"]) && pe == c.pe {
		return fmt.Errorf("does not go on: at %d", c.seq)
	}
	c.pe, c.seq = pe, whole(f["seq"])
	members, _ := f["members"].([]any)
	joins, _ := f["join"].([]any)
	updates, _ := f["update"].([]any)
	leaves, _ := f["leave"].([]any)
	switch {
	case full:
		c.list(members)
		c.count = whole(f["count"])
	case f["count"] != nil:
		c.there, c.count = nil, whole(f["count"])
	case c.there == nil:
		return errors.New("changes of a list that was never given")
	default:
		for _, m := range joins {
			if subject := m.(map[string]any)["subject"].(string); c.there[subject] != "" {
				return fmt.Errorf("%s joins, and is there", subject)
			}
			c.add(m)
		}
		for _, m := range updates {
			c.add(m)
		}
		for _, s := range leaves {
			delete(c.there, s.(string))
		}
		c.count = int64(len(c.there))
	}
	return nil
}
