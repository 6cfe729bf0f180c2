package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A gather takes slices from an operand at start indices that are computed at run
// time. For each element of the batch it reads a start for some dimensions of the
// operand, clamps it such that the slice is inside, and reads the slice along the
// offset dimensions. A parameter that only gathers read is never loaded as a tile.
// Where a root is a gather of rows, the rows are copied straight to the output, with
// the next row prefetched during the copy of each.

// A gatherAccess is the addressing of a gather: for every element of the batch
// it reads an index vector from scratch, and a slice from a parameter or from
// scratch.
type gatherAccess struct {
	dims   []gatherAccessDim // The dimensions of the result's tile.
	starts []startComponent  // The components of index vectors.
	// The slot of the first element for start indices of 0.
	base  int
	masks []dimMask // The masks of the masked dimensions.
}

// A gatherAccessDim is a dimension of the result's tile, with the distances of
// its elements in the source and in the indices.
type gatherAccessDim struct {
	// The size, and the steps in the source and in the indices.
	size, step, index int64
	mask              int // The index of its mask, or −1.
}

// A startComponent is a component of the index vectors.
type startComponent struct {
	at int64 // Its place in the indices.
	// The last start that keeps the slice inside of the operand.
	max  int64
	step int64 // Its stride in the source.
}

// readByGathersOnly reports whether gathers are the only readers of a
// parameter. They read the array itself, so that no tile of it is loaded.
func readByGathersOnly(p *symtile.Program, n int) bool {
	if p.Ops[n].Code != hlo.OpParameter {
		return false
	}
	for _, op := range p.Ops {
		for k, a := range op.Args {
			if a == n && (op.Code != hlo.OpGather || k != 0) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(p.Roots, func(r symtile.Root) bool {
		return r.Op == n
	})
}

// gatherWalksDigits reports whether a gather need not look at the digits of its tiles: those
// of the batch, whose index vectors are read one after the other, in the result and the
// indices alike. The distances of slices, and of batched dimensions of the operand, are
// those of one run.
func gatherWalksDigits(p *symtile.Program, op symtile.Op) bool {
	g := op.Instr.Attrs.Gather
	indices := p.Ops[op.Args[1]].Tile
	for d, x := range op.Tile {
		if x.Digits != nil && slices.Contains(g.OffsetDims, int64(d)) {
			return false
		}
	}
	for d, x := range indices {
		if x.Digits != nil && (int64(d) == g.IndexVectorDim || len(g.IndicesBatching) > 0) {
			return false
		}
	}
	return !p.Ops[op.Args[0]].Tile.HasDigits()
}

// lowerGather lowers a gather.
func lowerGather[T portable.Number](b *block, n int, op symtile.Op) {
	// From an array, slices are read by the transfer of its type; from scratch, they
	// are copied.
	source := b.l.p.Ops[op.Args[0]]
	direct := readByGathersOnly(b.l.p, op.Args[0])
	strides := hlo.RowMajor(source.Tile.Sizes())
	if direct {
		strides = source.Instr.Shape.Strides()
	}
	if !gatherWalksDigits(b.l.p, op) && b.l.err == nil {
		b.l.err = errDigits
	}
	t := newGatherAccess(b, op, source.Tile, strides, direct)
	v := b.l.result(n)
	indices := materialized(b, op, 1)
	in := &instr{
		name:     "gather",
		outs:     []*value{v},
		tileArgs: []*value{indices},
	}
	if direct {
		move := reader[T](source.Instr.Shape.DType)
		param := source.Instr.Attrs.Param
		in.run = func(w *worker) {
			data := w.in[param].Data
			runGather(w, t, whole[T](w, v), indexReader(w, indices), func(
				dst []T, at, step int64,
			) {
				move(dst, data, at, step)
			})
		}
	} else {
		from := materialized(b, op, 0)
		in.tileArgs = append(in.tileArgs, from)
		in.run = func(w *worker) {
			src := whole[T](w, from)
			runGather(w, t, whole[T](w, v), indexReader(w, indices), func(
				dst []T, at, step int64,
			) {
				portable.GatherRun(dst, src, at, step)
			})
		}
	}
	b.add(in)
}

// newGatherAccess describes a gather from a source with the strides: those of
// the array where it is read directly, else those of the tile in scratch.
func newGatherAccess(b *block, op symtile.Op, source symtile.Tile, strides []int64, direct bool) *gatherAccess {
	g := op.Instr.Attrs.Gather
	from := op.Instr.Operands[0].Shape
	// The place of an element is base + Σ index·step + Σ start·step. In scratch, the
	// tile of the source begins at 0; in the array, at the offsets of the tile.
	t := &gatherAccess{}
	base := b.l.p.Space.Ring.Const(0)
	if direct {
		for d, x := range source {
			base = base.Add(x.Offset.Scale(strides[d]))
		}
	}
	for _, d := range op.Tile {
		size, _ := d.Size.Value()
		x := gatherAccessDim{size: size, mask: -1}
		// What a masked index vector of digits selects is some element of the operand,
		// since starts are clamped: no mask is needed.
		if d.Masked() && d.Digits == nil {
			x.mask = len(t.masks)
			t.masks = append(t.masks, newDimMask(b, d))
		}
		t.dims = append(t.dims, x)
	}
	indices := b.l.p.Ops[op.Args[1]].Tile
	components := t.setBatchSteps(
		g, hlo.RowMajor(indices.Sizes()), source, strides, direct,
	)
	for k, d := range g.StartIndexMap {
		t.starts = append(t.starts, startComponent{
			int64(k) * components,
			from.Dims[d] - g.SliceSizes[d],
			strides[d],
		})
	}
	// The offset dimensions of the result are, in order, the dimensions of the
	// operand that are neither collapsed nor batched. Where a start moves a dimension,
	// the tile's offset within the slice adds to it.
	offsets := slices.Sorted(slices.Values(g.OffsetDims))
	for d := range source {
		if slices.Contains(g.CollapsedSliceDims, int64(d)) ||
			slices.Contains(g.OperandBatching, int64(d)) {
			continue
		}
		x := op.Tile[offsets[0]]
		step := strides[d]
		if started := slices.Contains(g.StartIndexMap, int64(d)); started {
			base = base.Add(x.Offset.Scale(strides[d]))
			step *= strideOf(x)
		} else if direct {
			step *= strideOf(x)
		}
		t.dims[offsets[0]].step, offsets = step, offsets[1:]
	}
	t.base = b.slot(base)
	return t
}

// strideOf is the stride of a dimension of a tile.
func strideOf(d symtile.DimTile) int64 {
	v, _ := d.Stride.Value()
	return v
}

// setBatchSteps sets the steps of the batch dimensions in the indices, and in
// the source where dimensions of both are batched. It returns the step from one
// component of an index vector to the next.
func (t *gatherAccess) setBatchSteps(
	g *hlo.GatherDims, indices []int64,
	source symtile.Tile, strides []int64, direct bool,
) (components int64) {
	d := 0
	for k, step := range indices {
		if int64(k) == g.IndexVectorDim {
			components = step
			continue
		}
		for slices.Contains(g.OffsetDims, int64(d)) {
			d++
		}
		t.dims[d].index = step
		if n := slices.Index(g.IndicesBatching, int64(k)); n >= 0 {
			o := g.OperandBatching[n]
			if t.dims[d].step = strides[o]; direct {
				t.dims[d].step *= strideOf(source[o])
			}
		}
		d++
	}
	return components
}

// indexReader reads indices from scratch of either integer class.
func indexReader(w *worker, v *value) func(k int64) int64 {
	if v.class == portable.Int32 {
		x := whole[int32](w, v)
		return func(k int64) int64 { return int64(x[k]) }
	}
	x := whole[int64](w, v)
	return func(k int64) int64 { return x[k] }
}

// runGather computes the whole tile. Masked elements become 0.
func runGather[T portable.Number](
	w *worker, t *gatherAccess, dst []T,
	index func(int64) int64,
	read func(dst []T, at, step int64),
) {
	// Only valid elements are read; the others are 0.
	if len(t.masks) > 0 {
		clear(dst)
	}
	var r region
	for k, d := range t.dims {
		r.lo[k], r.hi[k] = 0, d.size
		if d.mask >= 0 {
			r.lo[k], r.hi[k] = t.masks[d.mask].valid(w)
		}
		if r.lo[k] >= r.hi[k] {
			return
		}
	}
	// The recursion goes through the dimensions of the result with the number of the
	// element in the result, its place in the source, and the place of its index
	// vector. At the end the starts are read and clamped. If the last dimension is no
	// batch dimension, a whole row has one index vector and is read at once.
	var walk func(k int, to, at, from int64)
	walk = func(k int, to, at, from int64) {
		if k == len(t.dims) ||
			k == len(t.dims)-1 && t.dims[k].index == 0 {
			for _, s := range t.starts {
				at += max(0, min(index(from+s.at), s.max)) * s.step
			}
			if k == len(t.dims) {
				read(dst[to:to+1], at, 1)
				return
			}
			d := t.dims[k]
			read(
				dst[to*d.size+r.lo[k]:to*d.size+r.hi[k]],
				at+r.lo[k]*d.step,
				d.step,
			)
			return
		}
		d := t.dims[k]
		for i := r.lo[k]; i < r.hi[k]; i++ {
			walk(
				k+1, to*d.size+i,
				at+i*d.step, from+i*d.index,
			)
		}
	}
	walk(0, 0, w.slots[t.base], 0)
}

// A rowGather is a gather that goes from an array of the caller straight to an
// output, row by row.
type rowGather struct {
	access      *gatherAccess          // Where elements come from.
	to          []int64                // The strides in the output.
	slot        int                    // The slot of the place of element 0 in it.
	width       int64                  // The bytes of an element.
	nonTemporal bool                   // Stores are non-temporal.
	indices     *value                 // The start indices.
	dst         func(w *worker) []byte // The bytes of the output and of the array.
	src         func(w *worker) []byte
}

// gathersRows reports whether a root is a gather of rows that can go straight
// to its output.
func (l *lowering) gathersRows(r symtile.Root) bool {
	op := l.p.Ops[r.Op]
	if op.Code != hlo.OpGather ||
		op.Tile.HasDigits() ||
		len(op.Tile) == 0 ||
		len(op.Tile) > maxRank ||
		!readByGathersOnly(l.p, op.Args[0]) {
		return false
	}
	// The last dimension must be an offset dimension, so that rows are parts of
	// slices, and elements must not be converted.
	last := int64(len(op.Tile) - 1)
	return slices.Contains(op.Instr.Attrs.Gather.OffsetDims, last) &&
		op.Instr.Shape.DType == l.p.Ops[op.Args[0]].Instr.Shape.DType
}

// lowerRowGather lowers such a root.
func (b *block) lowerRowGather(r symtile.Root) {
	op := b.l.p.Ops[r.Op]
	source := b.l.p.Ops[op.Args[0]]
	shape := op.Instr.Shape
	x := &rowGather{
		width:       shape.DType.Size(),
		nonTemporal: b.l.storesNonTemporal(shape),
	}
	x.access = newGatherAccess(
		b, op, source.Tile,
		source.Instr.Shape.Strides(), true,
	)
	base := b.l.p.Space.Ring.Const(0)
	for d, stride := range shape.Strides() {
		base = base.Add(op.Tile[d].Offset.Scale(stride))
		x.to = append(x.to, stride*strideOf(op.Tile[d]))
	}
	x.slot = b.slot(base)
	x.indices = materialized(b, op, 1)
	param := source.Instr.Attrs.Param
	output := r.Output
	once := r.Once
	x.src = func(w *worker) []byte {
		return w.in[param].Data
	}
	x.dst = func(w *worker) []byte {
		return w.out[output].Data
	}
	b.add(&instr{
		name:     fmt.Sprintf("gather to output %d", output),
		tileArgs: []*value{x.indices},
		run: func(w *worker) {
			for _, d := range once {
				if w.tids[d] != 0 {
					return
				}
			}
			x.run(w)
		},
	})
}

// index is element k of the indices.
func (x *rowGather) index(w *worker, k int64) int64 {
	if x.indices.class == portable.Int32 {
		return int64(whole[int32](w, x.indices)[k])
	}
	return whole[int64](w, x.indices)[k]
}

const (
	// gatherAhead is how many bytes of rows are found, and prefetched, before they are
	// copied: rows that lie anywhere are waited for longer than rows in order.
	gatherAhead   = 8192
	maxRowsAhead  = 15
	gatheredQueue = maxRowsAhead + 1
)

// A rowPlace is where the first element of a row goes and where it comes from, as
// numbers of elements.
type rowPlace struct{ to, from int64 }

// run copies the valid rows, whose elements are those along the last dimension.
// Rows that follow are prefetched while a row is copied.
func (x *rowGather) run(w *worker) {
	var r region
	for k, d := range x.access.dims {
		r.lo[k], r.hi[k] = 0, d.size
		if d.mask >= 0 {
			r.lo[k], r.hi[k] = x.access.masks[d.mask].valid(w)
		}
		if r.lo[k] >= r.hi[k] {
			return
		}
	}
	last := len(x.access.dims) - 1
	n := r.hi[last] - r.lo[last]
	ahead := min(maxRowsAhead, gatherAhead/(n*x.width)+1)
	var rows [gatheredQueue]rowPlace
	at, found := r.lo, int64(0)
	more := true
	for done := int64(0); more || done < found; done++ {
		for more && found <= done+ahead {
			rows[found%gatheredQueue] = x.find(w, &at)
			more = x.advance(&at, &r)
			found++
		}
		now := rows[done%gatheredQueue]
		next := rows[(found-1)%gatheredQueue]
		x.copyRow(w, n, now.to, now.from, next.from-now.from)
	}
	if x.nonTemporal {
		vector.StoreFence(&w.copyArgs)
	}
}

// advance goes to the next row and reports false after the last.
func (x *rowGather) advance(at *[maxRank]int64, r *region) bool {
	for k := len(x.access.dims) - 2; k >= 0; k-- {
		if at[k]++; at[k] < r.hi[k] {
			return true
		}
		at[k] = r.lo[k]
	}
	return false
}

// find is where the row at an index goes and where it comes from. It reads and clamps
// the start indices.
func (x *rowGather) find(
	w *worker, at *[maxRank]int64,
) rowPlace {
	to := w.slots[x.slot]
	from := w.slots[x.access.base]
	index := int64(0)
	for k := range x.access.dims {
		d := &x.access.dims[k]
		to = to + at[k]*x.to[k]
		from = from + at[k]*d.step
		index = index + at[k]*d.index
	}
	for _, s := range x.access.starts {
		from += max(0, min(
			x.index(w, index+s.at), s.max,
		)) * s.step
	}
	return rowPlace{to, from}
}

// copyRow copies n elements along the last dimension and prefetches the row
// that begins a number of elements further. Rows with a stride are copied
// element by element.
func (x *rowGather) copyRow(w *worker, n, to, from, next int64) {
	last := len(x.access.dims) - 1
	step := x.access.dims[last].step
	stride := x.to[last]
	dst, src := x.dst(w)[to*x.width:],
		x.src(w)[from*x.width:]
	dst, src = dst[:((n-1)*stride+1)*x.width],
		src[:((n-1)*step+1)*x.width]
	if step != 1 || stride != 1 {
		m := tileCopy{width: x.width}
		m.copyStrided(
			unsafe.Pointer(&dst[0]),
			unsafe.Pointer(&src[0]), n, stride, step,
		)
		return
	}
	w.copyArgs.CopyRows(
		vector.CopyArgs{
			N:     1,
			Bytes: n * x.width,
			From:  unsafe.Pointer(&src[0]),
			To:    unsafe.Pointer(&dst[0]),
			Ahead: next * x.width,
		},
		x.nonTemporal,
	)
}
