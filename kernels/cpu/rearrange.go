package cpu

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/selection"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Rearrangements within scratch are strided views: broadcast, transpose, reverse and
// unfold give each dimension of the result a stride in the operand, 0 to repeat it,
// negative to reverse it. Machine code reads views with an inner stride of 0 or 1 in
// place. Transposes of enough rows and columns are done in blocks; every other view
// is copied strip by strip when the strip is needed.
//
// Concatenate, dynamic-update-slice and pad place the valid elements of one tile in
// another. They are used where an operand is computed; what comes from arrays is
// composed to copies instead, see view_composition.go.

// A stridedView is a rearrangement of the elements of a tile: element index of
// the view is element start + Σ index·stride of the tile.
//
// Of a tile of 4 by 6 elements, whose strides are 6 and 1, the transpose has
// sizes 6, 4 and strides 1, 6; the rows in reverse order have strides −6, 1 and
// start 18; and a broadcast of it along a new first dimension has the stride 0
// there.
type stridedView struct {
	// The dimensions, outermost first; those that follow each other are merged.
	dims  []stridedDim
	start int64 // The element at index 0.
}

// A stridedDim is a dimension of a strided view.
type stridedDim struct{ size, stride int64 }

// newStridedView merges the dimensions of a view.
func newStridedView(sizes, strides []int64, start int64) *stridedView {
	// A dimension is merged with the one outside of it if a step of that is as far as
	// all steps of this. Dimensions of one element have no steps.
	g := &stridedView{start: start}
	for k, size := range sizes {
		if size == 1 {
			continue
		}
		d := stridedDim{size, strides[k]}
		n := len(g.dims)
		if n > 0 && g.dims[n-1].stride == size*d.stride {
			d.size *= g.dims[n-1].size
			g.dims = g.dims[:n-1]
		}
		g.dims = append(g.dims, d)
	}
	if len(g.dims) == 0 {
		g.dims = []stridedDim{{1, 1}}
	}
	return g
}

// isIdentity reports whether the view is the tile.
func (g *stridedView) isIdentity() bool {
	return g.start == 0 && len(g.dims) == 1 &&
		g.dims[0].stride == 1
}

// copyView copies elements from … from+len(dst)−1 of a view.
func copyView[T, S portable.Number](
	g *stridedView, dst []T, src []S, from int64,
) {
	// Rows of one element each are written one after the other, without indices: those of seven
	// elements, as of a norm, take a quarter of the time.
	if g.spreads() {
		n := g.dims[1].size
		spreadElements(dst, src[g.start+from/n:], from%n, n)
		return
	}
	// Of what repeats, the rest is copied from what was: twice as much each time.
	if n := g.period(); n > 0 && 2*n <= int64(len(dst)) {
		copyView(g, dst[:n], src, from)
		for done := int(n); done < len(dst); done *= 2 {
			copy(dst[done:], dst[:done])
		}
		return
	}
	// The indices of element from are the digits of from to the base of the sizes.
	// Then rows follow each other as in an odometer.
	var index [maxRank]int64
	inner := len(g.dims) - 1
	at := g.start
	for n, d := from, inner; d >= 0 && n > 0; d-- {
		index[d] = n % g.dims[d].size
		n /= g.dims[d].size
		at += index[d] * g.dims[d].stride
	}
	row := g.dims[inner]
	for {
		n := min(row.size-index[inner], int64(len(dst)))
		portable.GatherRun(dst[:n], src, at, row.stride)
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		at -= index[inner] * row.stride
		index[inner] = 0
		for d := inner - 1; d >= 0; d-- {
			index[d]++
			at += g.dims[d].stride
			if index[d] < g.dims[d].size {
				break
			}
			at -= index[d] * g.dims[d].stride
			index[d] = 0
		}
	}
}

// spreads reports whether each element of a tile is repeated, one after the other, as the norm
// of a row is for all of its elements.
func (g *stridedView) spreads() bool {
	return len(g.dims) == 2 &&
		g.dims[0].stride == 1 && g.dims[1].stride == 0
}

