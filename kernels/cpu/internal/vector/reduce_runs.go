package vector

import (
	"math"
	"sync"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Routines reduce runs of numbers as scratch holds them, by one operation, in four vectors of
// partial results that are combined in a fixed order. Those of integers are modulo the bits of
// the class.

// A runReduction is the code of a reduction of a class.
type runReduction struct {
	moves    ElementMoves
	anyOrder bool                                               // All orders give the same numbers.
	identity uint64                                             // The bits of the value that changes nothing.
	combine  func(c *amd64.Chain, x, y amd64.Value) amd64.Value // The operation on two vectors.
}

// A runKey names the routines of an operation on a class.
type runKey struct {
	op    hlo.Opcode
	class portable.Class
}

// instruction is the combination by one instruction.
func instruction(op amd64.Op) func(
	c *amd64.Chain, x, y amd64.Value,
) amd64.Value {
	return func(
		c *amd64.Chain, x, y amd64.Value,
	) amd64.Value {
		return c.Do(op, x, y)
	}
}

// words is a reduction of elements of four bytes by one instruction, quads one of eight.
func words(identity uint64, op amd64.Op) runReduction {
	return runReduction{ElementMovesOf[4], true, identity, instruction(op)}
}

func quads(identity uint64, op amd64.Op) runReduction {
	return runReduction{ElementMovesOf[8], true, identity, instruction(op)}
}

// inOrder is the reduction in one order alone, as sums of floating-point numbers are.
func (f runReduction) inOrder() runReduction {
	f.anyOrder = false
	return f
}

// infinity64 is the bits of +∞.
const infinity64 = 0x7ff << 52

// numberReductions are the reductions of the classes besides f32, which has Reductions.
var numberReductions = map[portable.Class]map[hlo.Opcode]runReduction{
	portable.Int32: {
		hlo.OpAdd:      words(0, amd64.VPADDD),
		hlo.OpMultiply: words(1, amd64.VPMULLD),
		hlo.OpMaximum:  words(1<<31, amd64.VPMAXSD),
		hlo.OpMinimum:  words(1<<31-1, amd64.VPMINSD),
		hlo.OpAnd:      words(1<<32-1, amd64.VPAND),
		hlo.OpOr:       words(0, amd64.VPOR),
		hlo.OpXor:      words(0, amd64.VPXOR),
	},
	// Products, maxima and minima of 64 bits have no instruction in AVX2.
	portable.Int64: {
		hlo.OpAdd: quads(0, amd64.VPADDQ),
		hlo.OpAnd: quads(1<<64-1, amd64.VPAND),
		hlo.OpOr:  quads(0, amd64.VPOR),
		hlo.OpXor: quads(0, amd64.VPXOR),
	},
	portable.Float64: {
		hlo.OpAdd:      quads(0, amd64.VADDPD).inOrder(),
		hlo.OpMultiply: quads(one64, amd64.VMULPD).inOrder(),
		hlo.OpMaximum:  {ElementMovesOf[8], true, sign64 | infinity64, max64},
		hlo.OpMinimum:  {ElementMovesOf[8], true, infinity64, min64},
	},
}

// runReductions are the reductions with code.
var runReductions = func() map[runKey]runReduction {
	all := map[runKey]runReduction{}
	for class, of := range numberReductions {
		for op, f := range of {
			all[runKey{op, class}] = f
		}
	}
	for op, f := range Reductions {
		identity := uint64(math.Float32bits(f.Identity))
		anyOrder := op == hlo.OpMaximum || op == hlo.OpMinimum
		key := runKey{op, portable.Float32}
		all[key] = runReduction{
			ElementMovesOf[4], anyOrder,
			identity, f.Combine,
		}
	}
	return all
}()

// runKeyOf names the reduction of elements of type d by an operation. Truth values add as or.
// Unsigned numbers of 64 bits, which are held as i64, have an order of their own, but no
// maximum or minimum of that class has code.
func runKeyOf(op hlo.Opcode, d hlo.DType) runKey {
	if op == hlo.OpAdd && d == hlo.Pred {
		op = hlo.OpOr
	}
	return runKey{op, portable.ClassOf(d)}
}

// HasReduction reports whether there is code that reduces elements of type d by an operation.
func HasReduction(op hlo.Opcode, d hlo.DType) bool {
	_, ok := runReductions[runKeyOf(op, d)]
	return ok
}

// ReduceRoutinesOf are the routines that reduce elements of type d, as scratch holds them: over
// a row, and element by element. It has both or none. They are assembled at first use and stay
// for the life of the process.
func ReduceRoutinesOf(
	op hlo.Opcode, d hlo.DType,
) (rowAndEach [2]amd64.Func, ok bool) {
	made, known := reduceRoutines[runKeyOf(op, d)]
	if !known {
		return rowAndEach, false
	}
	return made()
}

// ReduceRoutines are those of f32.
func ReduceRoutines(
	op hlo.Opcode,
) (rowAndEach [2]amd64.Func, ok bool) {
	return ReduceRoutinesOf(op, hlo.F32)
}

// reduceRoutines make them.
var reduceRoutines = func() map[runKey]func() ([2]amd64.Func, bool) {
	all := map[runKey]func() ([2]amd64.Func, bool){}
	for key, f := range runReductions {
		all[key] = sync.OnceValues(f.routines)
	}
	return all
}()

// routines assembles both.
func (f runReduction) routines() (rowAndEach [2]amd64.Func, ok bool) {
	if !Supported() {
		return rowAndEach, false
	}
	row, ok := LoadRoutine(f.emitRow)
	each, ok2 := LoadRoutine(f.emitElementwise)
	if !ok || !ok2 {
		return rowAndEach, false
	}
	return [2]amd64.Func{row, each}, true
}

// accumulatorRegs are the accumulators of a row. All are reduced into the first
// in the end.
var accumulatorRegs = []amd64.Reg{
	amd64.Y8, amd64.Y9, amd64.Y10, amd64.Y11,
}

// emitRow reduces x into *y: of eight lanes, lane k of accumulator j has elements 32i + 8j + k.
// Where all orders give the same numbers, vectors of 64 bytes have those before.
func (f runReduction) emitRow(a *amd64.Assembler) error {
	EmitLoadArgs(a)
	// Lanes behind the end of the row are masked, and keep what they are.
	identity, storeOne := a.Splat32(uint32(f.identity)), amd64.VMOVSS
	if f.moves.Bytes == 8 {
		identity, storeOne = a.Splat64(f.identity), amd64.VMOVSD
	}
	for _, acc := range accumulatorRegs {
		a.Emit(amd64.VMOVUPS, acc, identity)
	}
	if f.anyOrder && amd64.RunsWide() {
		if err := f.emitWideRow(a, identity); err != nil {
			return err
		}
	}
	// Each copy of the chain has an accumulator of its own.
	c := &amd64.Chain{}
	sum := c.Pinned(accumulatorRegs...)
	c.Assign(
		sum,
		f.combine(c, sum, c.Load(
			f.moves.Load, amd64.Mem{Base: amd64.RSI}, 32,
		)),
	)
	loop := &amd64.Loop{
		Chain:    c,
		Counter:  amd64.RAX,
		Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: f.moves.Bytes}},
		Width:    f.moves.Bytes,
		Copies:   len(accumulatorRegs),
		Scratch:  amd64.RCX,
		Mask:     amd64.Y15,
		Reserved: accumulatorRegs,
	}
	if err := loop.Emit(a); err != nil {
		return err
	}
	return f.emitTotal(a, storeOne)
}

