package cpu

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/tilewright/tilewright/kernels/cpu/internal/workers"
)

// A run that panics or is cancelled is an error, and the next run is not
// affected.
func TestProgramLoopRecovers(t *testing.T) {
	var bad atomic.Int64
	states := make([]*worker, 3)
	for k := range states {
		states[k] = &worker{tids: make([]int64, 1)}
	}
	loop := newProgramLoop(states, []step{func(w *worker) {
		if w.tids[0] == bad.Load() {
			panic("no such tile")
		}
	}}, newRaster([]int64{100}, 1), nil, new(workers.Pool))
	for n := range int64(200) {
		bad.Store(n - 100) // There is no tile below 0.
		ctx, cancel := context.WithCancel(context.Background())
		if n%3 == 0 {
			cancel()
		}
		_, err := loop.run(ctx, nil, nil)
		if wanted := n >= 100 || n%3 == 0; (err != nil) != wanted {
			t.Fatalf("run %d: error %v", n, err)
		}
		cancel()
	}
	loop.region.Close()
	if _, err := loop.run(context.Background(), nil, nil); err != workers.ErrClosed {
		t.Errorf("a closed kernel runs: %v", err)
	}
}
