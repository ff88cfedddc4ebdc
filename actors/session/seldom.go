package session

// seldom is what a session does not need that only listens, and is well. It is made when
// something of it is needed, and given up at a tick that finds nothing in it. Owned by
// the actor.
type seldom struct {
	hello    *opened // while opening
	commands commands
	refresh  *refresh // nil: no credentials are being looked at
	// inquiries wait for an Authorizer; nil: none do
	inquiries *inquiries
	pace      pace
	reach     *reach // what the client was told last; nil: that all is well
	deadline  int64  // end of closing; 0: it is not closing
	untold    bool   // memberships without echo are to be told where they stand
	told      int64  // when they last were; 0: never
}

// rarely is s.seldom, made if need be.
func (s *Session) rarely() *seldom {
	if s.seldom == nil {
		s.seldom = new(seldom)
	}
	return s.seldom
}

// idle: nothing in it matters any more.
func (r *seldom) idle(now int64) bool {
	return r.hello == nil && r.commands.list == nil && r.refresh == nil && r.inquiries == nil && r.pace == (pace{}) &&
		r.reach == nil && r.deadline == 0 && !r.untold && (r.told == 0 || now >= r.told+int64(tellEvery))
}
