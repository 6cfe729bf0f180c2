package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/dilation"
	"github.com/tilewright/tilewright/kernels/cpu/internal/gemm"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A dot multiplies the tiles of its operands as matrices. The dimensions of an
// operand fall into batch, rows and columns. If those of each part can be merged to
// one stride, package gemm reads the tile in place, also directly in an array of the
// caller; otherwise the tile is packed first. Results go to scratch, or directly to
// an output where nothing else reads them.
//
// A right operand that lies in memory as the kernels read it, in panels of some columns
// (tensor.pack of its columns, panels outermost), is multiplied where it is: the
// operations that unpack it are not lowered.
//
// In a loop over a contracted dimension the dot accumulates: the first iteration
// overwrites (fresh), the others add. A split divides the terms of one product, or
// the iterations of the loop, among several tile programs.

// dot multiplies tiles as matrices, one product for each element of the batch.
func (b *block) dot(op symtile.Op, c *accumulator) {
	switch c.outs[0].class {
	case portable.Float32:
		if b.l.hasLanes(op) {
			b.laneDot(op, c)
			return
		}
		dotAs[float32](b, op, c)
	case portable.Float64:
		dotAs[float64](b, op, c)
	case portable.Int32:
		dotAs[int32](b, op, c)
	case portable.Int64:
		dotAs[int64](b, op, c)
	}
}

// dotAs is dot for operands of one class.
func dotAs[T portable.Number](b *block, op symtile.Op, c *accumulator) {
	a := op.Instr.Attrs
	parts := [2][][]int64{
		b.l.operandParts(op, 0),
		b.l.operandParts(op, 1),
	}
	left := operandMatrices[T](
		b, op, 0, c, a.LHSContract, parts[0],
	)
	right := operandMatrices[T](
		b, op, 1, c, a.RHSContract, parts[1],
	)
	out := resultMatrices[T](
		b, op, c, len(a.LHSBatch), len(parts[0][1]),
	)
	pack := b.l.knob("pack", -1)
	how := b.l.halves(op)
	d := &dotRun{
		left:    left,
		right:   right,
		out:     out,
		fresh:   b.l.slotCount,
		caches:  b.l.spec.Caches,
		packing: packings[pack],
		past:    b.l.writesProductPast(op, out),
		batched: isBatched(op, how, left, right),
	}
	b.l.slotCount++
	// The first product overwrites its result instead of adding to zeros.
	c.prologue = append(c.prologue, func(w *worker) {
		w.slots[d.fresh] = 1
	})
	c.empty = d.isFresh
	x := gemm.Product[T]{
		M:       int(out.extents[1]),
		N:       int(out.extents[2]),
		K:       int(left.extents[2]),
		Caches:  d.caches,
		Windows: left.windows,
	}
	multiply, length := multiplierFor(op, x, how)
	if f := left.dilated; f != nil {
		f.setResult(b, op, c, out)
		length = max(length, scratchOf(f, x))
	}
	// The scratch also serves parts, which may be divided into larger blocks than all terms
	// are, and the product that adds partial sums.
	if s := b.l.split; s != nil {
		for part := range s.lengths(int64(x.K), splitUnit) {
			x.K = int(part)
			_, n := multiplierFor(op, x, how)
			length = max(length, n)
		}
		length = max(
			length,
			gemm.Scratch[T](1, int(out.v.n), int(s.parts)),
		)
		splitDot[T](c, s, out.v, d.fresh)
		if !s.trips {
			d.split = s
		}
	}
	b.l.packingBytes = max(
		b.l.packingBytes,
		int64(length)*portable.ClassFor[T]().Bytes(),
	)
	c.accumulate = func(w *worker) {
		runDot(w, d, multiply)
	}
}

// A dotRun is a dot as it runs.
type dotRun struct {
	left, right, out *matrixOperand // The operands and the result.
	// The slot that is 1 until something was accumulated.
	fresh   int
	packing gemm.Packing // Which operands package gemm packs.
	past    bool         // The result is written past the caches.
	batched bool         // Package gemm multiplies short products of a batch together.
	caches  gemm.Caches  // The caches for which it blocks.
	// The split of the contraction, nil where each program computes all of it.
	split *splitK
}

// apart is the elements between matrices of the result and of both operands.
func (d *dotRun) apart() [3]int {
	return [3]int{
		int(d.out.strides[0]),
		int(d.left.strides[0]),
		int(d.right.strides[0]),
	}
}

// isFresh reports whether nothing was accumulated yet.
func (d *dotRun) isFresh(w *worker) bool {
	return w.slots[d.fresh] == 1
}

// packings are the values of the knob; without it, packing is gemm.Suitable.
var packings = map[int64]gemm.Packing{
	0: gemm.Streamed,
	1: gemm.Packed,
}

// splitUnit is the number of terms that a split does not divide: a cache line
// of f32.
const splitUnit = 16

// longProduct is the number of multiplications of a product, some 20 µs, before which a dot
// of several looks at the context: one tile program may have seconds of them, and whoever
// runs it on arrays that repeat their pages takes these back when it looks.
const longProduct = 1 << 22

// runDot packs the operands that need it and multiplies.
func runDot[T portable.Number](w *worker, d *dotRun, multiply multiplier[T]) {
	for _, x := range []*matrixOperand{d.left, d.right} {
		if x.pack != nil {
			x.pack(w)
		}
	}
	x := gemm.Product[T]{
		M:       int(d.out.extents[1]),
		N:       int(d.out.extents[2]),
		K:       int(d.left.extents[2]),
		Fresh:   d.isFresh(w),
		Packing: d.packing,
		Past:    d.past,
		Caches:  d.caches,
		Windows: d.left.windows,
		Weights: d.right.weights,
	}
	if d.left.dilated != nil &&
		isFinite(w, d, x, multiply) {
		runPhases(w, d, x, multiply)
		w.slots[d.fresh] = 0
		return
	}
	// A part takes a range of terms: columns of the left operand and rows of the
	// right one.
	first := 0
	if d.split != nil {
		begin, end := d.split.rangeOf(
			w, int64(x.K), splitUnit,
		)
		first = int(begin)
		x.K = int(end - begin)
	}
	scratch := packingScratch[T](w)
	long := x.M*x.N*x.K >= longProduct
	batch := int(d.left.extents[0])
	// What the shape of short products decides is decided once for all of them: a call for
	// each takes several times as long as 8×8×8.
	if d.batched && !long && batch > 1 {
		x.Panels = int(d.right.panels)
		x.C, x.A, x.B = matrix[T](w, d.out, 0),
			matrix[T](w, d.left, 0),
			matrix[T](w, d.right, 0)
		// Each product has the terms of this part.
		if first > 0 && x.K > 0 {
			x = x.FromTerm(first)
		}
		x.MultiplyBatch(batch, d.apart(), scratch)
		w.slots[d.fresh] = 0
		return
	}
	for i := range batch {
		if long && w.stopped() {
			break
		}
		x.C, x.A, x.B = matrix[T](w, d.out, i),
			matrix[T](w, d.left, i),
			matrix[T](w, d.right, i)
		x.Panels = int(d.right.panels)
		x.Short = [2]gemm.Short{
			d.left.short(w, i),
			d.right.short(w, i),
		}
		if first > 0 && x.K > 0 {
			x = x.FromTerm(first)
		}
		multiply(x, scratch)
	}
	w.slots[d.fresh] = 0
}

// packingScratch is the scratch of dots.
func packingScratch[T portable.Number](w *worker) []T {
	return unsafe.Slice(
		(*T)(unsafe.Pointer(unsafe.SliceData(w.packing))),
		int64(len(w.packing))/portable.ClassFor[T]().Bytes(),
	)
}

