package mailbox

import "github.com/yaza-dev/pulse/backpressure"

// Depths are how many wait in each lane.
type Depths [backpressure.Lanes]int

// Add adds what waits in m.
func (d *Depths) Add(m *Mailbox) {
	m.mu.Lock()
	for l := range backpressure.Lane(backpressure.Lanes) {
		d[l] += m.depth(l)
	}
	m.mu.Unlock()
}

// Load adds the frames that wait to d; it returns how many memberships there are.
func (o *Outbound) Load(d *Depths) (members int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.q != nil:
		for l := range d {
			d[l] += o.q.lane[l].Len()
		}
	case o.sole.waits():
		d[o.lane]++
	}
	for i := range o.slots.len() {
		if o.slots.at(uint16(i)).room != nil {
			members++
		}
	}
	return members
}
