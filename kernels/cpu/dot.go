package cpu

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/gemm"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// dot multiplies tiles as matrices, one product for each element of the batch.
func (b *block) dot(op symtile.Op, c *closer) {
	switch c.outs[0].class {
	case classF32:
		dotAs[float32](b, op, c)
	case classF64:
		dotAs[float64](b, op, c)
	case classI32:
		dotAs[int32](b, op, c)
	case classI64:
		dotAs[int64](b, op, c)
	}
}

func dotAs[T number](b *block, op symtile.Op, c *closer) {
	a := op.Instr.Attrs
	rank := func(k int) int { return len(b.l.p.Ops[op.Args[k]].Tile) }
	leftRest, rightRest := others(rank(0), a.LHSBatch, a.LHSContract), others(rank(1), a.RHSBatch, a.RHSContract)
	left := matrices[T](b, op, 0, c, a.LHSContract, a.LHSBatch, leftRest, a.LHSContract)
	right := matrices[T](b, op, 1, c, a.RHSContract, a.RHSBatch, a.RHSContract, rightRest)
	out := products[T](b, op, c, len(a.LHSBatch), len(leftRest))
	d := &dotRun{left: left, right: right, out: out, fresh: b.l.places, caches: b.l.sheet.Caches, packing: packings[b.l.knob("pack", -1)]}
	b.l.places++
	c.begin = append(c.begin, func(w *worker) { w.places[d.fresh] = 1 })
	c.fresh = func(w *worker) bool { return w.places[d.fresh] == 1 }
	multiply, room := multiplierFor(op, gemm.Product[T]{M: int(out.extents[1]), N: int(out.extents[2]), K: int(left.extents[2]), Caches: d.caches})
	if s := b.l.split; s != nil {
		room = max(room, gemm.Scratch[T](1, int(out.v.n), int(s.parts)))
		splits[T](c, s, out.v, d.fresh)
		if !s.trips {
			d.split = s
		}
	}
	b.l.arranged = max(b.l.arranged, int64(room)*classBytes[classFor[T]()])
	c.accumulate = func(w *worker) { runDot(w, d, multiply) }
}

// A dotRun is a dot as it runs: one product for each element of the batch.
type dotRun struct {
	left, right, out *operands
	fresh            int // place of 1 until something was accumulated
	packing          gemm.Packing
	caches           gemm.Caches
	split            *split // nil: all terms are its own
}

// packings are those of the knob; gemm.Suitable without it.
var packings = map[int64]gemm.Packing{0: gemm.Streamed, 1: gemm.Packed}

// splitUnit is terms that a split does not divide: a line of f32.
const splitUnit = 16

func runDot[T number](w *worker, d *dotRun, multiply multiplier[T]) {
	for _, x := range []*operands{d.left, d.right} {
		if x.arrange != nil {
			x.arrange(w)
		}
	}
	x := gemm.Product[T]{
		M: int(d.out.extents[1]), N: int(d.out.extents[2]), K: int(d.left.extents[2]),
		Fresh: w.places[d.fresh] == 1, Packing: d.packing, Caches: d.caches,
	}
	first := 0
	if d.split != nil {
		begin, end := d.split.share(w, int64(x.K), splitUnit)
		first, x.K = int(begin), int(end-begin)
	}
	scratch := arrangedAs[T](w)
	for i := range int(d.left.extents[0]) {
		x.C, x.A, x.B = matrix[T](w, d.out, i), matrix[T](w, d.left, i), matrix[T](w, d.right, i)
		if first > 0 && x.K > 0 {
			x.A.Data, x.B.Data = x.A.Data[first*x.A.Col:], x.B.Data[first*x.B.Row:]
		}
		multiply(x, scratch)
	}
	w.places[d.fresh] = 0
}

// arrangedAs is the scratch of dots.
func arrangedAs[T number](w *worker) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(w.arranged))), int64(len(w.arranged))/classBytes[classFor[T]()])
}