// resultMatrices are the matrices that a dot makes, of batch, rows and columns.
// They are part of an output where nothing else reads them, and dense
// otherwise.
func resultMatrices[T portable.Number](b *block, op symtile.Op, c *accumulator, batch, rows int) *matrixOperand {
	v, sizes := c.outs[0], op.Tile.Sizes()
	dims := make([]int64, len(sizes))
	for k := range dims {
		dims[k] = int64(k)
	}
	parts := [][]int64{
		dims[:batch],
		dims[batch : batch+rows],
		dims[batch+rows:],
	}
	// Kernels of package gemm need contiguous columns of the result.
	x := &matrixOperand{v: v}
	v.strides = b.l.outputStrides(op)
	if v.strides != nil &&
		x.collapse(sizes, v.strides, parts) &&
		x.strides[2] == 1 {
		v.n = spanOf(sizes, v.strides)
		return x
	}
	v.strides = nil
	x.collapse(sizes, hlo.RowMajor(sizes), parts)
	x.strides[2] = 1 // A matrix of one column has it, too.
	return x
}

// writesProductPast reports whether a dot makes elements of an output that is written past the
// caches, each by one product.
func (l *lowering) writesProductPast(op symtile.Op, out *matrixOperand) bool {
	left := op.Instr.Operands[0].Shape.Dims
	tile := l.p.Ops[op.Args[0]].Tile.Sizes()
	for _, d := range op.Instr.Attrs.LHSContract {
		if tile[d] != left[d] {
			return false
		}
	}
	return out.v.strides != nil && l.split == nil &&
		l.storesNonTemporal(op.Instr.Shape)
}

// outputStrides is the strides in an output of the tile of an op, if the output
// has its type, all elements are valid, and one root, which all tile programs store, is
// the only reader; else nil. A copy of the same tile is another name of it.
func (l *lowering) outputStrides(op symtile.Op) []int64 {
	// Partial results of a split are scratch. Where an op has several tiles, or several
	// readers, the output is written from scratch.
	readers := readersOf(l.p, op.Instr)
	for len(readers) == 1 {
		next := l.p.Ops[readers[0]]
		if next.Code != hlo.OpCopy ||
			!slices.Equal(next.Tile.Sizes(), op.Tile.Sizes()) {
			return nil
		}
		op = next
		readers = readersOf(l.p, op.Instr)
	}
	var roots []symtile.Root
	for _, r := range l.p.Roots {
		if l.p.Ops[r.Op].Instr == op.Instr {
			roots = append(roots, r)
		}
	}
	if len(readers) > 0 ||
		len(roots) != 1 ||
		len(roots[0].Once) > 0 ||
		l.split != nil ||
		!portable.IsNative(op.Instr.Shape.DType) {
		return nil
	}
	return l.arrayStrides(op)
}

// A multiplier multiplies matrices, with scratch to pack them in.
type multiplier[T portable.Number] func(
	x gemm.Product[T], scratch []T,
)

// multiplierFor is how matrices of T are multiplied, and the elements of
// scratch that it needs. Integers of at most 16 bits are multiplied two terms
// at a time, those of at most eight by tiles where the processor has AMX, or four terms at
// a time where it has VNNI; bf16 and f16 as the knobs say.
func multiplierFor[T portable.Number](
	op symtile.Op, x gemm.Product[T], how gemm.Halves,
) (multiplier[T], int) {
	multiply, scratch := gemm.Product[T].Multiply, x.Scratch()
	switch x := any(x).(type) {
	case gemm.Product[int32]:
		f, n := integerMultiplier(op.Instr.Operands, x)
		if f != nil {
			return any(f).(multiplier[T]), n
		}
	case gemm.Product[float32]:
		if how != gemm.MultiplyAdds {
			f := multiplierOfHalves(how)
			n := gemm.ScratchHalves(x, how)
			return any(f).(multiplier[T]), n
		}
	}
	return multiply, scratch
}

// isBatched reports whether matrices are multiplied by Product.Multiply, as multiplierFor says,
// and held in elements of the class of the dot.
func isBatched(
	op symtile.Op, how gemm.Halves,
	left, right *matrixOperand,
) bool {
	return how == gemm.MultiplyAdds &&
		integerBits(op.Instr.Operands) > 16 &&
		left.v.short == 0 &&
		right.v.short == 0
}

// multiplierOfHalves multiplies bf16 or f16.
func multiplierOfHalves(how gemm.Halves) multiplier[float32] {
	return func(
		x gemm.Product[float32],
		scratch []float32,
	) {
		gemm.MultiplyHalves(x, scratch, how)
	}
}

// A half is a type of 16 bits whose products have kernels of their own, by the name of the
// knob that says whether they are used.
type half string

const (
	noHalf half = ""
	bfloat half = "bf16"
	half16 half = "f16"
)

// halfKinds are the types.
var halfKinds = map[hlo.DType]half{
	hlo.BF16: bfloat,
	hlo.F16:  half16,
}

// halfProducts are the ways to multiply by the values of the knobs.
var halfProducts = map[half][]gemm.Halves{
	bfloat: {
		gemm.MultiplyAdds,
		gemm.Pairs,
		gemm.Tiles,
	},
	half16: {
		gemm.MultiplyAdds,
		gemm.F16Tiles,
	},
}

// products is how a value of the knob says to multiply.
func (h half) products(way int64) gemm.Halves {
	return halfProducts[h][way]
}

// ways are the values of the knob, but 0, that there are kernels for.
func (h half) ways(
	has func(gemm.Halves) bool,
) (ways []int64) {
	for way, how := range halfProducts[h] {
		if way > 0 && has(how) {
			ways = append(ways, int64(way))
		}
	}
	return ways
}

// halfKernels are the values of the knob that this processor has kernels for. The first
// call asks the system for the permission to use those of AMX.
func halfKernels(h half) []int64 { return h.ways(gemm.HasHalves) }

// halfOf is the type of both operands of a dot.
func halfOf(op symtile.Op) half {
	if !isDot(op) {
		return noHalf
	}
	operands := op.Instr.Operands
	h := halfKinds[readType(operands[0])]
	if halfKinds[readType(operands[1])] != h {
		return noHalf
	}
	return h
}

// halfOfDots is the half of a program that has dots, all of them of it. Where they differ,
// no knob is offered and prices are those of multiply-adds; a plan may have both knobs all the
// same.
func halfOfDots(p *symtile.Program) half {
	h := noHalf
	for _, op := range p.Ops {
		if !isDot(op) {
			continue
		}
		of := halfOf(op)
		if h == noHalf {
			h = of
		}
		if of == noHalf || of != h {
			return noHalf
		}
	}
	return h
}

// dotsOfBytes reports whether a program has dots, all of them of bytes.
func dotsOfBytes(p *symtile.Program) bool {
	some := false
	for _, op := range p.Ops {
		if isDot(op) {
			some = true
			if integerBits(op.Instr.Operands) > 8 {
				return false
			}
		}
	}
	return some
}

// halves is how the plan says to multiply the operands of a dot.
func (l *lowering) halves(dot symtile.Op) gemm.Halves {
	h, way := halfOf(dot), int64(0)
	switch h {
	case noHalf:
		return gemm.MultiplyAdds
	case bfloat:
		way = l.knob("bf16", 0)
	case half16:
		way = l.knob("f16", 0)
	}
	return h.products(way)
}

// integerMultiplier multiplies integers of 16 bits at most, with the elements of scratch
// that it needs; it is nil where operands have more.
func integerMultiplier(
	operands []*hlo.Instr, like gemm.Product[int32],
) (multiplier[int32], int) {
	bits := integerBits(operands)
	switch {
	case bits > 16:
		return nil, 0
	case bits > 8 || !gemm.HasInt8():
		return gemm.MultiplyInt16, gemm.ScratchInt16()
	}
	unsigned := unsignedBytes(operands)
	f := func(
		x gemm.Product[int32],
		scratch []int32,
	) {
		gemm.MultiplyInt8(x, scratch, unsigned)
	}
	return f, gemm.ScratchInt8(like)
}

// unsignedBytes says which of the two operands of a product of bytes have elements from
// 128 on: what is read of the others as signed bytes is what they are.
func unsignedBytes(operands []*hlo.Instr) (is [2]bool) {
	for k := range is {
		is[k] = readType(operands[k]) == hlo.U8
	}
	return is
}

// smallBits is the bits of integers of 16 bits at most. Those of four bits, signed or not,
// and truth values fit in a signed byte.
var smallBits = map[hlo.DType]int{
	hlo.S16:  16,
	hlo.S8:   8,
	hlo.U8:   8,
	hlo.S4:   4,
	hlo.U4:   4,
	hlo.Pred: 1,
}

