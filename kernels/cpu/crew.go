package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// How a helper waits for work: it looks, then it looks and lets other goroutines
// run, then it parks. Waking one that is parked takes 0.1 ms on a virtual machine
// whose other core sleeps, and a tick of the scheduler, 4 ms, where the kernel
// wakes it on the caller's core; one that looks starts in under a microsecond.
const (
	helperSpins  = 50 * time.Microsecond
	helperYields = 2 * time.Millisecond
)

// A crew is the goroutines that help the teams of a backend, all of its kernels
// in turn, so that they are awake for one kernel after the other. They help the
// team that announced a run last; a team whose helpers are elsewhere does all by
// itself. They end when the last kernel is closed.
type crew struct {
	mu      sync.Mutex
	helpers []*helper
	teams   int // that are not closed
	team    atomic.Pointer[team]
}

// A helper is a goroutine that runs the n-th worker of teams.
type helper struct {
	n      int
	quit   atomic.Bool
	parked atomic.Bool // or about to
	wake   chan struct{}
}

// enlist starts helpers until there are n and returns those.
func (c *crew) enlist(n int) []*helper {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.teams++
	for len(c.helpers) < n {
		h := &helper{n: len(c.helpers) + 1, wake: make(chan struct{}, 1)}
		c.helpers = append(c.helpers, h)
		go c.help(h)
	}
	return c.helpers[:n:n]
}

// dismiss forgets a team that is not running; after the last the helpers end.
func (c *crew) dismiss(t *team) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.team.CompareAndSwap(t, nil)
	if c.teams--; c.teams > 0 {
		return
	}
	for _, h := range c.helpers {
		h.quit.Store(true)
		h.rouse()
	}
	c.helpers = nil
}

// announce calls the helpers of a team whose next is set.
func (c *crew) announce(t *team) {
	if len(t.helpers) == 0 {
		return
	}
	c.team.Store(t)
	for _, h := range t.helpers {
		h.rouse()
	}
}

// rouse wakes the helper if it is parked.
func (h *helper) rouse() {
	if h.parked.CompareAndSwap(true, false) {
		h.wake <- struct{}{} // never full: one token for each time parked was set
	}
}

// help works whenever there is something to do.
func (c *crew) help(h *helper) {
	for !h.quit.Load() {
		if t := c.due(h); t != nil {
			t.work(t.workers[h.n])
			continue
		}
		c.wait(h)
	}
}

// due is the team that the helper could help; nil for none.
func (c *crew) due(h *helper) *team {
	if t := c.team.Load(); t != nil && h.n < len(t.workers) && t.ready() {
		return t
	}
	return nil
}

// wait returns when there may be something to do.
func (c *crew) wait(h *helper) {
	called := func() bool { return c.due(h) != nil || h.quit.Load() }
	if spin(helperSpins, called) {
		return
	}
	for begin := time.Now(); time.Since(begin) < helperYields; runtime.Gosched() {
		if called() {
			return
		}
	}
	h.parked.Store(true)
	if called() && h.parked.CompareAndSwap(true, false) {
		return
	}
	<-h.wake
}
