package session

import (
	"testing"
	"unsafe"
)

// There is one for each connection, and the allocator's next class is 704 bytes.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(Session{}); size > 640 {
		t.Errorf("a session of %d bytes, at most 640", size)
	}
}