// integerBits is the bits of the widest of integer operands, and more than any where one
// is not an integer of 16 bits at most.
func integerBits(operands []*hlo.Instr) (bits int) {
	for _, x := range operands {
		n, ok := smallBits[readType(x)]
		if !ok {
			return 64
		}
		bits = max(bits, n)
	}
	return bits
}

// readType is the type of the values of an operand: of a conversion that keeps all
// values, the type that it converts.
func readType(x *hlo.Instr) hlo.DType {
	to := x.Shape.DType
	if x.Op != hlo.OpConvert {
		return to
	}
	from := x.Operands[0].Shape.DType
	switch {
	case to == hlo.S32 && smallBits[from] > 0:
		return from
	case to == hlo.F32 && halfKinds[from] != noHalf:
		return from
	}
	return to
}

// indexOf is the index of n in dims, or −1.
func indexOf(dims []int64, n int) int {
	return slices.Index(dims, int64(n))
}

// A matrixOperand is the matrices of one side of a dot: extents and strides of
// batch, rows and columns.
type matrixOperand struct {
	v *value // The value of which the matrices are parts.
	// The extents and strides of batch, rows and columns.
	extents, strides [3]int64
	// The elements between panels of the columns, 0 where they are no panels.
	panels int64
	// What packs the operand; nil where it is used in place.
	pack step
	// The windows that it is, which package gemm reads in their array; see unpackWindows.
	windows *gemm.Windows
	// Where its rows lie, of a right operand that package gemm packs from there.
	weights *gemm.Weights
	// What of it is not between the elements of a dilated array; nil where nothing is.
	dilated *dilated
}

// matrix is matrix number i.
func matrix[T portable.Number](
	w *worker, x *matrixOperand, i int,
) gemm.Matrix[T] {
	m := gemm.Matrix[T]{
		Row: int(x.strides[1]),
		Col: int(x.strides[2]),
	}
	if x.v.short == 0 {
		m.Data = whole[T](w, x.v)[i*int(x.strides[0]):]
	}
	return m
}

// short is the elements of matrix number i of an array of short elements.
func (x *matrixOperand) short(w *worker, i int) gemm.Short {
	size := x.v.short
	if size == 0 {
		return gemm.Short{}
	}
	n := x.v.n * size
	array := w.addresses[x.v.id]
	return gemm.Short{
		Data: unsafe.Slice((*byte)(array), n),
		Size: int(size),
	}.From(i * int(x.strides[0]))
}

// readAsShort reports whether only dots read an op, a parameter of bytes or bf16, that
// multiply its elements as they lie in memory.
func (l *lowering) readAsShort(n int) bool {
	source := l.p.Ops[n]
	for _, x := range l.copies.panels {
		if x.view.source == n {
			return false
		}
	}
	for at, user := range l.p.Ops {
		for k, a := range user.Args {
			if a != n || !l.copies.lowered[at] {
				continue
			}
			if !l.takesShort(user, k, source.Tile, source) &&
				!l.takesReshaped(at, source) {
				return false
			}
		}
	}
	return true
}

// takesReshaped reports whether only dots read a reshape of a parameter, and could multiply
// its elements as they lie in memory.
func (l *lowering) takesReshaped(n int, source symtile.Op) bool {
	op := l.p.Ops[n]
	if op.Code != hlo.OpReshape || l.copies.ops[n] != nil ||
		slices.ContainsFunc(l.p.Roots, func(r symtile.Root) bool { return r.Op == n }) ||
		slices.ContainsFunc(op.Tile, symtile.DimTile.Masked) {
		return false
	}
	for at, user := range l.p.Ops {
		for k, a := range user.Args {
			if a == n && l.copies.lowered[at] && !l.takesShort(user, k, op.Tile, source) {
				return false
			}
		}
	}
	return true
}

// multipliedAsShort reports whether a dot alone reads op n, which makes bf16, as its left operand
// in place, and has kernels that read bf16 as it lies in memory. These take denormal numbers for
// zeros.
func (l *lowering) multipliedAsShort(n int) bool {
	if l.p.Ops[n].Instr.Shape.DType != hlo.BF16 {
		return false
	}
	for {
		reader := l.onlyReader(n)
		if reader < 0 {
			return false
		}
		op := l.p.Ops[reader]
		from := op.Instr.Shape.DType
		switch {
		case isDot(op):
			return op.Args[0] == n && l.copies.lowered[reader] &&
				gemm.ReadsHalves(l.halves(op)) && l.isMatrix(op, n)
		case op.Code == hlo.OpReshape, op.Code == hlo.OpCopy,
			op.Code == hlo.OpConvert && sameInScratch(hlo.BF16, from):
			n = reader
		default:
			return false
		}
	}
}

// isMatrix reports whether the dense tile of op n, the left operand of a dot, is matrices without
// a copy.
func (l *lowering) isMatrix(dot symtile.Op, n int) bool {
	tile := l.p.Ops[n].Tile
	sizes := tile.Sizes()
	x := &matrixOperand{}
	return !masksAny(tile, dot.Instr.Attrs.LHSContract) &&
		x.collapse(sizes, hlo.RowMajor(sizes), l.operandParts(dot, 0))
}

// unfoldedAsShort reports whether only an unfold reads an op, a parameter of bytes or bf16
// or one with something around it, whose windows a dot packs and multiplies without a copy
// of 32 bits.
func (l *lowering) unfoldedAsShort(n int) bool {
	source := l.p.Ops[n]
	unfold := l.onlyReader(n)
	if unfold < 0 || !l.packedByDot(unfold) {
		return false
	}
	if _, _, ok := source.Tile.Boxes(); !ok {
		return false
	}
	dot := l.p.Ops[l.onlyReader(unfold)]
	k := slices.Index(dot.Args, unfold)
	contract := dot.Instr.Attrs.LHSContract
	if k == 1 {
		contract = dot.Instr.Attrs.RHSContract
	}
	// Masked terms would have to be cleared in the copy.
	masked := func(d int64) bool {
		return l.p.Ops[unfold].Tile[d].Masked()
	}
	return !slices.ContainsFunc(contract, masked) &&
		l.multipliesShort(dot, source)
}

// padsShort reports whether an op pads a parameter of bytes that is unfolded as it lies in
// memory. What is around it is held in 32 bits, of which the first byte is its element.
func (l *lowering) padsShort(n int) bool {
	op := l.p.Ops[n]
	return op.Code == hlo.OpPad && op.Instr.Shape.DType.Size() == 1 &&
		l.p.Ops[op.Args[0]].Code == hlo.OpParameter &&
		l.unfoldedAsShort(n)
}

// onlyReader is the op that alone reads another, once; −1 where several or a root do.
func (l *lowering) onlyReader(n int) int {
	reader := -1
	for at, op := range l.p.Ops {
		for _, a := range op.Args {
			if a == n && reader >= 0 {
				return -1
			}
			if a == n {
				reader = at
			}
		}
	}
	for _, r := range l.p.Roots {
		if r.Op == n {
			return -1
		}
	}
	return reader
}

// loadShort copies a tile of a parameter to scratch as its elements lie in memory, with
// zeros for masked ones.
func (b *block) loadShort(n int, v *value) {
	op := b.l.p.Ops[n]
	v.short = op.Instr.Shape.DType.Size()
	sizes := op.Tile.Sizes()
	t := newComposedView(n, sizes, hlo.RowMajor(sizes))
	for k, d := range op.Tile {
		if d.Masked() {
			t.dims[k].inside = []symtile.DimTile{d}
		}
	}
	b.lowerCopies(
		&composition{views: []composedView{t}},
		&instr{
			name: "load " + op.Instr.Name + " as it lies",
			outs: []*value{v},
		},
		tileCopy{
			width: v.short,
			to:    -1,
			dst:   v.data,
		},
		nil,
	)
}

// takesShort reports whether a dot multiplies argument k, a tile of a parameter that may be
// reshaped, without a copy of 32 bits.
func (l *lowering) takesShort(dot symtile.Op, k int, tile symtile.Tile, source symtile.Op) bool {
	if !isDot(dot) {
		return false
	}
	sizes := tile.Sizes()
	strides := reshapedStrides(source.Tile.Sizes(), l.arrayStrides(source), sizes)
	x := &matrixOperand{}
	return strides != nil &&
		x.collapse(sizes, strides, l.operandParts(dot, k)) &&
		l.multipliesShort(dot, source)
}

