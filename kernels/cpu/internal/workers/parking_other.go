//go:build !linux

package workers

import "sync/atomic"

// A parking is where a worker sleeps: a channel.
type parking struct {
	parked atomic.Bool // The worker is parked, or about to park.
	wake   chan struct{}
}

func newParking() parking { return parking{wake: make(chan struct{}, 1)} }

// park returns when unpark was called, or at once where called holds.
func (k *parking) park(called func() bool) {
	k.parked.Swap(true) // No store: see announceWait.
	if called() && k.parked.CompareAndSwap(true, false) {
		return
	}
	<-k.wake
}

// unpark wakes the worker if it is parked.
func (k *parking) unpark() {
	if k.parked.CompareAndSwap(true, false) {
		k.wake <- struct{}{} // The buffer has room: parked was set once for this token.
	}
}

// giveBack does nothing: the worker holds no thread.
func (k *parking) giveBack() {}

// yieldThread does nothing.
func yieldThread() {}