// products are the matrices a dot makes: of batch, rows and columns. They are
// part of an output where nothing else reads them, and dense otherwise.
func products[T number](b *block, op symtile.Op, c *closer, batch, rows int) *operands {
	v, sizes := c.outs[0], op.Tile.Sizes()
	dims := make([]int64, len(sizes))
	for k := range dims {
		dims[k] = int64(k)
	}
	parts := [][]int64{dims[:batch], dims[batch : batch+rows], dims[batch+rows:]}
	x := &operands{v: v}
	if v.strides = b.l.stored(op); v.strides != nil && x.find(sizes, v.strides, parts) && x.strides[2] == 1 {
		v.n = spanOf(sizes, v.strides)
		return x
	}
	v.strides = nil
	x.find(sizes, rowMajor(sizes), parts)
	x.strides[2] = 1 // also of one column
	return x
}

// stored returns how far apart elements of the tile of an op are in an output,
// if they are of its type, all there, and nothing but one root reads the op.
func (l *lowering) stored(op symtile.Op) []int64 {
	root := slices.IndexFunc(l.p.Roots, func(r symtile.Root) bool { return l.p.Ops[r.Op].Instr == op.Instr })
	if root < 0 || l.split != nil || len(l.p.Roots) > 1 || len(l.p.Roots[root].Once) > 0 || !native(op.Instr.Shape.DType) {
		return nil
	}
	for _, user := range l.p.Ops {
		if slices.ContainsFunc(user.Args, func(arg int) bool { return l.p.Ops[arg].Instr == op.Instr }) {
			return nil
		}
	}
	return l.inArray(op)
}

// inArray returns how far apart elements of the tile of an op are in an array of
// its shape, if all are there and at places that tile ids tell.
func (l *lowering) inArray(op symtile.Op) (strides []int64) {
	memory := op.Instr.Shape.Strides()
	for k, d := range op.Tile {
		stride, _ := d.Stride.Value()
		if d.Masked() || d.Digits != nil || stride < 1 || len(l.runtimeIn(d.Offset)) > 0 {
			return nil
		}
		strides = append(strides, stride*memory[k])
	}
	return strides
}

type multiplier[T number] func(x gemm.Product[T], scratch []T)

// multiplierFor is how matrices of T are multiplied, and the elements of scratch
// it needs: integers of at most 16 bits two terms at a time.
func multiplierFor[T number](op symtile.Op, x gemm.Product[T]) (multiplier[T], int) {
	narrow := true
	for _, operand := range op.Instr.Operands {
		narrow = narrow && narrowTypes[operand.Shape.DType]
	}
	if f, ok := any(gemm.MultiplyNarrow).(func(x gemm.Product[T], scratch []T)); ok && narrow {
		return f, gemm.ScratchNarrow()
	}
	return gemm.Product[T].Multiply, x.Scratch()
}

// narrowTypes have values between −2¹⁵ and 2¹⁵−1.
var narrowTypes = map[hlo.DType]bool{hlo.S16: true, hlo.S8: true, hlo.U8: true, hlo.S4: true, hlo.U4: true, hlo.Pred: true}

func indexOf(dims []int64, n int) int { return slices.Index(dims, int64(n)) }

// others are the dimensions that are in neither list.
func others(rank int, batch, contract []int64) []int64 {
	var dims []int64
	for d := range int64(rank) {
		if !slices.Contains(batch, d) && !slices.Contains(contract, d) {
			dims = append(dims, d)
		}
	}
	return dims
}

// operands are the matrices of one side of a dot: extents and strides of the
// batch, of rows and of columns.
type operands struct {
	v                *value
	extents, strides [3]int64
	arrange          step // nil: the argument is used as it is
}

// matrix is matrix number i.
func matrix[T number](w *worker, x *operands, i int) gemm.Matrix[T] {
	return gemm.Matrix[T]{Data: whole[T](w, x.v)[i*int(x.strides[0]):], Row: int(x.strides[1]), Col: int(x.strides[2])}
}