// reshapedStrides is the strides of a tile of other sizes with the same elements, which
// differ in dimensions of one element; nil where others do.
func reshapedStrides(from, strides, to []int64) []int64 {
	out := make([]int64, len(to))
	d := 0
	for k, size := range to {
		if size == 1 {
			continue
		}
		for d < len(from) && from[d] == 1 {
			d++
		}
		if d == len(from) || from[d] != size {
			return nil
		}
		out[k] = strides[d]
		d++
	}
	for ; d < len(from); d++ {
		if from[d] != 1 {
			return nil
		}
	}
	return out
}

// multipliesShort reports whether a dot has kernels that pack the elements of a parameter
// as they lie in memory.
func (l *lowering) multipliesShort(dot, source symtile.Op) bool {
	kind := source.Instr.Shape.DType
	to := portable.ClassOf(dot.Instr.Shape.DType)
	operands := dot.Instr.Operands
	switch {
	case to != portable.ClassOf(kind):
		return false
	case kind == hlo.S8 || kind == hlo.U8:
		return gemm.ReadsBytes() &&
			integerBits(operands) == 8
	case kind == hlo.BF16:
		return gemm.ReadsHalves(l.halves(dot))
	}
	return false
}

// operandMatrices finds the matrices in the tile of argument k. Where the
// dimensions of each part are one, and masked elements are zeros, the tile is
// used in place. Otherwise it is packed in the order of the parts, with zeros
// where contracted dimensions are masked.
func operandMatrices[T portable.Number](
	b *block, op symtile.Op, k int, c *accumulator,
	contract []int64, parts [][]int64,
) *matrixOperand {
	key := panelKey{op.Args[k], op.Instr}
	kept := b.l.kept[key]
	if kept != nil && k == 1 &&
		b.keeps == nil {
		return keptMatrices[T](b, op, kept, c, parts)
	}
	panels := b.l.copies.panels[key]
	if panels != nil && k == 1 {
		return b.panelMatrices(panels, c)
	}
	source := b.l.p.Ops[op.Args[k]]
	from := materialized(b, op, k)
	c.args = append(c.args, from)
	x := &matrixOperand{v: from}
	strides := stridesOf(from, source.Tile)
	if source.Code == hlo.OpReshape && from.strides != nil {
		of := b.l.p.Ops[source.Args[0]].Tile
		strides = reshapedStrides(of.Sizes(), strides, source.Tile.Sizes())
	}
	if b.l.packsUnfold(op.Args[k]) {
		strides, _ = b.l.viewStrides(source)
	}
	start := int64(0)
	if b.l.packsReverse(op.Args[k]) {
		strides = stridesOf(from, b.l.p.Ops[source.Args[0]].Tile)
		strides, start = reversedStrides(source, strides)
	}
	sizes := source.Tile.Sizes()
	together := x.collapse(sizes, strides, parts)
	// Masked terms must be zero in both operands, for NaN would survive a product
	// with zero. Masked rows and columns do no harm: they are masked in the result.
	var masked []int64
	for _, d := range contract {
		// Loads leave zeros in masked elements.
		if source.Tile[d].Masked() &&
			source.Code != hlo.OpParameter {
			masked = append(masked, d)
		}
	}
	if together && masked == nil && start == 0 &&
		from.class == portable.ClassFor[T]() {
		return x
	}
	if k == 1 && masked == nil && b.keeps == nil &&
		b.l.readsWeights(op) &&
		x.unpackWeights(sizes, strides, start, parts) {
		return x
	}
	if k == 0 && masked == nil &&
		readsWindows[T](b.l, op, x) &&
		x.unpackWindows(sizes, strides, parts) {
		x.dilated = dilatedOf(b, op, x, strides, parts)
		return x
	}
	view := permutedView(sizes, strides, slices.Concat(parts...))
	view.start = start
	packOperand[T](
		b, op, k, x, view, masked, slices.Concat(parts...),
	)
	c.temporaries = append(c.temporaries, x.v)
	return x
}

// operandParts are the dimensions of argument k of a dot as matrices: batch, rows and
// columns.
func (l *lowering) operandParts(op symtile.Op, k int) [][]int64 {
	a := op.Instr.Attrs
	batch, contract := a.LHSBatch, a.LHSContract
	if k == 1 {
		batch, contract = a.RHSBatch, a.RHSContract
	}
	rest := remainingDims(len(l.p.Ops[op.Args[k]].Tile), batch, contract)
	if k == 1 {
		return [][]int64{batch, contract, rest}
	}
	return [][]int64{batch, rest, contract}
}

// packsUnfold reports whether an op is an unfold that one dot alone reads, which packs
// it: it does so from the operand of the unfold, which is not lowered itself and stands
// for it.
func (l *lowering) packsUnfold(n int) bool {
	return l.packedByDot(n) && l.arg(l.p.Ops[n], 0).where != inSplat
}

// packsReverse reports whether an op is a reverse that one dot alone packs, from the operand of
// the reverse, as packsUnfold.
func (l *lowering) packsReverse(n int) bool {
	return l.readsReversed(n) && l.arg(l.p.Ops[n], 0).where != inSplat
}

// readsReversed reports whether an op is a reverse that one dot alone reads, as weights.
func (l *lowering) readsReversed(n int) bool {
	op := l.p.Ops[n]
	if op.Code != hlo.OpReverse || l.copies.ops[n] != nil {
		return false
	}
	reader := l.onlyReader(n)
	return reader >= 0 && isDot(l.p.Ops[reader]) &&
		l.p.Ops[reader].Args[1] == n &&
		l.readsWeights(l.p.Ops[reader])
}

// reversedStrides are the strides of a reverse, of an operand with strides, and where it begins:
// at the last element.
func reversedStrides(op symtile.Op, from []int64) (strides []int64, start int64) {
	sizes := op.Tile.Sizes()
	strides = slices.Clone(from)
	for _, d := range op.Instr.Attrs.Dimensions {
		start += (sizes[d] - 1) * from[d]
		strides[d] = -from[d]
	}
	return strides, start
}

// packedByDot reports whether an op is an unfold that one dot alone reads, and not in
// place.
func (l *lowering) packedByDot(n int) bool {
	if l.p.Ops[n].Code != symtile.OpUnfold {
		return false
	}
	reader := l.onlyReader(n)
	if reader < 0 || !isDot(l.p.Ops[reader]) {
		return false
	}
	dot := l.p.Ops[reader]
	if l.hasLanes(dot) {
		return true
	}
	dense := &matrixOperand{}
	sizes := l.p.Ops[n].Tile.Sizes()
	k := slices.Index(dot.Args, n)
	return !dense.collapse(sizes, hlo.RowMajor(sizes), l.operandParts(dot, k))
}

// panelMatrices are the matrices of an operand in panels, where its tile lies in an array
// or was loaded to.
func (b *block) panelMatrices(x *panelView, c *accumulator) *matrixOperand {
	v := b.l.results[x.view.source][0]
	tile := b.l.p.Ops[x.view.source].Tile
	strides := stridesOf(v, tile)
	dims := x.in(tile.Sizes(), strides)
	c.args = append(c.args, v)
	width := dims[3].size
	return &matrixOperand{
		v: v,
		extents: [3]int64{
			dims[0].size,
			dims[1].size,
			dims[2].size * width,
		},
		strides: [3]int64{
			dims[0].at,
			width,
			1,
		},
		panels: max(dims[2].at, width),
	}
}

// A convolution of which each channel has its own weights is a dot of one column with channels
// as its batch. Where these are contiguous in both operands they are lanes of vectors, windows
// are read in place, and the result has rows of channels: its elements lie as its readers,
// transposes that bring channels behind rows again, have them.

