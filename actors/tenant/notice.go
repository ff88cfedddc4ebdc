package tenant

import "github.com/yaza-dev/pulse/scheduler"

// Notice has every session look at what the engine says of itself; callable by
// anyone. One that begins after it looks by itself.
func (t *Tenant) Notice() { t.mb.Raise(&t.signal, notice) }

// notice begins to go round the sessions, anew if it was under way.
func (t *Tenant) notice() {
	t.unnoticed = t.unnoticed[:0]
	for _, s := range t.sessions {
		t.unnoticed = append(t.unnoticed, s)
	}
	t.noticeMore()
}

// noticeMore serves one slice of the sessions, and asks for another turn if that
// were not all.
func (t *Tenant) noticeMore() {
	n := max(0, len(t.unnoticed)-scheduler.Slice)
	for _, s := range t.unnoticed[n:] {
		s.Notice()
	}
	clear(t.unnoticed[n:])
	if t.unnoticed = t.unnoticed[:n]; n == 0 {
		t.unnoticed = nil
		return
	}
	t.mb.Raise(&t.signal, noticing)
}
