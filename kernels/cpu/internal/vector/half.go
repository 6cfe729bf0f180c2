package vector

import (
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A bf16 is the upper half of an f32: a load widens and shifts, a store rounds to
// nearest even and narrows. An f16 has instructions for both directions (F16C). Runs
// are converted in calls of at most MaxCallLength elements.

// A HalfCodec emits the load of a type of two bytes as f32, and its store.
type HalfCodec struct {
	// Load emits a vector of eight elements as f32.
	Load  func(c *amd64.Chain, from amd64.Mem, advance int32) amd64.Value
	store func(c *amd64.Chain, to amd64.Mem, advance int32, v amd64.Value)
}

// HalfCodecs are the codecs of bf16 and f16.
var HalfCodecs = map[hlo.DType]HalfCodec{
	hlo.BF16: {(*amd64.Chain).LoadBF16, (*amd64.Chain).StoreBF16},
	hlo.F16:  {(*amd64.Chain).LoadF16, (*amd64.Chain).StoreF16},
}

// convertArgs is the argument block of conversions of n elements.
type convertArgs struct {
	n        int64 // The number of elements.
	from, to unsafe.Pointer
}

// HalfRoutines are the routines that load and store runs of a type of two
// bytes.
var HalfRoutines = sync.OnceValue(func() map[hlo.DType][2]amd64.Func {
	made := map[hlo.DType][2]amd64.Func{}
	if !Supported() {
		return made
	}
	for d, x := range HalfCodecs {
		in, ok := LoadRoutine(func(a *amd64.Assembler) error {
			return emitConversion(a, 2, 4, func(
				c *amd64.Chain, from, to amd64.Mem,
			) {
				c.Store(
					amd64.VMOVUPS, to, 32,
					x.Load(c, from, 16),
				)
			})
		})
		out, ok2 := LoadRoutine(func(a *amd64.Assembler) error {
			return emitConversion(a, 4, 2, func(
				c *amd64.Chain, from, to amd64.Mem,
			) {
				x.store(
					c, to, 16,
					c.Load(amd64.VMOVUPS, from, 32),
				)
			})
		})
		if ok && ok2 {
			made[d] = [2]amd64.Func{in, out}
		}
	}
	return made
})

// emitConversion emits a loop that converts elements of some bytes to elements
// of others.
func emitConversion(
	a *amd64.Assembler, from, to int,
	body func(c *amd64.Chain, from, to amd64.Mem),
) error {
	EmitLoadArgs(a)
	c := &amd64.Chain{}
	body(
		c,
		amd64.Mem{Base: amd64.RSI},
		amd64.Mem{Base: amd64.RDX},
	)
	loop := &amd64.Loop{
		Chain:   c,
		Counter: amd64.RAX,
		Pointers: []amd64.Pointer{
			{Reg: amd64.RSI, Bytes: from},
			{Reg: amd64.RDX, Bytes: to},
		},
		Width:   4,
		Copies:  4,
		Scratch: amd64.RCX,
		Mask:    amd64.Y15,
	}
	return loop.Emit(a)
}

// HalfReader is the transfer of a type of two bytes to scratch by a routine.
// Strided and very short runs go by the other transfer.
func HalfReader(f amd64.Func, otherwise portable.Transfer[float32]) portable.Transfer[float32] {
	return func(
		scratch []float32, data []byte, at, stride int64,
	) {
		if stride != 1 || len(scratch) < 8 {
			otherwise(scratch, data, at, stride)
			return
		}
		for data = data[2*at:]; len(scratch) > 0; {
			n := min(len(scratch), MaxCallLength)
			src := data[:2*n]
			f.Call(unsafe.Pointer(&convertArgs{
				int64(n),
				unsafe.Pointer(unsafe.SliceData(src)),
				unsafe.Pointer(unsafe.SliceData(scratch)),
			}))
			scratch = scratch[n:]
			data = data[2*n:]
		}
	}
}

// HalfWriter is the transfer of scratch to a type of two bytes by a routine,
// see HalfReader.
func HalfWriter(f amd64.Func, otherwise portable.Transfer[float32]) portable.Transfer[float32] {
	return func(
		scratch []float32, data []byte, at, stride int64,
	) {
		if stride != 1 || len(scratch) < 8 {
			otherwise(scratch, data, at, stride)
			return
		}
		for data = data[2*at:]; len(scratch) > 0; {
			n := min(len(scratch), MaxCallLength)
			dst := data[:2*n]
			f.Call(unsafe.Pointer(&convertArgs{
				int64(n),
				unsafe.Pointer(unsafe.SliceData(scratch)),
				unsafe.Pointer(unsafe.SliceData(dst)),
			}))
			scratch = scratch[n:]
			data = data[2*n:]
		}
	}
}