// period is the elements of a view that is repeated as a whole, as a row of weights is for
// every row that they scale, and 0 for others.
func (g *stridedView) period() int64 {
	n := int64(0)
	if len(g.dims) > 1 && g.dims[0].stride == 0 {
		n = 1
		for _, d := range g.dims[1:] {
			n *= d.size
		}
	}
	return n
}

// spreadElements repeats elements n times each, of which the first one has been as often as skip
// says.
func spreadElements[T, S portable.Number](dst []T, src []S, skip, n int64) {
	for _, x := range src {
		row := dst[:min(n-skip, int64(len(dst)))]
		v := T(x)
		for k := range row {
			row[k] = v
		}
		dst, skip = dst[len(row):], 0
		if len(dst) == 0 {
			return
		}
	}
}

// lowerRearrangement lowers a broadcast, transpose, reverse or unfold of a
// tile.
func lowerRearrangement[T portable.Number](b *block, n int, op symtile.Op) {
	from := b.l.arg(op, 0)
	if op.Code == hlo.OpBroadcast &&
		b.l.elements(op.Args[0]) == 1 {
		b.l.results[n] = []*value{splat[T](b, from)}
		return
	}
	g := b.l.viewOf(op)
	if g.isIdentity() &&
		b.l.elements(op.Args[0]) == b.l.elements(n) {
		b.alias(n)
		return
	}
	if b.l.packsUnfold(n) ||
		b.l.packsReverse(n) || b.l.slides(n) {
		b.l.results[n] = b.l.results[op.Args[0]]
		return
	}
	v := b.l.result(n)
	if f := transposeStep(g, v, from); f != nil {
		b.add(&instr{
			name:     string(op.Code),
			outs:     []*value{v},
			tileArgs: []*value{from},
			run:      f,
		})
		return
	}
	b.add(&instr{
		name:     string(op.Code),
		outs:     []*value{v},
		tileArgs: []*value{from},
		n:        v.n,
		source:   newMemoryView(g, from),
		strip: func(w *worker, lo, hi int64) {
			copyView(
				g, part[T](w, v, lo, hi),
				whole[T](w, from), lo,
			)
		},
	})
}

// transposeStep is the transpose in scratch that a view is, nil for other
// views. Views of which neighbours are one element are left to the rows that
// read them.
func transposeStep(g *stridedView, v, from *value) step {
	const minSize = 8 // The least elements along both dimensions.
	inner := g.dims[len(g.dims)-1]
	if inner.size < minSize || inner.stride < 1 ||
		!slices.ContainsFunc(g.dims[:len(g.dims)-1], func(d stridedDim) bool {
			return d.stride == 1 && d.size >= minSize
		}) {
		return nil
	}
	m := viewCopy(g, v, from)
	if !m.isTranspose() {
		return nil
	}
	return m.run
}

// shortRowsStep is the copy of a view whose rows are few elements, by machine code, as
// many rows in a call as can be; nil for other views. The windows of a convolution of
// three channels have such rows.
func shortRowsStep(g *stridedView, v, from *value) step {
	const longBytes = 512 // from which on one copy of the Go runtime for each is as fast
	inner := g.dims[len(g.dims)-1]
	if len(g.dims) < 2 || inner.stride != 1 || inner.size*v.elementBytes() >= longBytes {
		return nil
	}
	m := viewCopy(g, v, from)
	if m.cols < 0 || m.dims[m.cols].from != 1 {
		return nil
	}
	for k, d := range m.dims {
		if k != m.cols && d.size > m.dims[m.outerRow].size {
			m.outerRow = k
		}
	}
	return m.run
}

// viewCopy is the copy of a view of a value to another.
func viewCopy(g *stridedView, v, from *value) *tileCopy {
	m := &tileCopy{
		width: v.elementBytes(),
		to:    -1,
		from:  -1,
		start: g.start,
		dst:   v.data,
		src:   from.data,
	}
	for k, step := range rowMajorOf(g.dims) {
		m.dims = append(m.dims, copyDim{
			size: g.dims[k].size,
			to:   step,
			from: g.dims[k].stride,
			unit: 1,
		})
	}
	m.normalize()
	return m
}

