package ws

import (
	"bytes"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/lxzan/gws"
)

// Compression is permessage-deflate (RFC 7692).
type Compression struct {
	// Enabled agrees to clients that offer it. What is sent is compressed message by
	// message, once for all clients; what a client sends may refer to its earlier
	// messages, which costs a window of 32 KiB for each client that does not renounce
	// that. Default: off.
	Enabled bool

	// Threshold is the smallest document, in bytes, that is compressed. Default: 1 KiB.
	Threshold int
}

// Window is what a client's earlier messages take in memory, in bytes, where it may
// refer to them.
const Window = 32 << 10

// slack is how much larger than itself compression may make a message that does
// not compress: 5 bytes for each stored block, and some more.
func slack(n int) int { return n/1000 + 64 }

// agreement is what an answer to an offer of compression says.
type agreement struct {
	deflate    bool
	noTakeover bool // the client renounces its window
}

const extension = "permessage-deflate"

// header is the offer that makes gws agree to a.
func (a agreement) header() string {
	h := extension + "; server_no_context_takeover"
	if a.noTakeover {
		h += "; client_no_context_takeover"
	}
	return h
}

// negotiate takes the first offer that can be kept. One that this end does not
// understand, or that limits the server's window, is passed over.
func negotiate(h http.Header) agreement {
	for _, line := range h["Sec-Websocket-Extensions"] {
		for offer := range outsideQuotes(line, ',') {
			if a, ok := readOffer(offer); ok {
				return a
			}
		}
	}
	return agreement{}
}

func readOffer(offer string) (agreement, bool) {
	a := agreement{deflate: true}
	seen := map[string]bool{}
	first := true
	for part := range outsideQuotes(offer, ';') {
		name, value, valued := strings.Cut(strings.TrimSpace(part), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if first {
			if name != extension || valued {
				return agreement{}, false
			}
			first = false
			continue
		}
		if seen[name] {
			return agreement{}, false
		}
		seen[name] = true
		switch {
		case name == "server_no_context_takeover" && !valued:
		case name == "client_no_context_takeover" && !valued:
			a.noTakeover = true
		case name == "client_max_window_bits" && (!valued || windowBits(value)):
		default:
			return agreement{}, false
		}
	}
	return a, !first
}

// windowBits: 8 to 15, as RFC 7692, section 7.1.2, writes them.
func windowBits(value string) bool {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	n, err := strconv.Atoi(value)
	return err == nil && n >= 8 && n <= 15 && strconv.Itoa(n) == value
}

// outsideQuotes yields the parts of s between separators that are not quoted.
func outsideQuotes(s string, separator byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, quoted := 0, false
		for i := 0; i < len(s); i++ {
			switch {
			case quoted && s[i] == '\\':
				i++
			case s[i] == '"':
				quoted = !quoted
			case s[i] == separator && !quoted:
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(s[start:])
	}
}

// inflating is how gws is told to inflate: in turns with as few sets of buffers as
// there are processors.
func inflating() gws.PermessageDeflate {
	sets := 1
	for sets < runtime.GOMAXPROCS(0) {
		sets *= 2
	}
	return gws.PermessageDeflate{
		Enabled: true, ClientContextTakeover: true, PoolSize: sets, ServerMaxWindowBits: 15, ClientMaxWindowBits: 15,
	}
}

// deflater makes frames of documents, compressed where that is worth it. Each
// message stands by itself, so that its bytes serve every client.
type deflater struct {
	threshold int // immutable
	pool      sync.Pool
}

type deflating struct {
	out bytes.Buffer
	w   *flate.Writer
}

// level compresses JSON nearly as well as the best does, in a third of the time.
const level = 3

// appendFrame appends one whole frame.
func (d *deflater) appendFrame(dst []byte, op byte, doc []byte) []byte {
	if len(doc) < d.threshold {
		return appendFrame(dst, op, doc)
	}
	z, ok := d.pool.Get().(*deflating)
	if !ok {
		z = new(deflating)
		z.w, _ = flate.NewWriter(&z.out, level) // fails for levels that there are not
	}
	z.out.Reset()
	z.w.Reset(&z.out)
	_, _ = z.w.Write(doc) // a buffer takes everything
	_ = z.w.Flush()
	const tail = 4 // 00 00 FF FF, which RFC 7692, section 7.2.1, leaves out
	if packed := z.out.Bytes()[:z.out.Len()-tail]; len(packed) < len(doc) {
		dst = appendFrame(dst, op|bitRsv1, packed)
	} else {
		dst = appendFrame(dst, op, doc)
	}
	d.pool.Put(z)
	return dst
}
