package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
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

// lowerGather lowers a gather whose tile is made in scratch.
func lowerGather[T portable.Number](
	b *block, n int, op symtile.Op,
) {
	source := b.l.p.Ops[op.Args[0]]
	direct := readByGathersOnly(
		b.l.p, op.Args[0],
	)
	shape := source.Instr.Shape
	strides := hlo.RowMajor(source.Tile.Sizes())
	width := portable.ClassFor[T]().Bytes()
	if direct {
		strides, width = shape.Strides(), shape.DType.Size()
	}
	if !gatherWalksDigits(b.l.p, op) && b.l.err == nil {
		b.l.err = errDigits
	}
	v := b.l.result(n)
	t := newGatherAccess(b, op, source.Tile, strides, direct)
	x := newTileGather(
		t, hlo.RowMajor(op.Tile.Sizes()),
		width,
	)
	x.readIndices(b, op)
	in := &instr{name: "gather", outs: []*value{v}, tileArgs: []*value{x.indices}}
	x.dst = v.data
	if direct {
		param := source.Instr.Attrs.Param
		x.src = func(w *worker) []byte { return w.in[param].Data }
	} else {
		from := materialized(b, op, 0)
		in.tileArgs = append(in.tileArgs, from)
		x.src = from.data
	}
	if direct && !portable.IsNative(shape.DType) {
		in.outs = append(
			in.outs,
			convertGathered[T](b, x, v, shape.DType),
		)
	}
	x.compile(b.l)
	in.run = x.run
	b.add(in)
}

// convertGathered lets a gather convert what it copies to the class of T, a run of slices after
// the other. It returns the scratch for a run.
func convertGathered[T portable.Number](
	b *block, x *tileGather, v *value,
	d hlo.DType,
) *value {
	n := x.inner.size * x.slice.size
	raw := b.l.value(
		"slices", portable.Int32, noTile,
		(n*x.width+3)/4,
	)
	move := reader[T](d)
	// Slices of a run lie one after the other, and in the tile a step apart.
	step, size := x.inner.to, x.slice.size
	x.copies.To = x.copies.Bytes
	x.dst = raw.data
	x.converted = func(
		w *worker, to, count, length int64,
	) {
		dst := whole[T](w, v)
		data := raw.data(w)
		if step == length && size == length {
			move(
				dst[to:][:count*length], data,
				0, 1,
			)
			return
		}
		for k := range count {
			move(
				dst[to+k*step:][:length],
				data, k*size, 1,
			)
		}
	}
	x.clears = func(w *worker) {
		clear(whole[T](w, v))
	}
	return raw
}