// rowMajorOf are the dense strides of dimensions.
func rowMajorOf(dims []stridedDim) []int64 {
	sizes := make([]int64, len(dims))
	for k, d := range dims {
		sizes[k] = d.size
	}
	return hlo.RowMajor(sizes)
}

// viewOf is the view that a broadcast, transpose, reverse or unfold is.
func (l *lowering) viewOf(op symtile.Op) *stridedView {
	strides, start := l.viewStrides(op)
	return newStridedView(op.Tile.Sizes(), strides, start)
}

// viewStrides are the strides of the dimensions of such a view, and where it begins.
func (l *lowering) viewStrides(op symtile.Op) (strides []int64, start int64) {
	from := hlo.RowMajor(
		l.p.Ops[op.Args[0]].Tile.Sizes(),
	)
	strides = make([]int64, len(op.Tile))
	// Dimensions that a broadcast adds keep the stride 0. A reverse begins at the
	// last element.
	switch op.Code {
	case hlo.OpBroadcast:
		for k, d := range op.Instr.Attrs.Dimensions {
			strides[d] = from[k]
		}
	case hlo.OpTranspose:
		from = l.heldStrides(op.Args[0])
		for k, d := range op.Perm {
			strides[k] = from[d]
		}
	case hlo.OpReverse:
		copy(strides, from)
		return reversedStrides(op, from)
	case symtile.OpUnfold:
		l.unfoldStrides(op, from, strides)
	}
	return strides, start
}

// unfoldStrides sets the strides of an unfold, whose neighbouring positions and
// window elements are a number of steps of the operand's tile apart.
func (l *lowering) unfoldStrides(op symtile.Op, from, strides []int64) {
	source := l.p.Ops[op.Args[0]].Tile
	// Dimension d of the operand is dimension n of the result, or, for the k-th
	// window dimension, the two dimensions n and n+1: positions and window elements.
	for n, d, k := 0,
		0,
		0; d < len(source); n, d = n+1, d+1 {
		strides[n] = from[d]
		if k == len(op.Instr.Attrs.Dimensions) ||
			int(op.Instr.Attrs.Dimensions[k]) != d {
			continue
		}
		w := op.Instr.Attrs.Window[k]
		strides[n] = from[d] *
			stepRatio(op.Tile[n], w.Stride, source[d])
		strides[n+1] = from[d] *
			stepRatio(op.Tile[n+1], w.Dilation, source[d])
		n, k = n+1, k+1
	}
}

// stepRatio is the number of elements of the source's tile that a step of the
// result's tile is.
func stepRatio(result symtile.DimTile, by int64, source symtile.DimTile) int64 {
	from, _ := source.Stride.Value()
	stride, _ := result.Stride.Value()
	return stride * by / from
}

// lowerIota lowers an iota.
func lowerIota[T portable.Number](b *block, n int, op symtile.Op) {
	v := b.l.result(n)
	d := int(op.Instr.Attrs.IotaDim)
	sizes := op.Tile.Sizes()
	if op.Tile[d].Digits != nil && b.l.err == nil {
		b.l.err = errDigits
	}
	stride, _ := op.Tile[d].Stride.Value()
	offset := b.slot(op.Tile[d].Offset)
	inner := hlo.Elements(sizes[d+1:])
	size := sizes[d]
	fit := portable.Narrowing[T](op.Instr.Shape.DType)
	fill := func(w *worker, lo, hi int64) {
		dst := part[T](w, v, lo, hi)
		fillIota(
			w, dst, lo/inner%size, size, inner-lo%inner,
			inner, w.slots[offset], stride,
		)
		if fit != nil {
			fit(dst, dst)
		}
	}
	if selection.ReadBy(b.l.p, n) >= 0 {
		b.l.places[v] = fill
		return
	}
	b.add(&instr{
		name:  "iota",
		outs:  []*value{v},
		n:     v.n,
		strip: fill,
	})
}

