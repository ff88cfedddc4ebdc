package actors

import "github.com/asynkron/protoactor-go/actor"

// Where PIDs are of, which tells protoactor to ask the System for their processes: an
// actor's, and that of the child in the place of an actor's children.
const (
	actorAddress  = "actor"
	familyAddress = "family"
)

// process is an actor as protoactor sends it what is not a call: Terminated of a
// child, Failure, Restart.
type process Context

var _ actor.Process = (*process)(nil)

func (p *process) SendUserMessage(_ *actor.PID, msg any)   { p.ref.PostUserMessage(msg) }
func (p *process) SendSystemMessage(_ *actor.PID, msg any) { p.ref.PostSystemMessage(msg) }
func (p *process) Stop(*actor.PID)                         { p.ref.Stop() }

// process finds the process of a PID. It is asked once for each PID that is sent
// something, since protoactor remembers the answer.
func (s *System) process(pid *actor.PID) (actor.Process, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.table.find(pid)
	switch {
	case c == nil:
	case c.ref.PID == pid:
		return (*process)(c), true
	case pid.Address == familyAddress && c.family != nil && c.family.pid == pid:
		return c.family, true // asked by its own actor only
	}
	return nil, false
}