// emitWideRow reduces whole rounds of four vectors of 64 bytes, and then the halves of their
// accumulators into the low ones.
func (f runReduction) emitWideRow(a *amd64.Assembler, identity amd64.Mem) error {
	for _, acc := range accumulatorRegs {
		a.Emit(
			f.moves.Broadcast,
			acc.Wide(), identity,
		)
	}
	c := amd64.NewWideChain()
	sum := c.Pinned(accumulatorRegs...)
	x := c.Load(
		f.moves.Load,
		amd64.Mem{Base: amd64.RSI}, 32,
	)
	c.Assign(
		sum, f.combine(c, sum, x),
	)
	loop := &amd64.Loop{
		Chain:    c,
		Counter:  amd64.RAX,
		Pointers: []amd64.Pointer{{Reg: amd64.RSI, Bytes: f.moves.Bytes}},
		Width:    f.moves.Bytes,
		Copies:   len(accumulatorRegs),
		Reserved: accumulatorRegs,
		Wide:     true,
	}
	if _, err := loop.EmitRounds(a); err != nil {
		return err
	}
	return f.emitHalves(a)
}

// emitHalves combines the halves of accumulators of 64 bytes into the low ones.
func (f runReduction) emitHalves(a *amd64.Assembler) error {
	high := amd64.Y12
	for _, acc := range accumulatorRegs {
		a.Emit(
			amd64.VEXTRACTF64X4,
			high, acc.Wide(),
			amd64.Imm(1),
		)
		half := &amd64.Chain{}
		low := half.Pinned(acc)
		y := half.Pinned(high)
		half.Assign(
			low,
			f.combine(half, low, y),
		)
		p := amd64.Placement{
			Reserved: accumulatorRegs,
		}
		if err := half.Emit(a, p); err != nil {
			return err
		}
	}
	return nil
}

