package vector

import (
	"sync"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// ScaleRoutine is the routine that multiplies N elements of X, of f32, by *Y. It is assembled at
// first use and stays for the life of the process.
var ScaleRoutine = sync.OnceValues(func() (amd64.Func, bool) {
	if !Supported() {
		return amd64.Func{}, false
	}
	return LoadRoutine(emitScale)
})

// emitScale is the code of ScaleRoutine.
func emitScale(a *amd64.Assembler) error {
	EmitLoadArgs(a)
	// The factor is loaded with every vector, which costs nothing beside the stores.
	c := &amd64.Chain{}
	x := amd64.Mem{Base: amd64.RSI}
	factor := c.Load(
		amd64.VBROADCASTSS,
		amd64.Mem{Base: amd64.RDX}, 0,
	)
	c.Store(
		amd64.VMOVUPS, x, 32,
		c.Do(amd64.VMULPS, c.Load(amd64.VMOVUPS, x, 32), factor),
	)
	loop := &amd64.Loop{
		Chain:    c,
		Counter:  amd64.RAX,
		Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: 4}},
		Width:    4,
		Copies:   4,
		Scratch:  amd64.RCX,
		Mask:     amd64.Y15,
	}
	return loop.Emit(a)
}
