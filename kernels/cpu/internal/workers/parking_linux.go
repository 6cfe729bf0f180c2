package workers

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A parking is where a worker sleeps: a word that its thread waits for (futex(2)).
// Who wakes the thread keeps it from the CPU that the waker runs on, where the
// kernel may otherwise leave it until a tick of its scheduler, and to any other
// CPU that the thread was allowed.
//
// The worker holds its thread from the time it parks until it has found nothing to
// do for workerSpinTime. It gives the thread back with the CPUs that it had before,
// so that neither other goroutines nor threads that are started later are bound.
type parking struct {
	state  atomic.Uint32 // awake, parked or woken
	held   bool          // The goroutine holds its thread.
	thread int
	// The CPUs of the thread before it was moved. An empty set means that they are
	// not known, and that the thread is not moved.
	allowed unix.CPUSet
	moved   bool // The thread may have other CPUs now.

	cpu uint32 // where the waker is
}

// A parked worker goes on when it is awake. From woken on, which one waker
// achieves, until then the fields of the parking belong to this waker.
const (
	awake = iota
	parked
	woken
)

// The operations of futex(2) within a process (linux/futex.h).
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

func newParking() parking { return parking{} }

// park returns when unpark was called, or at once where called holds.
func (k *parking) park(called func() bool) {
	k.hold()
	k.state.Swap(parked) // No store: see announceWait.
	if called() && k.state.CompareAndSwap(parked, awake) {
		return
	}
	for s := k.state.Load(); s != awake; s = k.state.Load() {
		// It returns early for a signal, or when the state is not s any more.
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&k.state)), futexWait, uintptr(s), 0, 0, 0)
	}
}

// unpark wakes the worker if it is parked.
func (k *parking) unpark() {
	if !k.state.CompareAndSwap(parked, woken) {
		return
	}
	k.avoidWaker()
	k.state.Store(awake)
	unix.RawSyscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&k.state)), futexWake, 1)
}

// hold binds the goroutine to its thread.
func (k *parking) hold() {
	if k.held {
		return
	}
	runtime.LockOSThread()
	k.held, k.thread = true, unix.Gettid()
	if unix.SchedGetaffinity(0, &k.allowed) != nil {
		k.allowed.Zero()
	}
}

// avoidWaker takes the CPU of the caller from those of the thread, unless it would
// have no other.
func (k *parking) avoidWaker() {
	_, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&k.cpu)), 0, 0)
	if err != 0 || k.allowed.Count() < 2 {
		return
	}
	set := k.allowed
	set.Clear(int(k.cpu))
	k.moved = unix.SchedSetaffinity(k.thread, &set) == nil || k.moved
}

// giveBack releases the thread with the CPUs that it had. Where that fails it stays
// bound, and ends with the goroutine.
func (k *parking) giveBack() {
	if !k.held || k.moved && unix.SchedSetaffinity(0, &k.allowed) != nil {
		return
	}
	k.held, k.moved = false, false
	runtime.UnlockOSThread()
}

// yieldThread lets other threads run that wait for the CPU of this one.
func yieldThread() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