// hasLanes reports whether the batch of a dot is multiplied as lanes.
func (l *lowering) hasLanes(dot symtile.Op) bool {
	if !isDot(dot) || !gemm.HasLanes() {
		return false
	}
	// The windows are read from what they are windows of, so that nobody else may need them.
	a := dot.Instr.Attrs
	windows := l.p.Ops[dot.Args[0]]
	n := l.onlyReader(dot.Args[0])
	if n < 0 || windows.Code != symtile.OpUnfold ||
		len(a.LHSBatch) != 1 ||
		l.knob("splitk", 1) > 1 ||
		!l.sumsFloats(dot) ||
		!l.onlyTransposed(n) {
		return false
	}
	// Copies of one element are no array of windows.
	source := l.p.Ops[windows.Args[0]]
	for source.Code == hlo.OpReshape {
		source = l.p.Ops[source.Args[0]]
	}
	switch source.Code {
	case hlo.OpConstant, hlo.OpBroadcast:
		return false
	}
	// Lanes are contiguous and whole vectors, and all terms are there.
	weights := l.p.Ops[dot.Args[1]].Tile
	sizes := weights.Sizes()
	columns := product(sizes, l.operandParts(dot, 1)[2])
	strides, _ := l.viewStrides(windows)
	lanes := sizes[a.RHSBatch[0]]
	return columns == 1 &&
		lanes%gemm.LaneUnit == 0 &&
		strides[a.LHSBatch[0]] == 1 &&
		hlo.RowMajor(sizes)[a.RHSBatch[0]] == 1 &&
		!masksAny(windows.Tile, a.LHSContract) &&
		!masksAny(weights, a.RHSContract)
}

// sumsFloats reports whether a dot adds products of f32, or of what is held as such.
func (l *lowering) sumsFloats(dot symtile.Op) bool {
	// Elements of 16 bits are held in 32.
	for _, x := range dot.Instr.Operands {
		class := portable.ClassOf(x.Shape.DType)
		if class != portable.Float32 {
			return false
		}
	}
	class := portable.ClassOf(dot.Instr.Shape.DType)
	return class == portable.Float32 &&
		l.halves(dot) == gemm.MultiplyAdds
}

// onlyTransposed reports whether transposes are the only readers of an op.
func (l *lowering) onlyTransposed(n int) bool {
	// Another reader would expect rows of rows.
	readers := readersOf(l.p, l.p.Ops[n].Instr)
	for _, r := range readers {
		if l.p.Ops[r].Code != hlo.OpTranspose {
			return false
		}
	}
	root := func(r symtile.Root) bool { return r.Op == n }
	return len(readers) > 0 &&
		!slices.ContainsFunc(l.p.Roots, root)
}

// masksAny reports whether some dimensions of a tile are masked.
func masksAny(t symtile.Tile, dims []int64) bool {
	return slices.ContainsFunc(dims, func(d int64) bool {
		return t[d].Masked()
	})
}

// heldStrides are the strides of the tile of an op as its value holds it: row by row, but for
// those of a dot of lanes, of which the batch is last.
func (l *lowering) heldStrides(n int) []int64 {
	op := l.p.Ops[n]
	sizes := op.Tile.Sizes()
	strides := hlo.RowMajor(sizes)
	if !l.hasLanes(op) {
		return strides
	}
	for k := range strides {
		strides[k] *= sizes[0]
	}
	// The lanes of a row are contiguous.
	strides[0] = 1
	return strides
}

// laneDot lowers a dot of lanes.
func (b *block) laneDot(op symtile.Op, c *accumulator) {
	windows := b.l.p.Ops[op.Args[0]]
	weights := b.l.p.Ops[op.Args[1]].Tile
	x := materialized(b, op, 0)
	y := materialized(b, op, 1)
	c.args = append(c.args, x, y)
	parts := b.l.operandParts(op, 0)
	sizes := windows.Tile.Sizes()
	strides, _ := b.l.viewStrides(windows)
	rows := permutedView(sizes, strides, parts[1])
	terms := permutedView(sizes, strides, parts[2])
	steps := permutedView(
		weights.Sizes(), stridesOf(y, weights),
		op.Instr.Attrs.RHSContract,
	)
	if len(steps.dims) > 1 || x.where == inSplat {
		b.l.reject(op, "its operands are not held row by row")
		return
	}
	last := rows.dims[len(rows.dims)-1]
	product := &gemm.Lanes{
		Rows:   int(last.size),
		Row:    int(last.stride),
		Groups: rows.starts(),
		Lanes:  int(op.Tile.Sizes()[0]),
	}
	// Places of terms are where rows of one element would begin.
	terms.dims = append(terms.dims, stridedDim{1, 1})
	for _, at := range terms.starts() {
		product.Terms = append(product.Terms, at*4)
	}
	// The first product overwrites its result instead of adding to zeros.
	// Weights of one term follow those of the one before at one distance.
	step := int(steps.dims[0].stride)
	d := &dotRun{fresh: b.l.slotCount}
	b.l.slotCount++
	c.prologue = append(c.prologue, func(w *worker) {
		w.slots[d.fresh] = 1
	})
	c.empty = d.isFresh
	// Rows of lanes are dense in the value.
	out := c.outs[0]
	c.accumulate = func(w *worker) {
		product.Multiply(
			whole[float32](w, out),
			whole[float32](w, x),
			whole[float32](w, y),
			step, d.isFresh(w),
		)
		w.slots[d.fresh] = 0
	}
}

// Windows of a convolution are multiplied where they lie in the tile that they are windows of:
// package gemm reads long runs of their terms in place, and copies others to slabs, which stay
// in the second cache. The elements of a matrix of all windows would be several times those of
// the tile.

// readsWindows reports whether a dot has kernels that read windows of its left operand.
func readsWindows[T portable.Number](
	l *lowering, dot symtile.Op,
	x *matrixOperand,
) bool {
	right := l.p.Ops[dot.Args[1]].Tile
	parts := l.operandParts(dot, 1)
	columns := product(right.Sizes(), parts[2])
	rows := int(x.extents[1])
	if columns < 2 ||
		!gemm.ReadsWindows[T](rows) {
		return false
	}
	if x.v.short != 0 {
		return x.v.short == 1 &&
			gemm.ReadsByteWindows()
	}
	var zero T
	switch any(zero).(type) {
	case float32:
		return x.v.class == portable.Float32 &&
			l.halves(dot) == gemm.MultiplyAdds
	case float64:
		return x.v.class == portable.Float64
	}
	return false
}

// readsWeights reports whether a dot has kernels that pack its right operand from where it lies,
// though its terms have no one stride.
func (l *lowering) readsWeights(dot symtile.Op) bool {
	class := portable.ClassOf(dot.Instr.Shape.DType)
	right := l.p.Ops[dot.Args[1]]
	if class != portable.ClassOf(right.Instr.Shape.DType) ||
		class != portable.Float32 && class != portable.Float64 ||
		l.halves(dot) != gemm.MultiplyAdds ||
		l.hasLanes(dot) || l.unfoldsDilated(dot.Args[0]) ||
		masksAny(right.Tile, dot.Instr.Attrs.RHSContract) {
		return false
	}
	left := l.p.Ops[dot.Args[0]].Tile.Sizes()
	rows := product(left, l.operandParts(dot, 0)[1])
	return fillsPanels(class, int(rows))
}

// unfoldsDilated reports whether an op is windows of an array with gaps, whose phases are
// products with rows of one stride.
func (l *lowering) unfoldsDilated(n int) bool {
	op := l.p.Ops[n]
	if op.Code != symtile.OpUnfold {
		return false
	}
	pad := l.p.Ops[op.Args[0]]
	return pad.Code == hlo.OpPad &&
		slices.ContainsFunc(pad.Instr.Attrs.Padding, func(p hlo.PadDim) bool {
			return p.Interior > 0
		})
}

// unpackWeights makes the operand runs of rows of a view. It reports false where runs are too
// short, or a batch or columns have several strides.
func (x *matrixOperand) unpackWeights(
	sizes, strides []int64, start int64, parts [][]int64,
) bool {
	batch := permutedView(sizes, strides, parts[0])
	terms := permutedView(sizes, strides, parts[1])
	columns := permutedView(sizes, strides, parts[2])
	run := terms.dims[len(terms.dims)-1]
	if len(batch.dims) > 1 || len(columns.dims) > 1 ||
		run.size < gemm.MinRun || run.stride < 0 ||
		batch.dims[0].stride < 0 || columns.dims[0].stride < 0 {
		return false
	}
	x.strides = [3]int64{
		batch.dims[0].stride,
		run.stride,
		columns.dims[0].stride,
	}
	x.weights = &gemm.Weights{
		Terms: int(run.size),
		Runs:  terms.starts(),
	}
	for k := range x.weights.Runs {
		x.weights.Runs[k] += int(start)
	}
	return true
}