// fillIota writes first + i·stride for increasing i modulo size: the first
// number as often as its repetitions have not been written by the strip before,
// the others inner times each.
func fillIota[T portable.Number](
	w *worker, dst []T, i, size, left, inner, first, stride int64,
) {
	if inner == 1 {
		fillCycle(w, dst, i, size, first, stride)
		return
	}
	for len(dst) > 0 {
		n := min(left, int64(len(dst)))
		portable.Fill(dst[:n], T(first+i*stride))
		dst, left = dst[n:], inner
		if i++; i == size {
			i = 0
		}
	}
}

// fillCycle is fillIota of numbers that each occur once: one cycle, then copies
// of it.
func fillCycle[T portable.Number](
	w *worker, dst []T, i, size, first, stride int64,
) {
	n := min(size, int64(len(dst)))
	end := min(n, size-i)
	fillCount(w, dst[:end], first+i*stride, stride)
	fillCount(w, dst[end:n], first, stride)
	for ; n > 0 && n < int64(len(dst)); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// fillCount fills with first, first + stride and so on, by machine code where there is some
// for the class.
func fillCount[T portable.Number](
	w *worker, dst []T, first, stride int64,
) {
	if numbers, ok := any(dst).([]int32); ok {
		n := w.countArgs.Count(numbers, first, stride)
		first += int64(n) * stride
		dst = dst[n:]
	}
	for k := range dst {
		dst[k] = T(first)
		first += stride
	}
}

// A tilePlacement says where the valid elements of a source tile go in a result
// tile: element i of dimension d to element first + i·spacing.
type tilePlacement struct {
	dims []tilePlacementDim // The dimensions, outermost first.
}

// A tilePlacementDim is a dimension of a tile placement.
type tilePlacementDim struct {
	mask dimMask // The valid elements.
	// The first element, unless the slot holds it, and the distance of elements. It is less
	// than 0 where masked elements come first.
	first, spacing int64
	moves          bool
	slot           int   // The slot of the first element, where it moves.
	size           int64 // The size of the result.
}

// run calls copyRow for each row of valid elements, with its first place in the
// result and in the source, its length and the spacing of its elements in the
// result.
func (p *tilePlacement) run(
	w *worker, copyRow func(to, from, n, spacing int64),
) {
	// A tile of rank 0 is one element. Without valid elements in some dimension there
	// is nothing to place.
	var r region
	var at, index [maxRank]int64
	inner := len(p.dims) - 1
	if inner < 0 {
		copyRow(0, 0, 1, 1)
		return
	}
	for d := range p.dims {
		x := &p.dims[d]
		r.lo[d], r.hi[d] = x.mask.valid(w)
		if at[d] = x.first; x.moves {
			at[d] = w.slots[x.slot]
		}
		// A tile of the result that was narrowed may have a part of the source alone.
		step := max(1, x.spacing)
		r.lo[d] = max(r.lo[d], (step-1-at[d])/step)
		r.hi[d] = min(r.hi[d], (x.size-at[d]+step-1)/step)
		if r.lo[d] >= r.hi[d] {
			return
		}
		index[d] = r.lo[d]
	}
	// Row-major numbers of the row in both tiles, by Horner's scheme.
	last := &p.dims[inner]
	for {
		var from, to int64
		for d := range inner {
			from = (from + index[d]) * p.dims[d+1].mask.size
			to = (to + at[d] + index[d]*p.dims[d].spacing) *
				p.dims[d+1].size
		}
		copyRow(
			to+at[inner]+r.lo[inner]*last.spacing,
			from+r.lo[inner],
			r.hi[inner]-r.lo[inner],
			last.spacing,
		)
		d := inner - 1
		for ; d >= 0; d-- {
			if index[d]++; index[d] < r.hi[d] {
				break
			}
			index[d] = r.lo[d]
		}
		if d < 0 {
			return
		}
	}
}

// copySpaced copies n elements to places that are a number of elements apart.
func copySpaced[T portable.Number](
	dst, src []T, to, from, n, spacing int64,
) {
	if spacing == 1 {
		copy(dst[to:to+n], src[from:from+n])
		return
	}
	for _, v := range src[from : from+n] {
		dst[to] = v
		to += spacing
	}
}

// lowerConcatenate places every argument in turn. Each tile of an argument is
// masked to what the result's tile has of it, so that where one is valid the
// others are not.
func lowerConcatenate[T portable.Number](b *block, n int, op symtile.Op) {
	v := b.l.result(n)
	in := &instr{
		name: "concatenate",
		outs: []*value{v},
	}
	var runs []step
	for k, a := range op.Args {
		p := &tilePlacement{}
		for d, t := range b.l.p.Ops[a].Tile {
			size, _ := op.Tile[d].Size.Value()
			p.dims = append(p.dims, tilePlacementDim{
				mask:    newDimMask(b, t),
				first:   b.l.placeOf(n, a, d),
				spacing: 1,
				size:    size,
			})
		}
		from := materialized(b, op, k)
		in.tileArgs = append(in.tileArgs, from)
		runs = append(runs, func(w *worker) {
			placeInto[T](w, p, v, from)
		})
	}
	in.run = func(w *worker) {
		for _, f := range runs {
			f(w)
		}
	}
	b.add(in)
}

// placeOf is where the tile of an operand begins in that of op n, which joins it with others.
func (l *lowering) placeOf(n, operand, dim int) int64 {
	from := l.first.Of(n, dim)
	return l.first.Of(operand, dim) - from
}

// lowerUpdate lowers a dynamic-update-slice: the operand, and the update over
// it.
func lowerUpdate[T portable.Number](b *block, n int, op symtile.Op) {
	p := &tilePlacement{}
	for d, t := range b.l.p.Ops[op.Args[1]].Tile {
		size, _ := op.Tile[d].Size.Value()
		p.dims = append(p.dims, tilePlacementDim{
			mask:    newDimMask(b, t),
			spacing: 1,
			size:    size,
		})
	}
	v := b.l.result(n)
	base := materialized(b, op, 0)
	over := materialized(b, op, 1)
	b.add(&instr{
		name:     "dynamic-update-slice",
		outs:     []*value{v},
		tileArgs: []*value{base, over},
		run: func(w *worker) {
			copy(whole[T](w, v), whole[T](w, base))
			placeInto[T](w, p, v, over)
		},
	})
}

// placeInto places the elements of a value in another.
func placeInto[T portable.Number](w *worker, p *tilePlacement, to, from *value) {
	dst := whole[T](w, to)
	src := whole[T](w, from)
	p.run(w, func(to, from, n, spacing int64) {
		copySpaced(dst, src, to, from, n, spacing)
	})
}

// lowerPad fills a tile with the padding value and places the operand. Element
// i of dimension d of the operand's tile is index low + (interior+1)·(offset +
// i·stride) of the result.
func lowerPad[T portable.Number](b *block, n int, op symtile.Op) {
	source := b.l.p.Ops[op.Args[0]].Tile
	p := &tilePlacement{}
	for d, x := range op.Instr.Attrs.Padding {
		size, _ := op.Tile[d].Size.Value()
		at := tilePlacementDim{
			mask:    newDimMask(b, source[d]),
			first:   b.l.placeOf(n, op.Args[0], d),
			spacing: 1,
			size:    size,
		}
		if x.Interior > 0 {
			stride := strideOf(op.Tile[d])
			at.spacing = strideOf(source[d]) *
				(x.Interior + 1) / max(1, stride)
			at.moves = true
			at.slot = b.slot(
				source[d].Offset.Scale(x.Interior + 1).AddConst(x.Low).Sub(
					op.Tile[d].Offset,
				).Div(max(1, stride)),
			)
		}
		p.dims = append(p.dims, at)
	}
	v := b.l.result(n)
	from := materialized(b, op, 0)
	fill := b.l.arg(op, 1)
	b.add(&instr{
		name:     "pad",
		outs:     []*value{v},
		tileArgs: []*value{from, fill},
		run: func(w *worker) {
			portable.Fill(whole[T](w, v), first[T](w, fill))
			placeInto[T](w, p, v, from)
		},
	})
}
