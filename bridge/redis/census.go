package redis

import "time"

var censusScript = newScript("census")

// census is how a node knows among how many a tenant's budget is shared out: each
// says that it lives, in one place, for as long as a lease, and hears how many do.
// While the server is away the last number stays. Owned by pulse.
type census struct{ next time.Time }

func (c *census) tick(b *Bridge, now time.Time) {
	if b.config.TenantBytes == nil || now.Before(c.next) {
		return
	}
	c.next = now.Add(b.config.Lease / 3)
	b.caller.put("", "census", &op{
		call: &call{
			script: &censusScript, keys: []string{b.names.nodes()}, args: []any{b.config.Node, ttl(b.config.Lease)},
			done: func(reply any, err error) {
				nodes, ok := reply.(int64)
				if err != nil || !ok {
					b.log.Warn("redis: nodes cannot be counted", "err", err)
					return
				}
				b.budget.shared(int(nodes))
			},
		},
		fail: func(error) {}, // the next one tells
		size: 64,
	})
}
