package vector

import (
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// The indices that a mask compares are numbers that follow each other. A loop in Go writes
// one in a cycle; a vector of eight takes an addition and a store.

// Numbers of 32 bits wrap around as those of the loop do, so that both write the same. Floats
// are left to the loop: a sum of steps is not what a product rounds to.

// CountArgs is the argument block of counting: vectors of numbers of 32 bits, of which the
// first has the lanes first, and each next one step more.
type CountArgs struct {
	n           int64
	to          unsafe.Pointer
	first, step [8]int32
}

// countRoutine is the function of counting, assembled at first use.
var countRoutine = sync.OnceValues(func() (amd64.Func, bool) {
	if !Supported() {
		return amd64.Func{}, false
	}
	return LoadRoutine(emitCount)
})

// emitCount emits the loop over vectors: RAX counts them, RDX is the address.
func emitCount(a *amd64.Assembler) error {
	const lanes, steps = 16, 48 // Where the fields are in the argument block.
	emitLoadArg(a, amd64.RAX, 0)
	emitLoadArg(a, amd64.RDX, 1)
	a.Emit(amd64.VMOVUPS, amd64.Y0, amd64.Mem{Base: amd64.RDI, Disp: lanes})
	a.Emit(amd64.VMOVUPS, amd64.Y1, amd64.Mem{Base: amd64.RDI, Disp: steps})
	vector := a.NewLabel()
	a.Bind(vector)
	a.Emit(amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX}, amd64.Y0)
	a.Emit(amd64.VPADDD, amd64.Y0, amd64.Y0, amd64.Y1)
	a.Emit(amd64.ADD, amd64.RDX, amd64.Imm(vectorBytes))
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, vector)
	return nil
}

// Count writes first, first + stride and so on to whole vectors of dst, with wraparound, and
// returns how many numbers it has written: 0 where no machine code runs. What it is given is
// at most a strip.
func (args *CountArgs) Count(dst []int32, first, stride int64) int {
	f, ok := countRoutine()
	args.n = int64(len(dst) / len(args.first))
	if !ok || args.n == 0 {
		return 0
	}
	args.to = unsafe.Pointer(&dst[0])
	for k := range args.first {
		args.first[k] = int32(first + int64(k)*stride)
		args.step[k] = int32(int64(len(args.first)) * stride)
	}
	f.Call(unsafe.Pointer(args))
	args.to = nil
	return int(args.n) * len(args.first)
}
