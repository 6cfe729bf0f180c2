package tuner

import (
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
)

// A machine that others use gives times of another machine. A race probes the device
// before its first block and after its last one, and leaves out blocks during which
// something else ran, which is decided by what was counted and not by the times. Where most
// blocks are so, the machine is busy, they count after all, and the record says how busy.

const (
	disturbedShare = 0.05 // of a block that other work takes: more is left out
	leftOutShare   = 0.5  // of all blocks that may be left out
)

// A watch looks at the device of a race.
type watch struct {
	backend kernels.QuietBackend // nil where the backend cannot say
	seen    kernels.Disturbance  // at the end of the last block
	at      time.Time
	state   cache.Visit
}

// newWatch begins with a probe.
func newWatch(b kernels.Backend, now time.Time) watch {
	w := watch{at: now}
	if quiet, can := b.(kernels.QuietBackend); can {
		w.backend = quiet
		w.state.Quiet[0] = quiet.Quiet()
	}
	w.look(now)
	return w
}

// look notes what was counted so far, and returns what was since the last look and the
// time that has passed.
func (w *watch) look(now time.Time) (disturbed, passed time.Duration) {
	passed = now.Sub(w.at)
	w.at = now
	if w.backend != nil {
		seen := w.backend.Disturbance()
		disturbed = seen.Since(w.seen)
		w.seen = seen
	}
	return disturbed, passed
}

// counts reports whether the block that has just ended counts, and what other work took
// of it.
func (w *watch) counts(now time.Time) (ok bool, disturbed time.Duration) {
	disturbed, passed := w.look(now)
	w.state.Blocks++
	bad := disturbed.Seconds() > disturbedShare*passed.Seconds()
	if bad && float64(w.state.LeftOut+1) <= leftOutShare*float64(w.state.Blocks) {
		w.state.LeftOut++
		return false, disturbed
	}
	return true, disturbed
}

// end is the visit, with a probe of how it ended.
func (w *watch) end() cache.Visit {
	if w.backend != nil && w.state.Quiet[1] == 0 {
		w.state.Quiet[1] = w.backend.Quiet()
	}
	return w.state
}

// leaveOut removes the samples of a block.
func leaveOut(t *cache.Trial, block int) {
	for k := len(t.Blocks) - 1; k >= 0 && t.Blocks[k] == block; k-- {
		t.Samples = slices.Delete(t.Samples, k, k+1)
		t.Blocks = slices.Delete(t.Blocks, k, k+1)
		if k < len(t.Clocks) {
			t.Clocks = slices.Delete(t.Clocks, k, k+1)
		}
	}
}