// unpackWindows makes the operand windows of a view. It reports false where terms are in no
// runs that are long enough, or a batch has several strides.
func (x *matrixOperand) unpackWindows(
	sizes, strides []int64, parts [][]int64,
) bool {
	// What is left of each part but its last dimension are groups and runs.
	var views [3]*stridedView
	var last [3]stridedDim
	for n, dims := range parts {
		g := permutedView(sizes, strides, dims)
		views[n] = g
		last[n] = g.dims[len(g.dims)-1]
	}
	run := last[2]
	if len(views[0].dims) > 1 ||
		run.stride != 1 ||
		run.size < gemm.MinRun {
		return false
	}
	for n, d := range last {
		x.strides[n] = d.stride
	}
	x.windows = &gemm.Windows{
		Rows:   int(last[1].size),
		Groups: views[1].starts(),
		Terms:  int(run.size),
		Runs:   views[2].starts(),
	}
	return true
}

// starts are where the rows of a view begin, rows being its last dimension.
func (g *stridedView) starts() []int {
	// Each dimension multiplies the places by its indices, the last of which is fastest.
	all := []int{0}
	outer := g.dims[:len(g.dims)-1]
	for _, d := range outer {
		var next []int
		for _, at := range all {
			for i := range d.size {
				step := int(i * d.stride)
				next = append(next, at+step)
			}
		}
		all = next
	}
	return all
}

// Windows of a dilated array are multiplied phase by phase, by the terms that lie on elements.
// The sums have the same bits, since what is left out adds zeros to sums that begin with +0,
// unless the right operand is infinite or NaN somewhere: then nothing is left out.

// A dilated is a left operand of such windows.
type dilated struct {
	dilation.Windows
	// The slots of how far behind an element the first window begins.
	slots []int
	// A zero, and its products with the right operand.
	zeros *value
}

// dilatedOf is the left operand of a dot as windows of a dilated array, nil where it is none,
// or has too few rows of a phase.
func dilatedOf(
	b *block, dot symtile.Op, x *matrixOperand,
	strides []int64, parts [][]int64,
) *dilated {
	unfold := b.l.p.Ops[dot.Args[0]]
	if unfold.Code != symtile.OpUnfold ||
		!b.l.packsUnfold(dot.Args[0]) ||
		x.v.short != 0 ||
		b.l.split != nil ||
		x.extents[0] != 1 {
		return nil
	}
	pad := b.l.p.Ops[unfold.Args[0]]
	if pad.Code != hlo.OpPad {
		return nil
	}
	f := &dilated{}
	dims := f.findDims(unfold, pad, strides)
	if dims == nil {
		return nil
	}
	for _, d := range parts[1] {
		f.Rows = append(f.Rows, dims[d])
	}
	for _, d := range parts[2] {
		f.Terms = append(f.Terms, dims[d])
	}
	// The terms of a place are contiguous, and rows many enough for the kernels of slabs.
	inner := f.Terms[len(f.Terms)-1]
	if inner.Along >= 0 || inner.From != 1 ||
		!gemm.ReadsWindows[float32](f.RowsAtOnce()) {
		return nil
	}
	for k, d := range unfold.Instr.Attrs.Dimensions {
		low := pad.Instr.Attrs.Padding[d].Low
		first := pad.Tile[d].Offset.AddConst(-low)
		f.slots = append(
			f.slots, b.slot(first.Mod(f.By[k])),
		)
	}
	return f
}

// findDims is the dimensions of an unfold of a pad, nil where it dilates none of those that
// are unfolded, or others.
func (f *dilated) findDims(unfold, pad symtile.Op, strides []int64) []dilation.Dim {
	all := make([]dilation.Dim, len(unfold.Tile))
	for n, size := range unfold.Tile.Sizes() {
		all[n] = dilation.Dim{
			Size:  size,
			From:  strides[n],
			Along: -1,
		}
	}
	// Dimension d of the pad is dimension n of the unfold, or n and n+1.
	a := unfold.Instr.Attrs
	hasGaps := false
	n := 0
	for d, padding := range pad.Instr.Attrs.Padding {
		k := indexOf(a.Dimensions, d)
		if k < 0 && padding.Interior > 0 {
			return nil
		}
		if k >= 0 {
			hasGaps = hasGaps || padding.Interior > 0
			f.By = append(f.By, padding.Interior+1)
			steps := [2]int64{
				a.Window[k].Stride,
				a.Window[k].Dilation,
			}
			for i, by := range steps {
				x := &all[n+i]
				x.Along = k
				x.Step = by * strideOf(unfold.Tile[n+i])
			}
			n++
		}
		n++
	}
	if !hasGaps {
		return nil
	}
	return all
}

// setResult sets the strides of rows in the result, and of terms in the right operand, and makes
// the value of zeros.
func (f *dilated) setResult(
	b *block, op symtile.Op,
	c *accumulator, out *matrixOperand,
) {
	// One zero, and a row of its products.
	f.zeros = b.l.value(
		"zeros", c.outs[0].class, noTile,
		1+out.extents[2],
	)
	c.temporaries = append(c.temporaries, f.zeros)
	strides := out.v.strides
	if strides == nil {
		strides = hlo.RowMajor(op.Tile.Sizes())
	}
	first := len(op.Instr.Attrs.LHSBatch)
	// Dimensions of a result are those of the batch, of rows and of columns.
	for k := range f.Rows {
		f.Rows[k].To = strides[first+k]
	}
	// Those of the right operand are rows of it in the same order.
	row := int64(1)
	for k := len(f.Terms) - 1; k >= 0; k-- {
		f.Terms[k].To = row
		row *= f.Terms[k].Size
	}
}

// scratchOf is the scratch that parts of a product need.
func scratchOf[T portable.Number](f *dilated, x gemm.Product[T]) int {
	x.Windows = nil
	// The row of zeros is multiplied by all terms, rows of a phase by those of one place.
	x.M = 1
	zeros := x.Scratch()
	x.M, x.K = f.RowsAtOnce(), f.TermsAtOnce()
	return max(zeros, x.Scratch())
}

// isFinite reports whether products of zeros with the right operand are zeros: an infinite
// element, or NaN, makes NaN of the gaps, and all terms are multiplied.
func isFinite[T portable.Number](
	w *worker, d *dotRun,
	x gemm.Product[T], multiply multiplier[T],
) bool {
	// The one zero is all terms of the row: its strides are 0.
	zeros := whole[T](w, d.left.dilated.zeros)
	zeros[0] = 0
	x.A = gemm.Matrix[T]{Data: zeros[:1]}
	x.B = matrix[T](w, d.right, 0)
	x.C = gemm.Dense(zeros[1:], x.N)
	x.M = 1
	x.Windows = nil
	x.Panels = int(d.right.panels)
	x.Fresh = true
	multiply(x, packingScratch[T](w))
	for _, z := range zeros[1:] {
		if z != 0 {
			return false
		}
	}
	return true
}

// runPhases multiplies phase by phase.
func runPhases[T portable.Number](
	w *worker, d *dotRun,
	x gemm.Product[T], multiply multiplier[T],
) {
	f := d.left.dilated
	var behind dilation.Distance
	for k, s := range f.slots {
		behind[k] = w.slots[s]
	}
	x.Windows = nil
	x.Panels = int(d.right.panels)
	f.Each(&behind, func(p *dilation.Phase) bool {
		if w.stopped() {
			return false
		}
		runPhase(w, d, x, multiply, p)
		return true
	})
}

