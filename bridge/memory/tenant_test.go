package memory

import "testing"

// Whoever found a tenant just before it ended must see that, and look again:
// else what he puts there is lost, or charged for ever.
func TestEndedTenantIsMarked(t *testing.T) {
	b := New(Config{})
	swept := b.enter("acme")
	swept.mu.Unlock()
	b.sweep() // it has no topics
	again := b.enter("acme")
	again.mu.Unlock()
	if !swept.ended || again == swept {
		t.Errorf("after a sweep: ended=%v, the same again=%v", swept.ended, again == swept)
	}
	b.Close()
	if !again.ended || b.enter("acme") != nil {
		t.Errorf("after Close: ended=%v", again.ended)
	}
}
