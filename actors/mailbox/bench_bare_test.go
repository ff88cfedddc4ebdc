package mailbox_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// bare is a mailbox without any rule: no bounds, lanes, deadlines, signals, fairness,
// costs, watchdog, stop or panic. A post takes its lock once and a run once, wakes are
// gathered by 64 and taken by 16, as ours; what it costs is left when all rules are
// gone, and what ours costs beyond it is theirs.
type bare struct {
	pool    *barePool
	invoker actor.MessageInvoker

	mu     sync.Mutex
	msgs   []any // guarded by mu
	queued bool  // guarded by mu: in the pool's list, or running
}

var _ actor.Mailbox = (*bare)(nil)

func (m *bare) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}
func (m *bare) Start()                    {}
func (m *bare) PostSystemMessage(any)     {}
func (m *bare) UserMessageCount() (n int) { return 0 }
func (m *bare) PostUserMessage(msg any) {
	if m.post(msg) {
		m.pool.ready([]*bare{m})
	}
}

func (m *bare) post(msg any) (wake bool) {
	m.mu.Lock()
	m.msgs = append(m.msgs, msg)
	wake = !m.queued
	m.queued = true
	m.mu.Unlock()
	return wake
}

func (m *bare) run() {
	m.mu.Lock()
	msg := m.msgs[0] // there is never more, as it is used
	m.msgs[0], m.msgs = nil, m.msgs[:0]
	m.queued = false
	m.mu.Unlock()
	m.invoker.InvokeUserMessage(msg)
}

type barePool struct {
	mu      sync.Mutex
	work    sync.Cond
	list    []*bare // guarded by mu
	next    int     // guarded by mu
	stopped bool    // guarded by mu
}

func newBarePool(b *testing.B) *barePool {
	p := &barePool{}
	p.work.L = &p.mu
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(p.loop)
	}
	b.Cleanup(func() {
		p.mu.Lock()
		p.stopped = true
		p.mu.Unlock()
		p.work.Broadcast()
		workers.Wait()
	})
	return p
}

func (p *barePool) ready(some []*bare) {
	p.mu.Lock()
	p.list = append(p.list, some...)
	p.mu.Unlock()
	p.work.Signal()
}

func (p *barePool) loop() {
	var group [16]*bare
	for {
		p.mu.Lock()
		for p.next == len(p.list) && !p.stopped {
			p.list, p.next = p.list[:0], 0
			p.work.Wait()
		}
		n := copy(group[:], p.list[p.next:])
		p.next += n
		stopped := p.stopped
		p.mu.Unlock()
		if stopped {
			return
		}
		for _, m := range group[:n] {
			m.run()
		}
	}
}

// fanOutBare is fanOut on bare mailboxes.
type fanOutBare struct {
	members []*bare
	woken   []*bare
}

func (f *fanOutBare) Receive(ctx actor.Context) {
	msg, ok := ctx.Message().(*note)
	if !ok {
		return
	}
	for _, m := range f.members {
		if m.post(msg) {
			if f.woken = append(f.woken, m); len(f.woken) == 64 {
				m.pool.ready(f.woken)
				f.woken = f.woken[:0]
			}
		}
	}
	if len(f.woken) > 0 {
		f.members[0].pool.ready(f.woken)
		f.woken = f.woken[:0]
	}
}