// emitTotal combines the partial results in pairs, then their lanes, and then what the row
// is reduced into.
func (f runReduction) emitTotal(
	a *amd64.Assembler, storeOne amd64.Op,
) error {
	end := &amd64.Chain{}
	v := f.combine(
		end,
		f.combine(
			end,
			end.Pinned(accumulatorRegs[0]),
			end.Pinned(accumulatorRegs[1]),
		),
		f.combine(
			end,
			end.Pinned(accumulatorRegs[2]),
			end.Pinned(accumulatorRegs[3]),
		),
	)
	fold := end.FoldLanes32
	if f.moves.Bytes == 8 {
		fold = end.FoldLanes64
	}
	v = fold(v, func(x, y amd64.Value) amd64.Value {
		return f.combine(end, x, y)
	})
	v = f.combine(
		end,
		end.Load(
			f.moves.Broadcast,
			amd64.Mem{Base: amd64.RDX}, 0,
		),
		v,
	)
	end.Assign(end.Pinned(accumulatorRegs[0]), v)
	if err := end.Emit(a, amd64.Placement{Reserved: accumulatorRegs}); err != nil {
		return err
	}
	a.Emit(
		storeOne,
		amd64.Mem{Base: amd64.RDX},
		accumulatorRegs[0].X(),
	)
	return nil
}

// emitElementwise reduces x into y, element by element.
func (f runReduction) emitElementwise(a *amd64.Assembler) error {
	EmitLoadArgs(a)
	bytes := f.moves.Bytes
	return emitInto(a, bytes, bytes, bytes, func(
		c *amd64.Chain, from, to amd64.Mem,
	) {
		y := c.Load(f.moves.Load, to, 32)
		x := c.Load(
			f.moves.Load, from, 32,
		)
		c.Store(
			f.moves.Store, to, 32,
			f.combine(c, y, x),
		)
	})
}

// Rows of a few elements are not worth a call each, nor a vector: of seven f32 one lane of eight
// is idle, and three steps combine the others. For rows of three the function is
//
//	vbroadcastss y0, [rsi]
//	vaddps       y0, y0, [rsi+4]      of all lanes, by a load of its own
//	vaddps       y0, y0, [rsi+8]
//	vaddps       y8, [rdx], y0
//	vmovss       [rdx], x8
//
// and the pointers move by 12 and 4 bytes.

// MaxShortRow is the elements of a row up to which EmitShortRows has code.
const MaxShortRow = 16

