package mailbox

// systemQueue holds protoactor's system messages: FIFO, never refused, because
// losing one wedges a subtree. It is a list and not a ring because nearly every
// actor gets exactly one of them in its life and should then hold nothing.
type systemQueue struct{ head, tail *systemNode }

type systemNode struct {
	next *systemNode
	msg  any
}

func (q *systemQueue) push(msg any) {
	n := &systemNode{msg: msg}
	if q.tail == nil {
		q.head = n
	} else {
		q.tail.next = n
	}
	q.tail = n
}

func (q *systemQueue) pop() any {
	n := q.head
	if n == nil {
		return nil
	}
	q.head = n.next
	if q.head == nil {
		q.tail = nil
	}
	return n.msg
}