// matrices finds those of parts in the tile of argument k. Where the dimensions
// of each part are one and masked elements are zeros, it is used as it is;
// otherwise it is brought to the order of parts, with zeros where contracting
// dimensions are masked.
func matrices[T number](b *block, op symtile.Op, k int, c *closer, contract []int64, parts ...[]int64) *operands {
	source := b.l.p.Ops[op.Args[k]]
	from := everywhere(b, op, k)
	c.full = append(c.full, from)
	x := &operands{v: from}
	together := x.find(source.Tile.Sizes(), stridesOf(from, source.Tile), parts)
	var masked []int64
	for _, d := range contract {
		if source.Tile[d].Masked() && source.Code != hlo.OpParameter { // loads leave zeros
			masked = append(masked, d)
		}
	}
	if together && masked == nil && from.class == classFor[T]() {
		return x
	}
	arrange[T](b, op, k, x, masked, slices.Concat(parts...))
	c.temps = append(c.temps, x.v)
	return x
}

// find sets the extents and strides of parts, and says whether each has one
// stride.
func (x *operands) find(sizes, strides []int64, parts [][]int64) bool {
	together := true
	for n, dims := range parts {
		g := arranging(sizes, strides, dims)
		x.extents[n], x.strides[n] = 1, g.dims[0].stride
		for _, d := range g.dims {
			x.extents[n] *= d.size
		}
		together = together && len(g.dims) == 1
	}
	return together
}

// arrange makes a copy of argument k in the order.
func arrange[T number](b *block, op symtile.Op, k int, x *operands, masked, order []int64) {
	source, from := b.l.p.Ops[op.Args[k]].Tile, x.v
	x.v = b.l.value(from.name+".arranged", classFor[T](), op.Args[k], source.Elements())
	x.strides = [3]int64{x.extents[1] * x.extents[2], x.extents[2], 1}
	copyTile := gatherFrom[T](arranging(source.Sizes(), stridesOf(from, source), order), x.v, from)
	blanks := blanking[T](b, x.v, source, order, masked)
	x.arrange = func(w *worker) {
		copyTile(w)
		for _, f := range blanks {
			f(w)
		}
	}
}

// stridesOf is how far apart elements of a tile are in its value.
func stridesOf(v *value, t symtile.Tile) []int64 {
	if v.strides != nil {
		return v.strides
	}
	return rowMajor(t.Sizes())
}

// arranging gathers a tile of sizes and strides into the order.
func arranging(sizes, strides, order []int64) *gather {
	to, from := make([]int64, len(order)), make([]int64, len(order))
	for k, d := range order {
		to[k], from[k] = sizes[d], strides[d]
	}
	return newGather(to, from, 0)
}

// gatherFrom gathers from the operand, converting when its class differs.
func gatherFrom[T number](g *gather, to, from *value) step {
	switch from.class {
	case classF32:
		return func(w *worker) { run(g, whole[T](w, to), whole[float32](w, from), 0) }
	case classF64:
		return func(w *worker) { run(g, whole[T](w, to), whole[float64](w, from), 0) }
	case classI32:
		return func(w *worker) { run(g, whole[T](w, to), whole[int32](w, from), 0) }
	}
	return func(w *worker) { run(g, whole[T](w, to), whole[int64](w, from), 0) }
}

// blanking zeroes what is masked of dimensions of a tile that v holds in the order.
func blanking[T number](b *block, v *value, t symtile.Tile, order, dims []int64) []step {
	sizes := make([]int64, len(order))
	for k, d := range order {
		sizes[k], _ = t[d].Size.Value()
	}
	var steps []step
	for _, d := range dims {
		m := newLimit(b, t[d])
		stride := rowMajor(sizes)[slices.Index(order, d)]
		steps = append(steps, func(w *worker) {
			lo, hi := m.span(w)
			for rows := whole[T](w, v); len(rows) > 0; rows = rows[m.size*stride:] {
				clear(rows[:lo*stride])
				clear(rows[hi*stride : m.size*stride])
			}
		})
	}
	return steps
}