// newGatherAccess describes a gather from a source with the strides: those of
// the array where it is read directly, else those of the tile in scratch.
func newGatherAccess(
	b *block, op symtile.Op, source symtile.Tile,
	strides []int64, direct bool,
) *gatherAccess {
	g := op.Instr.Attrs.Gather
	from := op.Instr.Operands[0].Shape
	// The place of an element is base + Σ index·step + Σ start·step. In scratch, the
	// tile of the source begins at 0; in the array, at the offsets of the tile.
	t := &gatherAccess{}
	base := b.l.p.Space.Ring.Const(0)
	if direct {
		for d, x := range source {
			base = base.Add(
				x.Offset.Scale(strides[d]),
			)
		}
	}
	for _, d := range op.Tile {
		size, _ := d.Size.Value()
		x := gatherAccessDim{size: size, mask: -1}
		// What a masked index vector of digits selects is some element of the operand,
		// since starts are clamped: no mask is needed.
		if d.Masked() && d.Digits == nil {
			x.mask = len(t.masks)
			t.masks = append(
				t.masks, newDimMask(b, d),
			)
		}
		t.dims = append(t.dims, x)
	}
	indices := b.l.p.Ops[op.Args[1]].Tile
	components := t.setBatchSteps(
		g, hlo.RowMajor(
			indices.Sizes(),
		), source, strides, direct,
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
			base = base.Add(
				x.Offset.Scale(strides[d]),
			)
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

// A tileGather gathers a tile. Its dimensions are a slice, whose elements are neighbours in the
// source and in the tile; a run, whose slices machine code copies; and those around both.
type tileGather struct {
	access       *gatherAccess // The masks, and the place of the source.
	slice, inner gatherStep
	outer        []gatherStep
	width        int64           // The bytes of an element.
	copies       portable.Gather // Of a run.
	slot         int             // The slot of the place of element 0 in the destination, or −1 for 0.
	nonTemporal  bool            // Stores are non-temporal.
	indices      *value          // The start indices.
	// The bytes that are gathered to, and those of the source.
	dst, src func(w *worker) []byte
	code     *amd64.Func // Of a run; nil where loops in Go copy it.
	long     bool        // The code is told how long slices are.
	aligned  bool        // The code begins at a vector of the destination.
	// If set, slices of a run lie in dst one after the other, and are converted to the place of
	// an element in the tile.
	converted func(w *worker, to, count, length int64)
	clears    func(w *worker) // Makes all elements 0.
}

// A gatherStep is a dimension of a tile: its size, its mask or −1, and how far elements are
// apart in the source, in the indices and in the destination, in elements of each.
type gatherStep struct {
	size, from, index, to int64
	mask                  int
}

// newTileGather divides the dimensions of a tile, whose elements are the strides to apart.
func newTileGather(
	t *gatherAccess, to []int64, width int64,
) *tileGather {
	x := &tileGather{access: t, width: width, slot: -1}
	for k, d := range t.dims {
		x.push(
			gatherStep{d.size, d.step, d.index, to[k], d.mask},
		)
	}
	one := gatherStep{size: 1, mask: -1}
	x.slice, x.inner = one, one
	if n := len(x.outer) - 1; n >= 0 && x.outer[n].isSlice() {
		x.slice = x.outer[n]
		x.outer = x.outer[:n]
	}
	// The run is the innermost dimension, whose indices follow each other; where that is short,
	// the longest one, of equal ones the innermost. Down a column of 1024 rows, each of another
	// row of the table, every index, slice and copy would be in another line, and these lines
	// would share sets.
	longest := len(x.outer) - 1
	for k, d := range slices.Backward(x.outer) {
		if x.outer[longest].size < gatherRun &&
			d.size > x.outer[longest].size {
			longest = k
		}
	}
	if longest >= 0 {
		x.inner = x.outer[longest]
		x.outer = slices.Delete(
			x.outer, longest, longest+1,
		)
	}
	x.copies = portable.Gather{
		Bytes: x.slice.size * width,
		Next:  x.inner.index,
		From:  x.inner.from * width,
		To:    x.inner.to * width,
	}
	for _, s := range t.starts {
		x.copies.Starts = append(
			x.copies.Starts,
			portable.Start{At: s.at, Last: s.max, Step: s.step * width},
		)
	}
	return x
}

// gatherRun is the slices of a run that are worth a call.
const gatherRun = 32

// push adds a dimension inside of the others, merged with the last one where the two are one.
func (x *tileGather) push(d gatherStep) {
	if d.size == 1 && d.mask < 0 {
		return
	}
	if n := len(x.outer); n > 0 {
		around := &x.outer[n-1]
		if d.mask < 0 && around.mask < 0 &&
			around.from == d.size*d.from &&
			around.index == d.size*d.index &&
			around.to == d.size*d.to {
			d.size *= around.size
			*around = d
			return
		}
	}
	x.outer = append(x.outer, d)
}

// readIndices lets the start indices be those of a gather.
func (x *tileGather) readIndices(
	b *block, op symtile.Op,
) {
	x.indices = materialized(b, op, 1)
	x.copies.Unsigned = op.Instr.Operands[1].Shape.DType == hlo.U64
}

// isSlice reports whether elements along a dimension have one index vector, and are neighbours.
func (d gatherStep) isSlice() bool {
	return d.index == 0 && d.from == 1 && d.to == 1
}

// valid is the range of valid indices of a dimension.
func (x *tileGather) valid(
	w *worker, d gatherStep,
) (lo, hi int64) {
	if d.mask < 0 {
		return 0, d.size
	}
	return x.access.masks[d.mask].valid(w)
}

// compile makes the code of a run, where there is some. Vectors are written past the caches
// where all slices begin at one.
func (x *tileGather) compile(l *lowering) {
	g := vector.GatherCode{Gather: &x.copies, Index: x.indices.class.Bytes()}
	g.NonTemporal = x.nonTemporal && x.writesVectors()
	// Of a short slice the code has the length.
	if !l.jit || !g.Fits() || !g.Long() && x.slice.mask >= 0 ||
		x.nonTemporal && g.Long() && !g.NonTemporal {
		return
	}
	a := l.assembler()
	if g.Emit(a) != nil {
		return
	}
	x.long, x.aligned = g.Long(), g.NonTemporal
	x.code, _ = l.addRoutine(a)
}

// writesVectors reports whether all slices are whole vectors, if the first one begins at one.
func (x *tileGather) writesVectors() bool {
	bytes := x.width * x.inner.to
	for _, d := range x.outer {
		bytes |= x.width * d.to
	}
	return x.slice.mask < 0 && (bytes|x.copies.Bytes)%vectorBytes == 0
}

// vectorBytes is the bytes of a vector that is written past the caches.
const vectorBytes = 32

// A gatherPlace is where a run begins: in the source, the indices and the destination.
type gatherPlace struct{ from, index, to int64 }

// plus is the place k steps along a dimension further.
func (p gatherPlace) plus(k int64, d gatherStep) gatherPlace {
	return gatherPlace{p.from + k*d.from, p.index + k*d.index, p.to + k*d.to}
}

// run gathers the valid elements of a tile; in scratch, the others become 0.
func (x *tileGather) run(w *worker) {
	if len(x.access.masks) > 0 && x.slot < 0 {
		if x.clears != nil {
			x.clears(w)
		} else {
			clear(x.dst(w))
		}
	}
	first := gatherPlace{from: w.slots[x.access.base]}
	if x.slot >= 0 {
		first.to = w.slots[x.slot]
	}
	var r region
	for k, d := range x.outer {
		if r.lo[k], r.hi[k] = x.valid(w, d); r.lo[k] >= r.hi[k] {
			return
		}
	}
	lo, hi := x.valid(w, x.inner)
	begin, end := x.valid(w, x.slice)
	if lo >= hi || begin >= end {
		return
	}
	first = first.plus(lo, x.inner).plus(
		begin, x.slice,
	)
	at := r.lo
	for {
		p := first
		for k, d := range x.outer {
			p = p.plus(at[k], d)
		}
		x.copyRun(w, p, hi-lo, end-begin)
		if !r.advance(&at, len(x.outer)) {
			break
		}
	}
	if x.nonTemporal {
		vector.StoreFence(&w.copyArgs)
	}
}

// advance goes to the next index of the first dimensions, in row-major order, and reports
// false after the last.
func (r *region) advance(
	at *[maxRank]int64, dims int,
) bool {
	for k := dims - 1; k >= 0; k-- {
		if at[k]++; at[k] < r.hi[k] {
			return true
		}
		at[k] = r.lo[k]
	}
	return false
}

// copyRun copies count slices of a length.
func (x *tileGather) copyRun(
	w *worker, p gatherPlace, count, length int64,
) {
	// A call is short enough for the garbage collector to wait for.
	most := min(
		vector.MaxCallLength,
		maxGatherBytes/(length*x.width)+1,
	)
	for done := int64(0); done < count; done += most {
		now := p.plus(done, x.inner)
		n := min(most, count-done)
		to := now.to
		if x.converted != nil {
			to = 0
		}
		if x.indices.class == portable.Int32 {
			gatherSlices(
				w, x,
				whole[int32](w, x.indices)[now.index:],
				now.from, to, n, length,
			)
		} else {
			gatherSlices(
				w, x,
				whole[int64](w, x.indices)[now.index:],
				now.from, to, n, length,
			)
		}
		if x.converted != nil {
			x.converted(w, now.to, n, length)
		}
	}
}

// maxGatherBytes bounds the bytes of a call.
const maxGatherBytes = 1 << 20

// gatherSlices copies n slices of a length from and to the places of elements.
func gatherSlices[I int32 | int64](
	w *worker, x *tileGather, indices []I, from, to, n, length int64,
) {
	dst, src := x.dst(w)[to*x.width:], x.src(w)[from*x.width:]
	bytes := length * x.width
	switch {
	case x.code != nil && (!x.long || bytes >= vectorBytes) &&
		(!x.aligned || uintptr(
			unsafe.Pointer(unsafe.SliceData(dst)),
		)%vectorBytes == 0):
		last := (n - 1) * x.copies.Next
		w.gatherArgs = vector.GatherArgs{
			N:       n,
			Bytes:   bytes,
			Indices: unsafe.Pointer(unsafe.SliceData(indices)),
			Last: unsafe.Pointer(
				unsafe.SliceData(indices[last:]),
			),
			From: unsafe.Pointer(unsafe.SliceData(src)),
			To:   unsafe.Pointer(unsafe.SliceData(dst)),
		}
		x.code.Call(unsafe.Pointer(&w.gatherArgs))
	case x.nonTemporal && bytes >= vector.LineBytes:
		gatherPast(w, x, indices, dst, src, n, bytes)
	default:
		g := x.copies
		g.Bytes = bytes
		portable.GatherSlices(&g, n, indices, dst, src)
	}
}

// gatherPast copies slices past the caches, of which the ends are not whole lines, and fetches
// one that follows meanwhile.
func gatherPast[I int32 | int64](
	w *worker, x *tileGather, indices []I, dst, src []byte, n, bytes int64,
) {
	g := &x.copies
	ahead := min(maxRowsAhead, gatherAhead/bytes+1)
	for k := range n {
		at := k*g.From + portable.Place(
			g, indices[k*g.Next:],
		)
		later := min(k+ahead, n-1)
		next := later*g.From + portable.Place(
			g, indices[later*g.Next:],
		)
		w.copyArgs.CopyRows(vector.CopyArgs{
			N:     1,
			Bytes: bytes,
			From: unsafe.Pointer(
				unsafe.SliceData(src[at:][:bytes]),
			),
			To: unsafe.Pointer(
				unsafe.SliceData(dst[k*g.To:][:bytes]),
			),
			Ahead: next - at,
		}, true)
	}
}

const (
	// gatherAhead is how many bytes of rows are found, and prefetched, before they are
	// copied: rows that lie anywhere are waited for longer than rows in order.
	gatherAhead  = 8192
	maxRowsAhead = 15
)

// gathersToOutput reports whether a root is a gather that can go straight to its output, by
// copies of elements that are not converted.
func (l *lowering) gathersToOutput(r symtile.Root) bool {
	op := l.p.Ops[r.Op]
	return op.Code == hlo.OpGather &&
		!op.Tile.HasDigits() &&
		len(op.Tile) <= maxRank &&
		readByGathersOnly(l.p, op.Args[0]) &&
		op.Instr.Shape.DType == l.p.Ops[op.Args[0]].Instr.Shape.DType
}

// lowerGatherToOutput lowers such a root.
func (b *block) lowerGatherToOutput(r symtile.Root) {
	op := b.l.p.Ops[r.Op]
	source := b.l.p.Ops[op.Args[0]]
	shape := op.Instr.Shape
	base := b.l.p.Space.Ring.Const(0)
	var to []int64
	for d, stride := range shape.Strides() {
		base = base.Add(
			op.Tile[d].Offset.Scale(stride),
		)
		to = append(
			to, stride*strideOf(op.Tile[d]),
		)
	}
	t := newGatherAccess(
		b, op, source.Tile,
		source.Instr.Shape.Strides(), true,
	)
	x := newTileGather(t, to, shape.DType.Size())
	x.slot = b.slot(base)
	x.nonTemporal = b.l.storesNonTemporal(shape)
	x.readIndices(b, op)
	param, output, once := source.Instr.Attrs.Param, r.Output, r.Once
	x.src = func(w *worker) []byte { return w.in[param].Data }
	x.dst = func(w *worker) []byte { return w.out[output].Data }
	x.compile(b.l)
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