// runPhase multiplies rows of one phase by the terms that they have elements for.
func runPhase[T portable.Number](
	w *worker, d *dotRun,
	x gemm.Product[T], multiply multiplier[T],
	p *dilation.Phase,
) {
	f := d.left.dilated
	a := matrix[T](w, d.left, 0)
	b := matrix[T](w, d.right, 0)
	x.C = matrix[T](w, d.out, 0)
	x.C.Data = x.C.Data[p.To:]
	from, to := f.Strides()
	a.Row, x.C.Row = int(from), int(to)
	a.Col = 1
	x.M, x.K = p.Rows, f.TermsAtOnce()
	f.EachTerm(p, func(from, to int64) {
		x.A, x.B = a, b
		x.A.Data = a.Data[p.From+from:]
		x.B.Data = b.Data[to*int64(b.Row):]
		multiply(x, packingScratch[T](w))
		x.Fresh = false
	})
	if x.Fresh { // all terms are zeros
		x.K = 0
		multiply(x, nil)
	}
}

// collapse sets the extents and strides of the parts and reports whether each
// has one stride.
func (x *matrixOperand) collapse(sizes, strides []int64, parts [][]int64) bool {
	together := true
	for n, dims := range parts {
		g := permutedView(sizes, strides, dims)
		x.extents[n], x.strides[n] = 1, g.dims[0].stride
		for _, d := range g.dims {
			x.extents[n] *= d.size
		}
		together = together && len(g.dims) == 1
	}
	return together
}

// packOperand makes a copy of argument k in the order.
func packOperand[T portable.Number](
	b *block, op symtile.Op, k int,
	x *matrixOperand, view *stridedView, masked, order []int64,
) {
	// The copy is dense: batch, then rows, then columns. Zeros in place of masked
	// terms are written after the copy, since the copy brings whatever is there.
	source := b.l.p.Ops[op.Args[k]].Tile
	from := x.v
	x.v = b.l.value(
		from.name+".arranged", portable.ClassFor[T](),
		op.Args[k], source.Elements(),
	)
	x.strides = [3]int64{
		x.extents[1] * x.extents[2],
		x.extents[2],
		1,
	}
	if x.v.short = from.short; x.v.short != 0 {
		x.pack = shortWindows(view, x.v, from)
		return
	}
	copyTile := copyViewFrom[T](view, x.v, from)
	if from.class == x.v.class {
		if f := shortRowsStep(view, x.v, from); f != nil {
			copyTile = f
		}
	}
	blanks := zeroMasked[T](
		b, x.v, source, order, masked,
	)
	x.pack = func(w *worker) {
		copyTile(w)
		for _, f := range blanks {
			f(w)
		}
	}
}

// shortWindows is the copy of a view of short elements.
func shortWindows(g *stridedView, v, from *value) step {
	if f := shortRowsStep(g, v, from); f != nil {
		return f
	}
	return viewCopy(g, v, from).run
}

// stridesOf is the strides of a tile in its value.
func stridesOf(v *value, t symtile.Tile) []int64 {
	if v.strides != nil {
		return v.strides
	}
	return hlo.RowMajor(t.Sizes())
}

// permutedView is the view of a tile in the order.
func permutedView(sizes, strides, order []int64) *stridedView {
	to := make([]int64, len(order))
	from := make([]int64, len(order))
	for k, d := range order {
		to[k], from[k] = sizes[d], strides[d]
	}
	return newStridedView(to, from, 0)
}

// copyViewFrom copies from an operand, with conversion where its class differs.
func copyViewFrom[T portable.Number](g *stridedView, to, from *value) step {
	switch from.class {
	case portable.Float32:
		return func(w *worker) {
			copyView(
				g, whole[T](w, to),
				whole[float32](w, from), 0,
			)
		}
	case portable.Float64:
		return func(w *worker) {
			copyView(
				g, whole[T](w, to),
				whole[float64](w, from), 0,
			)
		}
	case portable.Int32:
		return func(w *worker) {
			copyView(
				g, whole[T](w, to),
				whole[int32](w, from), 0,
			)
		}
	}
	return func(w *worker) {
		copyView(
			g, whole[T](w, to),
			whole[int64](w, from), 0,
		)
	}
}

// zeroMasked zeroes the masked elements of dimensions of a tile that v holds in
// the order.
func zeroMasked[T portable.Number](
	b *block, v *value,
	t symtile.Tile, order, dims []int64,
) []step {
	sizes := make([]int64, len(order))
	for k, d := range order {
		sizes[k], _ = t[d].Size.Value()
	}
	var steps []step
	for _, d := range dims {
		m := newDimMask(b, t[d])
		at := slices.Index(order, d)
		stride := hlo.RowMajor(sizes)[at]
		steps = append(steps, func(w *worker) {
			lo, hi := m.valid(w)
			for rows := whole[T](w, v); len(rows) > 0; rows = rows[m.size*stride:] {
				clear(rows[:lo*stride])
				clear(rows[hi*stride : m.size*stride])
			}
		})
	}
	return steps
}

// Weights in the body of a loop are the same in every round, but a tile program begins with
// what its arguments hold, and a round would gather and pack them again: a concatenation
// of weights is copied to scratch, rows of a tile lie 2 KiB apart, and a product of 32 rows
// takes half of its time for that. A kernel that is told which parameters are steady keeps
// the right operands of its dots that are made of these alone.
//
// Such an operand has a block of its own, in place of the ops that it is made of, which
// nothing else may read. The block is a loop of one iteration that is left out where the
// tile is there:
//
//	keep %5.panels {
//	  %5 = concatenate from memory()
//	  panels(%5)
//	}
//	%6 = dot(%0, %5.panels)
//
// Tiles are numbered by the tile ids that they depend on: programs that differ in rows only
// share one. Which worker makes it is decided by its state, and the others wait for that,
// as they would for packing it. A generation of tiles ends when the parameters change:
// then no tile is there, and nothing has to be cleared.
//
// The bits are those of the dot without it. Panels hold the elements that were multiplied
// anyway, each once, and the kernels of package gemm add terms in one order wherever they
// lie; products of so few rows that they have other kernels keep nothing.

// A keptOperand is the right operand of a dot, in panels, that is made of steady parameters
// only: the tile programs of the first run make its tiles, those of later runs, and others of the
// first that read the same tile, find them. It is made and packed by a block of its own.
type keptOperand struct {
	v     *value // The tile of a program, in the memory of all.
	ops   []int  // The ops that it is made of, in order; nothing else reads them.
	dims  []int  // The dimensions of the space on which its tile depends.
	tiles []int64
	// The batch, terms and columns of a tile.
	extents [3]int64
	bytes   int64  // All tiles take these.
	data    []byte // All tiles, from the first run on.
	// What is known of each tile: twice the generation that it is of, and one more while
	// it is made.
	state      []atomic.Uint64
	generation uint64
}

// maxKept bounds the bytes that are kept of an operand.
const maxKept = 64 << 20

// planKept finds the operands that are kept: those of products of f32 or f64 of more rows
// than are multiplied one by one, whose bits do not depend on where the panels are.
func (l *lowering) planKept() {
	l.kept = map[panelKey]*keptOperand{}
	if len(l.steady) == 0 {
		return
	}
	for n, op := range l.p.Ops {
		splits := l.split != nil &&
			slices.Contains(l.split.ops, n)
		if !isDot(op) || splits ||
			!l.copies.lowered[n] {
			continue
		}
		key := panelKey{
			op.Args[1],
			op.Instr,
		}
		if l.copies.panels[key] != nil {
			continue
		}
		x := l.keptOperandOf(op)
		if x != nil {
			l.kept[key] = x
		}
	}
}

// keptOperandOf is the right operand of a dot, nil where it cannot be kept.
func (l *lowering) keptOperandOf(op symtile.Op) *keptOperand {
	// Panels hold whole elements of the class in which the dot adds. Pairs of bf16 and
	// bytes are packed in other orders, and masked terms would have to be cleared.
	i := op.Instr
	class := portable.ClassOf(i.Shape.DType)
	d := i.Operands[1].Shape.DType
	at := op.Args[1]
	tile := l.p.Ops[at].Tile
	if class != portable.ClassOf(d) ||
		l.halves(op) != gemm.MultiplyAdds ||
		tile.Masked() {
		return nil
	}
	sizes := tile.Sizes()
	parts := l.operandParts(op, 1)
	x := &keptOperand{
		extents: [3]int64{
			product(sizes, parts[0]),
			product(sizes, parts[1]),
			product(sizes, parts[2]),
		},
		generation: 1,
	}
	// Kernels read panels of one width, and no part of one.
	left := l.p.Ops[op.Args[0]].Tile
	rows := product(
		left.Sizes(),
		l.operandParts(op, 0)[1],
	)
	width := panelWidth(d)
	if width == 0 ||
		x.extents[2]%width != 0 ||
		!fillsPanels(class, int(rows)) ||
		!l.madeOfSteady(at, x) {
		return nil
	}
	x.bytes = hlo.Elements(x.tiles) *
		hlo.Elements(x.extents[:]) *
		class.Bytes()
	if x.bytes > maxKept {
		return nil
	}
	return x
}

