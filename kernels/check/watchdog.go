package check

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tilewright/tilewright/kernels"
)

// A kernel that a backend runs in this process cannot be killed. One that goes on
// after the end of its time is abandoned: its goroutine, its threads, its arrays and
// its code are left to it, and the caller goes on without it. Machine code never
// reaches a point where Go's garbage collector can stop it, and a collection would
// wait for it for ever with all goroutines. So the collector is off while a kernel
// runs, and stays off once one has been abandoned. Such a process should store what it
// has and end, or replace itself.

// HangGrace is the time from the end of a run's context until the run is abandoned.
// Backends with a process of their own have ended that by then.
const HangGrace = 800 * time.Millisecond

// A Hung is the error of a kernel that was abandoned. The kernel must not be used any
// more, nor closed, and neither must the arrays that it was given.
type Hung struct {
	// Cause is why its time was over: context.DeadlineExceeded, or what ended the
	// context of the caller.
	Cause error
}

// Hangs begins what a Hung says.
const Hangs = "it hangs"

// Error says what happened.
func (e *Hung) Error() string {
	return fmt.Sprintf(Hangs+": it had not returned %v after the end of its time (%v)", HangGrace, e.Cause)
}

// Unwrap returns the cause.
func (e *Hung) Unwrap() error { return e.Cause }

// collectorSwitch turns the garbage collector of the process off while somebody holds
// it. It is state of the process, as the setting is that it changes.
type collectorSwitch struct {
	mu      sync.Mutex
	holders int
	percent int // the setting before
	stats   runtime.MemStats
}

var collector collectorSwitch

// hold waits for a collection that is under way and turns the collector off.
//
// SetGCPercent waits for the end of marking only. After it the collection flushes the
// caches of every P (forEachP in runtime.gcMarkTermination), and would wait for one
// that runs machine code, holding the lock that stops the world: the process would
// hang with the kernel. ReadMemStats takes that lock, so that it returns after the
// flush.
func (c *collectorSwitch) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders++; c.holders == 1 {
		c.percent = debug.SetGCPercent(-1)
		runtime.ReadMemStats(&c.stats)
	}
}

// release turns the collector on again after the last holder.
func (c *collectorSwitch) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders--; c.holders == 0 {
		debug.SetGCPercent(c.percent)
	}
}

// await calls do, which runs a kernel, and returns its error; a panic is passed on. If
// do has not returned a grace after ctx has ended, it is left behind, and the error is
// a *Hung.
func await(ctx context.Context, do func() error) error {
	collector.hold()
	type outcome struct {
		err      error
		panicked any
	}
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			ended <- o
		}()
		o.err = do()
	}()
	end := func(o outcome) error {
		collector.release()
		if o.panicked != nil {
			panic(o.panicked)
		}
		return o.err
	}
	select {
	case o := <-ended:
		return end(o)
	case <-ctx.Done():
	}
	select {
	case o := <-ended:
		return end(o)
	case <-time.After(HangGrace):
		return &Hung{context.Cause(ctx)} // the collector stays off
	}
}

// Watched is k, of which a run that goes on after its context has ended is abandoned,
// with a *Hung as its error.
func Watched(k kernels.Kernel) kernels.Kernel { return bounded{Kernel: k} }
