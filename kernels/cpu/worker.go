package cpu

import (
	"context"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
)

// A worker runs tile programs. Everything it needs was allocated when the plan
// was compiled.
type worker struct {
	arena           []byte
	packing         []byte           // scratch of dots
	addresses       []unsafe.Pointer // where each value begins
	tids            []int64          // by dimension of the space
	slots           []int64          // offsets and bounds of tiles
	tile            int64            // number of the tile program, and of its part where contractions are split
	part            int64
	skipRest        bool     // the rest of the tile program is for another part
	evalScratch     []int64  // scratch of compiled expressions
	scalarRegisters []scalar // of scalar programs
	in, out         []kernels.Buffer
	ctx             context.Context
	rowArgs         rowKernelArgs
	stripArgs       stripCallArgs // of the machine function that runs
	reduceArgs      reduceArgs
	transposeArgs   transposeArgs
	copyArgs        copyArgs
	fillPattern     [4096]byte // copies of an element
}

// stopped says whether the run was cancelled.
func (w *worker) stopped() bool {
	select {
	case <-w.ctx.Done():
		return true
	default:
		return false
	}
}
