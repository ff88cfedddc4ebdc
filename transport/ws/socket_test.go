package ws

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A peer that takes something within each write timeout is waited for, however long
// all of it takes; one that takes nothing is not. Virtual time.
func TestWriteTimeoutIsForAPeerThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout, size, piece = time.Second, 512 << 10, 32 << 10
		near, peer := net.Pipe()
		defer near.Close()
		defer peer.Close()
		s := newSocket(near)
		s.raw = new(rawWriter) // its deadlines break nothing, as those of a socket do not
		go func() {
			for range size / piece {
				time.Sleep(timeout / 2)
				_, _ = io.CopyN(io.Discard, peer, piece)
			}
		}()
		began := time.Now()
		err := s.finish(&leftover{b: make([]byte, size)}, timeout)
		if took := time.Since(began); err != nil || took != size/piece*timeout/2 {
			t.Errorf("slowly read: %v after %v", err, took)
		}
		began = time.Now()
		err = s.finish(&leftover{b: make([]byte, size)}, timeout)
		if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took != timeout {
			t.Errorf("not read: %v after %v", err, took)
		}
	})
}