// EmitShortRows emits a function, for a plan, that reduces rows of n elements of type d by an operation, each
// into the next element of y: element by element, in all lanes of a vector alike, since loads of
// one element into all lanes are as fast as others and rows wait for each other in nothing. Eight
// of a row would have their lanes combined, which takes longer than it has terms. It reports
// false where there is no code.
func EmitShortRows(
	a *amd64.Assembler, op hlo.Opcode,
	d hlo.DType, n int64,
) bool {
	f, ok := runReductions[runKeyOf(op, d)]
	if !ok || n < 1 || n > MaxShortRow {
		return false
	}
	EmitLoadArgs(a)
	// What is combined first is the row, in the order of its elements, and then the result so
	// far with it, as emitRow has it.
	total, bytes := accumulatorRegs[0], int64(f.moves.Bytes)
	c := &amd64.Chain{}
	row := c.Load(
		f.moves.Broadcast,
		amd64.Mem{Base: amd64.RSI}, 0,
	)
	for k := int64(1); k < n; k++ {
		at := amd64.Mem{Base: amd64.RSI, Disp: int32(k * bytes)}
		row = f.combine(
			c, row,
			c.Load(f.moves.Broadcast, at, 0),
		)
	}
	y := c.Load(
		f.moves.Broadcast,
		amd64.Mem{Base: amd64.RDX}, 0,
	)
	c.Assign(
		c.Pinned(total),
		f.combine(c, y, row),
	)
	storeOne := amd64.VMOVSS
	if bytes == 8 {
		storeOne = amd64.VMOVSD
	}
	// A turn is a row, and several are on their way: 300,000 rows of three f32 take 0.8 ns each
	// of a lane (Zen 4, two lanes), by a call for each row 9 ns.
	next := a.NewLabel()
	a.Align(32)
	a.Bind(next)
	if c.Emit(a, amd64.Placement{Reserved: accumulatorRegs[:1]}) != nil {
		return false
	}
	a.Emit(
		storeOne, amd64.Mem{Base: amd64.RDX},
		total.X(),
	)
	a.Emit(
		amd64.ADD, amd64.RSI,
		amd64.Imm(n*bytes),
	)
	a.Emit(amd64.ADD, amd64.RDX, amd64.Imm(bytes))
	a.Emit(amd64.SUB, amd64.RAX, amd64.Imm(1))
	a.Emit(amd64.JG, next)
	a.Emit(amd64.RET)
	return true
}

// Windows of neighbouring places have elements in common: a vector of places has those of one
// element of all its windows in a vector of the array. Windows of five elements are
//
//	vmovups y0, [rsi]
//	vaddps  y0, y0, [rsi+4]
//	…
//	vaddps  y0, y0, [rsi+16]
//	vaddps  y0, y1, y0           y1 what the reduction begins with

// MaxWindow is the elements of a window up to which EmitWindows has code; of one in which the
// order of elements changes the result it is MaxShortRow, as far as rows are combined in order.
const MaxWindow = 64

// HasWindows reports whether EmitWindows has code for windows of n elements of type d.
func HasWindows(
	op hlo.Opcode, d hlo.DType, n int64,
) bool {
	f, ok := runReductions[runKeyOf(op, d)]
	return ok && n >= 1 && (n <= MaxShortRow ||
		f.anyOrder && n <= MaxWindow)
}

// WindowArgs is the argument block of windows at N places from X on, which become elements from Y
// on, each beginning with *Init.
type WindowArgs struct {
	N          int64
	X, Y, Init unsafe.Pointer
}

// EmitWindows emits a function, for a plan, that reduces windows, of which each begins an element
// behind the one before: elements of x at the offsets from the first, in their order and then
// behind what the reduction begins with, as EmitShortRows does.
func EmitWindows(
	a *amd64.Assembler, op hlo.Opcode, d hlo.DType, offsets []int64,
) bool {
	const init = amd64.R8
	f := runReductions[runKeyOf(op, d)]
	bytes := f.moves.Bytes
	EmitLoadArgs(a)
	emitLoadArg(a, init, 3)
	err := emitInto(a, bytes, bytes, bytes, func(
		c *amd64.Chain, from, to amd64.Mem,
	) {
		var window amd64.Value
		for k, offset := range offsets {
			at := from
			at.Disp = int32(offset * int64(bytes))
			x := c.Load(f.moves.Load, at, 32)
			if k > 0 {
				x = f.combine(c, window, x)
			}
			window = x
		}
		first := c.Load(
			f.moves.Broadcast, amd64.Mem{Base: init}, 0,
		)
		c.Store(
			f.moves.Store, to, 32, f.combine(c, first, window),
		)
	})
	a.Emit(amd64.RET)
	return err == nil
}
