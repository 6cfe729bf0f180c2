// Package vector is the machine code of operations on vectors, assembled by package
// amd64, in two forms.
//
// Code emits an elementwise operation as part of a longer function, on one vector
// of each argument: for floats that are held as f32 (float32.go), for f64
// (float64.go) and for integers that are held as i32 (int32.go). Reduction does so
// for reductions of f32 (reduce.go), HalfCodec for loads and stores of bf16 and f16
// (half.go). Strip functions of package cpu and row kernels are made of these.
//
// Routines are whole functions that are assembled once for the process: reductions
// of runs, copies and transposes of rows, conversions of types of one and two bytes, and the
// deinterleaving of pairs. Each is called with the address of an argument block.
//
// # Calls
//
// A machine function gets the address of its argument block and nothing else. The
// block is part of the state of a worker, so that a call allocates nothing and
// keeps what it points to alive. The goroutine cannot be preempted in a call, which
// is why every function does a bounded number of elements a call and the caller
// loops. Functions may use all registers but the stack's; they do not call.
//
// Nothing here depends on where the elements come from: strips of a tile, rows of
// an array, or the accumulators of a row kernel.
package vector

import (
	"sync"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// MaxCallLength bounds the elements of a call, since the garbage collector
// waits for the goroutine to return.
const MaxCallLength = 1 << 14

// LoadRoutine assembles and loads a routine, for the life of the process. It
// reports false where that is not possible: where no machine code runs, or the
// pages for it are refused.
func LoadRoutine(emit func(a *amd64.Assembler) error) (amd64.Func, bool) {
	a := &amd64.Assembler{}
	if emit(a) != nil {
		return amd64.Func{}, false
	}
	a.Emit(amd64.RET)
	text, err := a.Assemble()
	if err != nil {
		return amd64.Func{}, false
	}
	code, err := amd64.Load(text)
	if err != nil {
		return amd64.Func{}, false
	}
	f, err := code.Func(0)
	return f, err == nil
}

// EmitLoadArgs loads the first three fields of the argument block to RAX, RSI
// and RDX.
func EmitLoadArgs(a *amd64.Assembler) {
	a.Emit(
		amd64.MOV, amd64.RAX,
		amd64.Mem{Base: amd64.RDI},
	)
	a.Emit(amd64.MOV, amd64.RSI, amd64.Mem{
		Base: amd64.RDI,
		Disp: 8,
	})
	a.Emit(amd64.MOV, amd64.RDX, amd64.Mem{
		Base: amd64.RDI,
		Disp: 16,
	})
}

// Supported reports whether machine code runs here: on Linux on amd64, with
// AVX2, FMA and F16C, in builds without the tag noasm. It asks the processor
// once.
var Supported = sync.OnceValue(func() bool {
	return amd64.Supported() == nil
})
