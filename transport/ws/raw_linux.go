package ws

import (
	"net"
	"os"
	"syscall"
	"unsafe"
)

// rawWriter writes to a socket without blocking and without allocating. It goes
// through syscall.RawConn, whose lock keeps the descriptor from being closed and
// used again for another connection meanwhile. The owner of the writing side uses
// it alone.
type rawWriter struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // w.tryOnce, made once: a new one each time would be allocated

	// Of the write in progress.
	b     []byte
	n     int
	errno syscall.Errno
}

const (
	// unsent is how much the kernel takes of what it cannot send yet, one drain's
	// worth. By default it takes megabytes: a slow peer's pongs are as late, nothing of
	// it can be coalesced or shed any more, and there is place again only when a third
	// of it has gone out, which looks like a peer that reads nothing.
	unsent = 64 << 10
	// notSentLowat is TCP_NOTSENT_LOWAT, which package syscall does not name.
	notSentLowat = 25
)

// newRawWriter returns nil for connections that are no sockets of package net.
func newRawWriter(c net.Conn) *rawWriter {
	var sc syscall.Conn
	var tcp bool
	switch c := c.(type) {
	case *net.TCPConn:
		sc = c
		tcp = true
	case *net.UnixConn:
		sc = c
	default:
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil // closed: the blocking way will say so
	}
	if tcp {
		// A kernel that refuses takes more, as it would without being asked.
		_ = raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, unsent)
		})
	}
	w := &rawWriter{raw: raw}
	w.try = w.tryOnce
	return w
}

// write returns how much the socket took; less than all without an error means
// that it is full.
func (w *rawWriter) write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	w.b, w.n, w.errno = b, 0, 0
	err := w.raw.Write(w.try)
	w.b = nil
	if err != nil {
		return 0, err
	}
	switch w.errno {
	case 0:
		return w.n, nil
	case syscall.EAGAIN, syscall.EINTR:
		return 0, nil // the caller goes on in a way that waits
	}
	return 0, os.NewSyscallError("write", w.errno)
}

// tryOnce never asks to wait. RawSyscall spares the scheduler's bookkeeping for
// calls that block, which this one does not.
func (w *rawWriter) tryOnce(fd uintptr) bool {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&w.b[0])), uintptr(len(w.b)))
	if w.errno = errno; errno == 0 {
		w.n = int(n)
	}
	return true
}
