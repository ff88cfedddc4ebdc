package session

import (
	"testing"
	"unsafe"

	"github.com/yaza-dev/pulse/actors/message"
)

// There is one for each connection, and one for each room of it; the allocator's next
// classes are 448 and 240 bytes.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(Session{}); size > 416 {
		t.Errorf("a session of %d bytes, at most 416", size)
	}
	if size := unsafe.Sizeof(message.Membership{}); size > 224 {
		t.Errorf("a membership of %d bytes, at most 224", size)
	}
}
