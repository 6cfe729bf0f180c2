package vector

import (
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
)

// Reducing a run by a computation of pairs takes neighbours apart again and again:
// the elements at even places are the left operands, those at odd places the right
// ones. Two vectors of eight elements give one vector of each.

// DeinterleaveArgs are pairs of neighbours from From on, whose first elements
// go to Left and second ones to Right.
type DeinterleaveArgs struct {
	Pairs int64 // The number of pairs, a multiple of eight.
	// The pairs, and where the elements of each side go.
	From, Left, Right unsafe.Pointer
}

// Deinterleave is the routine that deinterleaves pairs of elements of four
// bytes, in whole vectors; nil where no machine code runs.
var Deinterleave = sync.OnceValue(func() *amd64.Func {
	if !Supported() {
		return nil
	}
	f, ok := LoadRoutine(emitDeinterleave)
	if !ok {
		return nil
	}
	return &f
})

// emitDeinterleave emits the loop: a shuffle within halves gathers the elements
// of each side, a permutation orders them.
func emitDeinterleave(a *amd64.Assembler) error {
	for k, r := range []amd64.Reg{amd64.RAX, amd64.RSI, amd64.RDX, amd64.RBX} {
		a.Emit(amd64.MOV, r, amd64.Mem{
			Base: amd64.RDI,
			Disp: int32(8 * k),
		})
	}
	c := &amd64.Chain{}
	low := c.Load(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RSI}, 64,
	)
	high := c.Load(
		amd64.VMOVUPS,
		amd64.Mem{Base: amd64.RSI, Disp: 32},
		64,
	)
	const firsts = amd64.Imm(0x88)
	const seconds = amd64.Imm(0xdd)
	const inOrder = amd64.Imm(0xd8)
	c.Store(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RDX},
		32,
		c.Do(amd64.VPERMPD, c.Do(
			amd64.VSHUFPS, low, high, firsts,
		), inOrder),
	)
	c.Store(
		amd64.VMOVUPS, amd64.Mem{Base: amd64.RBX},
		32,
		c.Do(amd64.VPERMPD, c.Do(
			amd64.VSHUFPS, low, high, seconds,
		), inOrder),
	)
	loop := &amd64.Loop{
		Chain:   c,
		Counter: amd64.RAX,
		Width:   4,
		Copies:  2,
		Pointers: []amd64.Pointer{
			{Reg: amd64.RSI, Bytes: 8},
			{Reg: amd64.RDX, Bytes: 4},
			{Reg: amd64.RBX, Bytes: 4},
		},
	}
	return loop.EmitWhole(a)
}
