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
// are converted in calls of at most MaxCallLength elements. So are integers of one and
// two bytes, which are held in four.

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

// narrowCodecs are those of integers and truth values that are held as i32, and of floating
// types of one byte.
var narrowCodecs = withSmallCodecs(map[hlo.DType]HalfCodec{
	hlo.Pred: {widening(amd64.VPMOVZXBD), (*amd64.Chain).StoreBytes},
	hlo.S8:   {widening(amd64.VPMOVSXBD), (*amd64.Chain).StoreBytes},
	hlo.U8:   {widening(amd64.VPMOVZXBD), (*amd64.Chain).StoreBytes},
	hlo.S16:  {widening(amd64.VPMOVSXWD), (*amd64.Chain).StoreWords},
	hlo.U16:  {widening(amd64.VPMOVZXWD), (*amd64.Chain).StoreWords},
})

// widening is the load by an instruction that widens.
func widening(op amd64.Op) func(c *amd64.Chain, from amd64.Mem, advance int32) amd64.Value {
	return func(c *amd64.Chain, from amd64.Mem, advance int32) amd64.Value {
		return c.Load(op, from, advance)
	}
}

// A storedType is how functions load and store elements of arrays whose types are held in
// scratch as others, in lanes of four bytes or eight.
type storedType struct {
	lanes int64
	codec HalfCodec
}

// storedTypes are those of u32 and of eight bytes, whose lanes have eight. Loads of u32 put
// zeros in front of it, which results have, too.
var storedTypes = map[hlo.DType]storedType{
	hlo.U32: {8, HalfCodec{
		func(c *amd64.Chain, from amd64.Mem, _ int32) amd64.Value { return c.LoadLow(from) },
		func(c *amd64.Chain, to amd64.Mem, _ int32, x amd64.Value) { c.StoreLow(to, x) },
	}},
	hlo.S64: eightBytes,
	hlo.U64: eightBytes,
	hlo.F64: eightBytes,
}

// eightBytes are elements that arrays hold as scratch does.
var eightBytes = storedType{8, HalfCodec{
	func(c *amd64.Chain, from amd64.Mem, _ int32) amd64.Value {
		return c.Load(amd64.VMOVUPD, from, 32)
	},
	func(c *amd64.Chain, to amd64.Mem, _ int32, x amd64.Value) {
		c.Store(amd64.VMOVUPD, to, 32, x)
	},
}}

// storedTypeOf is how elements of a type are loaded and stored; no lanes where they are not.
func storedTypeOf(d hlo.DType) storedType {
	if x, ok := HalfCodecs[d]; ok {
		return storedType{4, x}
	}
	if x, ok := narrowCodecs[d]; ok {
		return storedType{4, x}
	}
	return storedTypes[d]
}

// StoredLanes is the bytes of the lanes of functions that LoadStored and StoreStored serve, 0
// where these have nothing for the type.
func StoredLanes(d hlo.DType) int64 { return storedTypeOf(d).lanes }

// LoadStored is a vector of elements of an array of type d, as scratch holds them.
func LoadStored(c *amd64.Chain, from amd64.Mem, d hlo.DType) amd64.Value {
	x := storedTypeOf(d)
	return x.codec.Load(
		c, from,
		int32(d.Size()*32/x.lanes),
	)
}

// StoreStored stores a vector as elements of an array of type d.
func StoreStored(c *amd64.Chain, to amd64.Mem, d hlo.DType, v amd64.Value) {
	x := storedTypeOf(d)
	x.codec.store(c, to, int32(d.Size()*32/x.lanes), v)
}

// A narrowRoutine loads or stores runs of a type of one or two bytes.
type narrowRoutine struct {
	f     amd64.Func
	bytes int // The size of an element.
}

// A narrowType names the routine that loads a type, or the one that stores it.
type narrowType struct {
	d      hlo.DType
	stores bool
}

// narrowRoutines are those that were asked for; the value of a type without one has no bytes.
var narrowRoutines sync.Map // narrowType → func() narrowRoutine

// routineOf is the routine of a type, which is assembled at its first use.
func routineOf(t narrowType) (narrowRoutine, bool) {
	made, _ := narrowRoutines.LoadOrStore(t, sync.OnceValue(t.assemble))
	r := made.(func() narrowRoutine)()
	return r, r.bytes > 0
}

