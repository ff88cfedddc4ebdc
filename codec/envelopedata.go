package codec

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Compression says how an envelope carries its data.
type Compression uint8

// The numbers are those of the wire.
const (
	Uncompressed Compression = iota
	Gzip
)

// String is the name of the compression.
func (c Compression) String() string {
	switch c {
	case Uncompressed:
		return "none"
	case Gzip:
		return "gzip"
	}
	return fmt.Sprintf("Compression(%d)", uint8(c))
}

// deflater is a gzip writer with where it writes to. Making one costs 0.8 MB, so
// they are used again.
type deflater struct {
	gzip *gzip.Writer
	out  capped
}

var deflaters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return &deflater{gzip: w}
}}

// capped appends up to a length of most.
type capped struct {
	b    []byte
	most int
}

var errNoGain = errors.New("codec: compressing does not make it smaller")

func (c *capped) Write(p []byte) (int, error) {
	if len(c.b)+len(p) > c.most {
		return 0, errNoGain
	}
	c.b = append(c.b, p...)
	return len(p), nil
}

// appendCompressed writes raw compressed where that is smaller, else as it is.
func appendCompressed(dst, raw []byte) ([]byte, Compression) {
	d := deflaters.Get().(*deflater)
	d.out = capped{dst, len(dst) + len(raw) - 1}
	d.gzip.Reset(&d.out)
	_, err := d.gzip.Write(raw)
	if err == nil {
		err = d.gzip.Close()
	}
	packed := d.out.b
	d.out = capped{}
	deflaters.Put(d)
	if err != nil { // errNoGain: nothing else fails here
		return append(dst, raw...), Uncompressed
	}
	return packed, Gzip
}

// inflater is a gzip reader with what it reads from, and scratch to read into.
type inflater struct {
	gzip    gzip.Reader
	in      bytes.Reader
	scratch []byte
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// inflate returns what packed says, in memory of its own, at the cost of what it
// really is and never more than one byte beyond most.
func inflate(packed []byte, most int) ([]byte, error) {
	z := inflaters.Get().(*inflater)
	defer inflaters.Put(z)
	out, err := z.read(packed, most)
	z.in.Reset(nil)
	if z.scratch = out; cap(out) > maxPooled {
		z.scratch = nil
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(out), nil
}

// read inflates into scratch, and returns that.
func (z *inflater) read(packed []byte, most int) ([]byte, error) {
	out := z.scratch[:0]
	z.in.Reset(packed)
	if err := z.gzip.Reset(&z.in); err != nil {
		return out, fmt.Errorf("%w: %w", ErrEnvelope, err)
	}
	z.gzip.Multistream(false)
	for {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), min(max(2*cap(out), 4<<10), most+1))
			copy(grown, out)
			out = grown
		}
		n, err := z.gzip.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case len(out) > most:
			return out, errTooMuchData()
		case err == io.EOF && z.in.Len() > 0:
			return out, fmt.Errorf("%w: bytes left over behind its data", ErrEnvelope)
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, fmt.Errorf("%w: %w", ErrEnvelope, err)
		}
	}
}
