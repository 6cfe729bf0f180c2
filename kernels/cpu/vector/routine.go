package vector

import (
	"sync"

	"github.com/tilewright/tilewright/kernels/cpu/amd64"
)

// MaxCallLength is how many elements a machine function does in one call, so
// that the garbage collector need not wait for it long.
const MaxCallLength = 1 << 14

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

func EmitLoadArgs(a *amd64.Assembler) {
	a.Emit(
		amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI},
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

// Supported says whether machine code runs here.
var Supported = sync.OnceValue(func() bool {
	return amd64.Supported() == nil
})
