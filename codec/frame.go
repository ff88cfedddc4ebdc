package codec

import (
	"sync"
	"sync/atomic"
)

// Framing turns documents into the bytes that one kind of connection writes. It
// is owned by its transport and compared by pointer, so one Framing value serves
// all connections of a kind.
type Framing struct {
	Name     string
	Protocol Protocol
	// Wrap appends the transport's header and doc to dst; nil: doc as it is.
	Wrap func(dst, doc []byte) []byte
	// Plain is how frames go out that must not be compressed, where Wrap does that.
	// Nil: Wrap compresses nothing.
	Plain *Framing
}

// Frame is one server document and its bytes, which are made when the first
// session of a framing needs them and then shared. It is immutable, and safe for
// concurrent use.
type Frame struct {
	doc    Document                // immutable
	made   atomic.Pointer[Encoded] // list, only ever grown at its head, under mu
	secret bool                    // immutable: never compressed
	mu     sync.Mutex              // held while bytes are made, so that they are made once
}

// Encoded is a frame's bytes in one framing. It is immutable, and keeps nothing of
// the document alive: a queue that holds it holds bytes.
type Encoded struct {
	framing *Framing
	bytes   []byte
	next    *Encoded
}

// Bytes are for reading only.
func (e *Encoded) Bytes() []byte { return e.bytes }

// NewFrame makes a frame of a document that does not change any more.
func NewFrame(d Document) *Frame { return &Frame{doc: d} }

// NewSecretFrame makes a frame that is never compressed: its length would tell an
// onlooker who can add to it what it holds.
func NewSecretFrame(d Document) *Frame { return &Frame{doc: d, secret: true} }

// Bundle makes one frame of several that go out together: its bytes are theirs,
// one after the other, so that a queue has one entry and a write one copy for all
// of them.
func Bundle(frames []*Frame) *Frame { return NewFrame(bundle(frames)) }

type bundle []*Frame

// encode is never called: a bundle has no document, only its frames have.
func (bundle) encode([]byte, Codec) []byte { panic("codec: a bundle is not a document") }

func (b bundle) join(fr *Framing) []byte {
	size := 0
	for _, f := range b {
		size += len(f.Bytes(fr))
	}
	out := make([]byte, 0, size)
	for _, f := range b {
		out = append(out, f.Bytes(fr)...)
	}
	return out
}

// Bytes returns the frame in the given framing. The caller must not change them.
// After the first call for a framing it takes no lock and allocates nothing.
func (f *Frame) Bytes(fr *Framing) []byte { return f.In(fr).bytes }

// In is Bytes for who keeps them.
func (f *Frame) In(fr *Framing) *Encoded {
	if f.secret && fr.Plain != nil {
		fr = fr.Plain
	}
	if e := f.find(fr); e != nil {
		return e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.find(fr)
	if e == nil {
		e = &Encoded{framing: fr, bytes: fr.encode(f.doc), next: f.made.Load()}
		f.made.Store(e)
	}
	return e
}

func (f *Frame) find(fr *Framing) *Encoded {
	for e := f.made.Load(); e != nil; e = e.next {
		if e.framing == fr {
			return e
		}
	}
	return nil
}

// wrapRoom is what a transport's header is assumed to need at most.
const wrapRoom = 16

func (fr *Framing) encode(d Document) []byte {
	if b, ok := d.(bundle); ok {
		return b.join(fr)
	}
	buf := encodeBuffers.Get().(*[]byte)
	doc := fr.Protocol.Append((*buf)[:0], d)
	out := make([]byte, 0, len(doc)+wrapRoom)
	if fr.Wrap == nil {
		out = append(out, doc...)
	} else {
		out = fr.Wrap(out, doc)
	}
	if cap(doc) <= maxPooled {
		*buf = doc
		encodeBuffers.Put(buf)
	}
	return out
}

// maxPooled bounds what one pooled buffer holds on to.
const maxPooled = 128 << 10

var encodeBuffers = sync.Pool{New: func() any { return new([]byte) }}