// assemble makes the routine of a type; the zero value where there is none.
func (t narrowType) assemble() narrowRoutine {
	x, known := HalfCodecs[t.d]
	if !known {
		x, known = narrowCodecs[t.d]
	}
	if !known || !Supported() {
		return narrowRoutine{}
	}
	bytes := int(t.d.Size())
	f, ok := x.routine(bytes, t.stores)
	if !ok {
		return narrowRoutine{}
	}
	return narrowRoutine{f, bytes}
}

// routine assembles the loop that loads elements of so many bytes, or stores them.
func (x HalfCodec) routine(bytes int, stores bool) (amd64.Func, bool) {
	step := int32(8 * bytes)
	return LoadRoutine(func(a *amd64.Assembler) error {
		if !stores {
			return emitConversion(a, bytes, 4, func(c *amd64.Chain, from, to amd64.Mem) {
				c.Store(amd64.VMOVUPS, to, 32, x.Load(c, from, step))
			})
		}
		return emitConversion(a, 4, bytes, func(c *amd64.Chain, from, to amd64.Mem) {
			x.store(c, to, step, c.Load(amd64.VMOVUPS, from, 32))
		})
	})
}

// emitConversion emits a loop that converts elements of some bytes to elements
// of others.
func emitConversion(
	a *amd64.Assembler, from, to int,
	body func(c *amd64.Chain, from, to amd64.Mem),
) error {
	EmitLoadArgs(a)
	return emitInto(a, from, to, 4, body)
}

// emitInto emits a loop over elements of some bytes at RSI and RDX in lanes of width, whose
// count is in RAX, as many vectors of 64 bytes at once as there are where these are.
func emitInto(
	a *amd64.Assembler, from, to, width int,
	body func(c *amd64.Chain, from, to amd64.Mem),
) error {
	chain := func(c *amd64.Chain) *amd64.Chain {
		body(
			c,
			amd64.Mem{Base: amd64.RSI},
			amd64.Mem{Base: amd64.RDX},
		)
		return c
	}
	loop := &amd64.Loop{
		Chain:   chain(&amd64.Chain{}),
		Counter: amd64.RAX,
		Pointers: []amd64.Pointer{
			{Reg: amd64.RSI, Bytes: from},
			{Reg: amd64.RDX, Bytes: to},
		},
		Width:   width,
		Copies:  4,
		Scratch: amd64.RCX,
		Mask:    amd64.Y15,
	}
	if amd64.RunsWide() {
		wide := *loop
		wide.Chain, wide.Wide = chain(amd64.NewWideChain()), true
		// What has no form for 64 bytes is left to the other loop.
		_, _ = wide.EmitRounds(a)
	}
	return loop.Emit(a)
}

// NarrowReader is the transfer of a type of one or two bytes to scratch by a routine,
// where there is one. Strided and very short runs go by the other transfer.
func NarrowReader[T portable.Number](d hlo.DType, otherwise portable.Transfer[T]) portable.Transfer[T] {
	return narrowTransfer(narrowType{d, false}, otherwise)
}

// NarrowWriter is the transfer of scratch to a type of one or two bytes, see
// NarrowReader.
func NarrowWriter[T portable.Number](d hlo.DType, otherwise portable.Transfer[T]) portable.Transfer[T] {
	return narrowTransfer(narrowType{d, true}, otherwise)
}

// narrowTransfer is the transfer by the routine of a type, where there is one.
func narrowTransfer[T portable.Number](t narrowType, otherwise portable.Transfer[T]) portable.Transfer[T] {
	x, ok := routineOf(t)
	if !ok {
		return otherwise
	}
	return func(
		scratch []T, data []byte, at, stride int64,
	) {
		if stride != 1 || len(scratch) < 8 {
			otherwise(scratch, data, at, stride)
			return
		}
		for data = data[int64(x.bytes)*at:]; len(scratch) > 0; {
			n := min(len(scratch), MaxCallLength)
			array := data[:x.bytes*n]
			args := convertArgs{
				int64(n),
				unsafe.Pointer(unsafe.SliceData(array)),
				unsafe.Pointer(unsafe.SliceData(scratch)),
			}
			if t.stores {
				args.from, args.to = args.to, args.from
			}
			x.f.Call(unsafe.Pointer(&args))
			scratch = scratch[n:]
			data = data[x.bytes*n:]
		}
	}
}