// reserve makes room before the first run, in large pages where there are such.
func (x *keptOperand) reserve() error {
	if x.data != nil {
		return nil
	}
	b, err := kernels.NewBuffer(hlo.Shape{
		DType: hlo.U8,
		Dims:  []int64{x.bytes},
	})
	x.data = b.Data
	tiles := hlo.Elements(x.tiles)
	x.state = make([]atomic.Uint64, tiles)
	return err
}

// fillsPanels is gemm.FillsPanels of a class.
func fillsPanels(c portable.Class, rows int) bool {
	if c == portable.Float64 {
		return gemm.FillsPanels[float64](rows)
	}
	return gemm.FillsPanels[float32](rows)
}

// madeOfSteady collects the ops that op n, an operand of a dot, is made of. It reports false
// where one of them is read by another op, or is made of something that is not steady.
func (l *lowering) madeOfSteady(n int, x *keptOperand) bool {
	member := map[int]bool{}
	var visit func(n int) bool
	visit = func(n int) bool {
		op := l.p.Ops[n]
		if member[n] {
			return true
		}
		if !l.isSteady(n) {
			return false
		}
		member[n] = true
		for _, a := range op.Args {
			if !visit(a) {
				return false
			}
		}
		return true
	}
	if !visit(n) {
		return false
	}
	// The block stands for its ops, so that nobody else may need one of them. A dot that is
	// there twice, for two tiles of rows, would need two.
	readers := 0 // outside
	for at, user := range l.p.Ops {
		for _, a := range user.Args {
			if member[a] && !member[at] {
				readers++
			}
		}
	}
	if readers != 1 {
		return false
	}
	for at := range l.p.Ops {
		if member[at] {
			x.ops = append(x.ops, at)
		}
	}
	x.findDims(l)
	return true
}

// isSteady reports whether an op computes elements of a tile of steady parameters, at a
// place that tile ids determine, from its arguments alone.
func (l *lowering) isSteady(n int) bool {
	op := l.p.Ops[n]
	switch op.Code {
	case hlo.OpParameter:
		param := int(op.Instr.Attrs.Param)
		if !slices.Contains(l.steady, param) {
			return false
		}
	case hlo.OpReshape, hlo.OpSlice,
		hlo.OpCopy, hlo.OpTranspose,
		hlo.OpConcatenate, hlo.OpConvert,
		hlo.OpBroadcast, hlo.OpReverse,
		hlo.OpPad, hlo.OpConstant:
	default:
		return false
	}
	for _, d := range op.Tile {
		if len(l.runtimeVars(d.Offset)) > 0 {
			return false
		}
	}
	for _, r := range l.p.Runtime {
		if r.Op == n {
			return false
		}
	}
	for _, r := range l.p.Roots {
		if r.Op == n {
			return false
		}
	}
	return true
}

// findDims finds the dimensions of the space whose tile ids choose the tile.
func (x *keptOperand) findDims(l *lowering) {
	var vars []index.Expr
	for _, n := range x.ops {
		op := l.p.Ops[n]
		for _, d := range op.Tile {
			vars = slices.Concat(
				vars,
				d.Offset.Vars(),
				d.Lower.Vars(),
				d.Bound.Vars(),
			)
		}
	}
	for k, d := range l.p.Space.Dims {
		if !constant(d.Tid) &&
			slices.Contains(vars, d.Tid) {
			tiles, _ := d.Tiles.Value()
			x.dims = append(x.dims, k)
			x.tiles = append(x.tiles, tiles)
		}
	}
}

// isKept reports whether an op is made for a kept operand only.
func (l *lowering) isKept(n int) bool {
	for _, x := range l.kept {
		if slices.Contains(x.ops, n) {
			return true
		}
	}
	return false
}

// keptMatrices are the matrices of a kept operand, after an instruction that makes them
// unless they are there.
func keptMatrices[T portable.Number](
	b *block, op symtile.Op,
	x *keptOperand, c *accumulator,
	parts [][]int64,
) *matrixOperand {
	class := portable.ClassFor[T]()
	x.v = b.l.value(
		fmt.Sprintf(
			"%%%d.panels", op.Args[1],
		),
		class, noTile,
		hlo.Elements(x.extents[:]),
	)
	x.v.where = inMemory
	// The ops are lowered as they would be in b, in their order, but to a block that is
	// left out when the tile is there. Slots of their offsets belong to the blocks around it.
	body := b.l.block(b, nil)
	body.keeps = x
	for _, n := range x.ops {
		body.op(n)
	}
	if b.l.err == nil {
		body.packKept(op, x, parts)
	}
	in := &instr{
		name: "keep",
		loop: &loop{
			kept: x,
			body: body.schedule(),
		},
		outs: []*value{x.v},
	}
	in.tileArgs = body.externalValues()
	b.add(in)
	c.args = append(c.args, x.v)
	width := gemm.PanelWidth[float32]()
	if class == portable.Float64 {
		width = gemm.PanelWidth[float64]()
	}
	terms := x.extents[1]
	return &matrixOperand{
		v:       x.v,
		extents: x.extents,
		strides: [3]int64{
			terms * x.extents[2],
			int64(width),
			1,
		},
		panels: terms * int64(width),
	}
}

// packKept adds the instruction that packs the operand of a dot to where it is kept.
func (b *block) packKept(
	op symtile.Op, x *keptOperand,
	parts [][]int64,
) {
	if x.v.class == portable.Float64 {
		packKeptAs[float64](b, op, x, parts)
		return
	}
	packKeptAs[float32](b, op, x, parts)
}

// packKeptAs is packKept for one class.
func packKeptAs[T float32 | float64](
	b *block, op symtile.Op,
	x *keptOperand, parts [][]int64,
) {
	c := &accumulator{}
	from := operandMatrices[T](
		b, op, 1, c,
		op.Instr.Attrs.RHSContract,
		parts,
	)
	terms := int(x.extents[1])
	columns := int(x.extents[2])
	b.add(&instr{
		name:     "panels",
		outs:     c.temporaries,
		tileArgs: c.args,
		run: func(w *worker) {
			if from.pack != nil {
				from.pack(w)
			}
			to := whole[T](w, x.v)
			for i := range int(x.extents[0]) {
				m := matrix[T](w, from, i)
				gemm.ToPanels(
					to, m, terms, columns,
				)
				to = to[terms*columns:]
			}
		},
	})
}

// provide points the value at the tile of the program, and makes it if it is not there.
func (x *keptOperand) provide(w *worker, makes []step) {
	tile := int64(0)
	for k, d := range x.dims {
		tile = tile*x.tiles[k] + w.tids[d]
	}
	// The dot reads the tile through the address of the value.
	first := &x.data[tile*x.v.bytes()]
	w.addresses[x.v.id] = unsafe.Pointer(first)
	state := &x.state[tile]
	made := 2 * x.generation
	for !w.stopped() {
		was := state.Load()
		if was == made {
			return
		}
		// An odd state of this generation is above made: somebody makes the tile.
		if was < made &&
			state.CompareAndSwap(was, made+1) {
			x.make(w, makes, state)
			return
		}
		runtime.Gosched()
	}
}

// make makes a tile. After a panic whoever waits for it makes it; in a run that was stopped
// it may not be whole.
func (x *keptOperand) make(
	w *worker, makes []step,
	state *atomic.Uint64,
) {
	made := uint64(0)
	defer func() { state.Store(made) }()
	for _, s := range makes {
		s(w)
	}
	if !w.stopped() {
		made = 2 * x.generation
	}
}

// forget makes the tiles of all programs those of an earlier generation.
func (x *keptOperand) forget() { x.generation++ }
