package redis

import (
	"cmp"

	goredis "github.com/redis/go-redis/v9"

	"github.com/yaza-dev/pulse/bridge"
)

// company is what calls have in common that go together.
type company struct {
	script    *script
	slot      string           // the cluster's tag
	retention bridge.Retention // of publications
	alone     bool             // none goes with it
}

// compare is any order that brings together what can go together; nil comes first.
func (c *company) compare(other *company) int {
	if c == nil || other == nil {
		return cmp.Compare(flag(c != nil), flag(other != nil))
	}
	a, b := &c.retention, &other.retention
	return cmp.Or(cmp.Compare(c.script.hash, other.script.hash), cmp.Compare(flag(c.alone), flag(other.alone)), cmp.Compare(c.slot, other.slot), cmp.Compare(a.Events, b.Events), cmp.Compare(a.Age, b.Age),
		cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.DedupWindow, b.DedupWindow))
}

// group is how many of the first of which are sent as one call.
func group(sent []*batch, which []int) int {
	first := sent[which[0]]
	if first.call.company == nil || first.call.company.alone {
		return 1
	}
	n, events, bytes := 1, first.events, first.bytes
	for ; n < len(which); n++ {
		b := sent[which[n]]
		events, bytes = events+b.events, bytes+b.bytes
		if b.call.company == nil || *b.call.company != *first.call.company || events > callEvents || bytes > callBytes {
			break
		}
	}
	return n
}

func (c *caller) command(pipe goredis.Pipeliner, sent []*batch, members []int, how manner) *goredis.Cmd {
	k := sent[members[0]].call
	keys, args := k.keys, k.args
	if k.company != nil {
		again, more := how == alone, 0
		for _, i := range members {
			again = again || sent[i].tried
			more += len(sent[i].call.args)
		}
		lead := c.lead(k.company)
		args = append(append(make([]any, 0, len(lead)+1+more), lead...), flag(again))
		keys = make([]string, 0, len(keys)*len(members))
		for _, i := range members {
			keys, args = append(keys, sent[i].call.keys...), append(args, sent[i].call.args...)
		}
	}
	switch {
	case k.script == nil:
		cmd := goredis.NewCmd(c.ctx, args...)
		if len(args) > 1 {
			cmd.SetFirstKeyPos(1) // by which a cluster's server is found
		}
		_ = pipe.Process(c.ctx, cmd) // it says later what became of it
		return cmd
	case how == byName:
		return pipe.EvalSha(c.ctx, k.script.hash, keys, args...)
	default:
		return pipe.Eval(c.ctx, k.script.text, keys, args...)
	}
}
