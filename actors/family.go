package actors

import "github.com/asynkron/protoactor-go/actor"

// family are the children of an actor. protoactor, whose own set of them would cost
// 90 bytes for each, knows one child in their place, and this as its process: it is
// told to stop when the actor stops or restarts, and has ended when the last of them
// has. Owned by the actor's calls.
type family struct {
	proto    actor.Context // of the actor
	self     *Context
	pid      *actor.PID // of the child in their place
	children []*Context // each knows its place
	ending   bool       // no more children
	over     bool       // protoactor was told
}

var _ actor.Process = (*family)(nil)

// newFamily makes the family of an actor that has just been started.
func newFamily(c *Context, proto actor.Context) *family {
	f := &family{proto: proto, self: c}
	f.pid, _ = proto.SpawnNamed(c.system.place, "children") // its spawner never fails
	return f
}

// newPlace is how the child in the place of all is spawned: as a PID and nothing else.
func newPlace() *actor.Props {
	return actor.PropsFromFunc(nil, actor.WithSpawnFunc(
		func(_ *actor.ActorSystem, id string, _ *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
			return &actor.PID{Address: familyAddress, Id: id, RequestId: parent.Self().RequestId}, nil
		}))
}

// add takes a child on.
func (f *family) add(child *Context) {
	child.at = int32(len(f.children))
	f.children = append(f.children, child)
}

// remove forgets a child that has ended.
func (f *family) remove(child *Context) {
	end := len(f.children) - 1
	last := f.children[end]
	f.children[child.at], last.at = last, child.at
	f.children[end] = nil
	f.children = f.children[:end]
}

// SendSystemMessage is protoactor's, for a Stop.
func (f *family) SendSystemMessage(_ *actor.PID, msg any) {
	if _, ok := msg.(*actor.Stop); !ok {
		return
	}
	f.ending = true
	for i := len(f.children) - 1; i >= 0; i-- {
		f.children[i].ref.Stop()
	}
	f.ended()
}

// ended tells protoactor when there are no children any more, and will be none.
func (f *family) ended() {
	if f.ending && len(f.children) == 0 && !f.over {
		f.over = true
		f.self.ref.PostSystemMessage(&actor.Terminated{Who: f.pid})
	}
}

// SendUserMessage and Stop are never called.

func (f *family) SendUserMessage(*actor.PID, any) {}
func (f *family) Stop(*actor.PID)                 {}
