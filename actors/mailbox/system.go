package mailbox

// systemQueue holds protoactor's system messages: FIFO, never refused, because
// losing one wedges a subtree. It is a list and not a ring because nearly every
// actor gets exactly one of them in its life and should then hold nothing; the
// list is a circle known by its end, so that an empty one costs a word.
type systemQueue struct{ last *systemNode }

type systemNode struct {
	next *systemNode
	msg  any
}

func (q *systemQueue) empty() bool { return q.last == nil }

func (q *systemQueue) push(msg any) {
	n := &systemNode{msg: msg}
	if n.next = n; q.last != nil {
		n.next, q.last.next = q.last.next, n
	}
	q.last = n
}

func (q *systemQueue) pop() any {
	if q.last == nil {
		return nil
	}
	n := q.last.next
	if n == q.last {
		q.last = nil
	} else {
		q.last.next = n.next
	}
	return n.msg
}
