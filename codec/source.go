package codec

// source reads validated values one after the other, going down into containers
// in place, so that reading a nested value whole takes one pass. It is a value
// of which only the beginning is known.
type source value

func (s *source) kind() kind { return value(*s).kind() }

// take reads one whole value.
func (s *source) take() value {
	n := 0
	if s.codec == Msgpack {
		n = packEnd(s.raw)
	} else {
		n = jsonEnd(s.raw)
	}
	v := value{s.codec, s.raw[:n:n]}
	s.raw = s.raw[n:]
	s.skip()
	return v
}

// open goes into an array or object. The result counts for more.
func (s *source) open() (n int) {
	if s.codec == Msgpack {
		h, _ := packHead(s.raw)
		s.raw = s.raw[h.header:]
		if h.kind == objectKind {
			return h.children / 2
		}
		return h.children
	}
	s.raw = s.raw[1:]
	s.skip()
	return 0
}

// more reports whether the open container has another element, or another key
// and value; at its end it goes out of it.
func (s *source) more(n *int) bool {
	if s.codec == Msgpack {
		*n--
		return *n >= 0
	}
	if c := s.raw[0]; c != ']' && c != '}' {
		return true
	}
	s.raw = s.raw[1:]
	s.skip()
	return false
}

// skip passes what stands between two JSON values.
func (s *source) skip() {
	if s.codec == Msgpack {
		return
	}
	for len(s.raw) > 0 {
		switch s.raw[0] {
		case ' ', '\t', '\n', '\r', ',', ':':
			s.raw = s.raw[1:]
		default:
			return
		}
	}
}

// jsonEnd is the length of the validated value that b begins with.
func jsonEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}
