package actors

import "github.com/asynkron/protoactor-go/actor"

// table finds the actor of a PID by the number that the PID carries. It takes the
// place of protoactor's registry, which would keep a name and a process, 110 bytes,
// for each. A number is used again when its actor has ended: what tells actors apart
// is the PID itself.
type table struct {
	actors []*Context // by number; nil: free
	free   []uint32
}

// add gives c a number.
func (t *table) add(c *Context) (number uint32) {
	if last := len(t.free) - 1; last >= 0 {
		number = t.free[last]
		t.free = t.free[:last]
		t.actors[number] = c
		return number
	}
	t.actors = append(t.actors, c)
	return uint32(len(t.actors) - 1)
}

// find is the actor whose number pid carries; nil: there is none. It may be another's
// than the one that pid is of.
func (t *table) find(pid *actor.PID) *Context {
	if int(pid.RequestId) >= len(t.actors) {
		return nil
	}
	return t.actors[pid.RequestId]
}

// remove frees the number of an actor.
func (t *table) remove(c *Context) {
	number := c.ref.PID.RequestId
	t.actors[number] = nil
	t.free = append(t.free, number)
}
