package mailbox

// Abandon closes the mailbox for good and hands everything that waits in it to
// Removed, from any goroutine: for an actor whose code does not return, and
// which therefore cannot be stopped. The message in its hand stays with it.
func (m *Mailbox) Abandon() {
	m.set(closed)
	m.discard()
}
