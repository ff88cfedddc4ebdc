// Package scheduler decides who runs next, and runs it: a fixed pool of workers over two levels of deficit round robin, a pool for work
// that blocks, admission of readers and handshakes, and a timer wheel.
//
// A Task is something that has work now and then, such as a mailbox. It belongs to a Flow, a room or a session's own, and the flow to a
// Tenant. Ready says that a task has work; a worker then calls its Run, which does one batch. What it cost is charged to flow and tenant
// before the next decision. Sessions that are each alone in their flows are taken together, up to sixteen, and each flow is charged what its
// own has cost; where thousands have a flow each, a worker would else come back to the lock and to the clock for every Run.
//
// Guarantees:
//   - A task runs on one worker at a time, and after every wake-up runs at least once more.
//   - A tenant, and within it a flow, that is ready waits at most for (others) x (quantum + largest single cost), and W quanta more with W
//     workers; own debt is paid first, a quantum a round. Within a tenant each other flow may add one batch to that, which runs first.
//   - Who becomes ready is served before those who stayed so, and going idle and coming back gains nothing.
//   - In a tenant's turn rooms run before drains; neither starves the other, however much there is of it.
//   - One group in eight serves control work only, while there is any, whatever the debts.
//   - While anything is ready no worker sleeps, so a sole busy tenant has them all.
//   - A Run that does not return costs the pool no worker, up to a bound; what shared its group is served by others.
//
// Goroutines: the pool owns its workers, substitutes for those that are stuck, the goroutines of Block, and the watchdog; they end with
// Stop, except those stuck in foreign code. The wheel owns one. Decode and Gate use their caller's.
//
// Bounds: lists of tasks, flows and tenants are links in what they list and hold each once. Blocking work is bounded per tenant and in
// all, substitutes likewise. Readers and handshakes that wait are goroutines of their callers, who bound them.
//
// The core (core, Tenant, Flow, Task), the turnstile and the wheel are pure and are tested by steps; Pool.Step drives a pool without
// goroutines in the same way.
package scheduler
