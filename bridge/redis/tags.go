package redis

import (
	"hash/fnv"
	"strconv"
	"sync"
)

// Tags are part of the format: every node of a deployment must find a topic in
// the same slot. Tag p of 0 … 1023 is the smallest number of 1, 2, 3 …, written
// in base 36, whose slot is in [16p, 16p+16) of the 16,384. So each tag has a
// stretch of slots of its own, and they are spread evenly over any division of
// the slot range. A topic's tag is number FNV-1a (32 bits) of its name, modulo
// 1,024.
const (
	tagCount = 1024
	slots    = 16384
)

// tags makes the table, once: some 120,000 checksums.
var tags = sync.OnceValue(func() (table [tagCount]string) {
	left := tagCount
	for n := uint64(1); left > 0; n++ {
		tag := strconv.FormatUint(n, 36)
		p := slotOf(tag) / (slots / tagCount)
		if table[p] == "" {
			table[p] = tag
			left--
		}
	}
	return table
})

func tagOf(owner string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(owner)) // never fails
	table := tags()
	return table[h.Sum32()%tagCount]
}

// slotOf is the slot of a name without braces: CRC-16/XMODEM modulo 16,384.
func slotOf(name string) int {
	crc := uint16(0)
	for i := range len(name) {
		crc ^= uint16(name[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}
