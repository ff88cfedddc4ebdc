package memory

// table is a map that gives memory back: Go's own keeps the room of its largest
// size for ever, and both topics and keys come in floods.
type table[K comparable, V any] struct {
	entries map[K]V // nil while empty
	peak    int     // largest size since it was last made
}

func (t *table[K, V]) get(k K) (V, bool) {
	v, ok := t.entries[k]
	return v, ok
}

func (t *table[K, V]) put(k K, v V) {
	if t.entries == nil {
		t.entries = make(map[K]V)
	}
	t.entries[k] = v
	t.peak = max(t.peak, len(t.entries))
}

func (t *table[K, V]) remove(k K) {
	delete(t.entries, k)
	if len(t.entries) == 0 {
		t.entries, t.peak = nil, 0
	}
}

// compact is for the sweeper: its cost is the table's size, at most once per
// halving twice.
func (t *table[K, V]) compact() {
	if t.peak < 64 || len(t.entries) > t.peak/4 {
		return
	}
	smaller := make(map[K]V, len(t.entries))
	for k, v := range t.entries {
		smaller[k] = v
	}
	t.entries, t.peak = smaller, len(smaller)
}

func (t *table[K, V]) len() int { return len(t.entries) }
