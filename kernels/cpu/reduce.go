package cpu

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/selection"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A reduction walks its operand in row-major order. A run along the last dimension
// is reduced to one element where that dimension is reduced, and combined element by
// element with the result where it is kept. Sums of f32 have four partial vectors
// that are combined in a fixed order, so that results do not depend on the machine.
//
// Computations that are no single operation, and reductions of several operands,
// apply their computation to strips of pairs (stripReducer), or element by element
// with a scalar program where one of their instructions has no strips.

// A reduceLoop walks the operand of a reduce in row-major order: all elements
// along kept dimensions, the valid ones along reduced ones. Dimensions that
// follow each other, and are both kept or both reduced and not masked, are
// merged.
type reduceLoop struct {
	dims  []reduceDim // The dimensions, outermost first.
	masks []dimMask   // The masks of masked dimensions.
}

// A reduceDim is a dimension of a reduce loop.
type reduceDim struct {
	size int64
	from int64 // The stride in the operand.
	// The stride in the result, 0 along reduced dimensions.
	kept int64
	mask int // The index of its mask, or −1.
}

// newReduceLoop is the loop over a tile, whose elements are the strides apart, along the
// reduced dimensions.
func newReduceLoop(
	b *block, source symtile.Tile, strides []int64,
	reduced []int64, result symtile.Tile,
) *reduceLoop {
	// Kept dimensions take the strides of the result in order. Masked elements of kept
	// dimensions are reduced like others: they are masked in the result, too.
	f := &reduceLoop{}
	kept := hlo.RowMajor(result.Sizes())
	for d, t := range source {
		size, _ := t.Size.Value()
		next := reduceDim{
			size: size, from: strides[d], mask: -1,
		}
		if indexOf(reduced, d) < 0 {
			next.kept = kept[0]
			kept = kept[1:]
		} else if t.Masked() {
			next.mask = len(f.masks)
			f.masks = append(f.masks, newDimMask(b, t))
		}
		f.push(next)
	}
	if len(f.dims) == 0 {
		f.dims = []reduceDim{{1, 1, 0, -1}}
	}
	return f
}

// columnStrides is the strides in its array of the tile of a load of which a reduction alone
// reads rows, each of them into as many results; else nil. A tile of some columns is read in
// place then. Row kernels do that for f32.
func (l *lowering) columnStrides(n int, op symtile.Op) []int64 {
	reader := l.onlyReader(n)
	d := op.Instr.Shape.DType
	if reader < 0 || d == hlo.F32 || !portable.IsNative(d) {
		return nil
	}
	user := l.p.Ops[reader]
	if user.Code != hlo.OpReduce || len(user.Args) != 2 {
		return nil
	}
	if hasOnline(l.p.Body) {
		return nil
	}
	_, single := user.Instr.Attrs.ToApply.Monoid()
	last := len(op.Tile) - 1
	if !single || indexOf(user.Instr.Attrs.Dimensions, last) >= 0 {
		return nil
	}
	if op.Tile.Sizes()[last] == 1 {
		return nil
	}
	strides := l.arrayStrides(op)
	if strides == nil || strides[last] != 1 {
		return nil
	}
	return strides
}

// hasOnline reports whether some loop among steps, or inside of one, is online.
func hasOnline(body []symtile.Step) bool {
	return slices.ContainsFunc(body, func(s symtile.Step) bool {
		return s.Loop != nil &&
			(s.Loop.Online != nil || hasOnline(s.Loop.Body))
	})
}

// push adds a dimension inside of the others, merged with the last where the
// two are one: both kept with fitting strides, or both reduced, and neither
// masked.
func (f *reduceLoop) push(d reduceDim) {
	if d.size == 1 && d.mask < 0 {
		return
	}
	n := len(f.dims)
	if n > 0 && d.mask < 0 {
		out := &f.dims[n-1]
		if out.mask < 0 && out.kept == d.size*d.kept &&
			out.from == d.size*d.from {
			out.size = out.size * d.size
			out.from = d.from
			out.kept = d.kept
			return
		}
	}
	f.dims = append(f.dims, d)
}

// each calls do with every run along the last dimension: its first element in
// the operand and in the result, its length, and its stride in the result.
func (f *reduceLoop) each(
	w *worker, do func(from, to, n, step int64),
) {
	// Without valid elements along some dimension, nothing is reduced.
	var lo, hi, index [maxRank]int64
	inner := len(f.dims) - 1
	for d, x := range f.dims {
		if hi[d] = x.size; x.mask >= 0 {
			lo[d], hi[d] = f.masks[x.mask].valid(w)
		}
		if lo[d] >= hi[d] {
			return
		}
		index[d] = lo[d]
	}
	// Elements along the last dimension follow each other in the operand.
	step := f.dims[inner].kept
	for {
		var from, to int64
		for d := range inner {
			from += index[d] * f.dims[d].from
			to += index[d] * f.dims[d].kept
		}
		do(
			from+lo[inner], to+lo[inner]*step,
			hi[inner]-lo[inner], step,
		)
		d := inner - 1
		for ; d >= 0; d-- {
			if index[d]++; index[d] < hi[d] {
				break
			}
			index[d] = lo[d]
		}
		if d < 0 {
			return
		}
	}
}

// reduce lowers a reduce: by one operation where its computation is that, else
// by the computation.
func (b *block) reduce(op symtile.Op, c *accumulator) {
	// The arguments are n operands, then n initial values.
	n := len(op.Args) / 2
	for k := range n {
		c.args = append(c.args, materialized(b, op, k))
		c.inits = append(c.inits, b.l.arg(op, n+k))
	}
	source := b.l.p.Ops[op.Args[0]].Tile
	strides := c.args[0].strides
	if strides == nil {
		strides = hlo.RowMajor(source.Sizes())
	}
	f := newReduceLoop(
		b, source, strides,
		op.Instr.Attrs.Dimensions, op.Tile,
	)
	monoid, ok := op.Instr.Attrs.ToApply.Monoid()
	if !ok || n > 1 {
		b.reduceByProgram(f, op, c)
		return
	}
	c.name = "reduce " + string(monoid)
	switch c.outs[0].class {
	case portable.Float32:
		// A row kernel may take the reduction over. The step serves where none does.
		if b.l.jit && inRowKernels(monoid, op.Instr.Shape.DType) {
			c.reduction = &rowReduction{
				loop:   f,
				monoid: monoid,
				arg:    c.args[0],
				out:    c.outs[0],
			}
		}
		c.accumulate = reduceStep[float32](f, monoid, op, c)
	case portable.Float64:
		c.accumulate = reduceStep[float64](f, monoid, op, c)
	case portable.Int32:
		c.accumulate = reduceStep[int32](f, monoid, op, c)
	case portable.Int64:
		c.accumulate = reduceStep[int64](f, monoid, op, c)
	}
	if s := b.l.shortRows(f, monoid, op, c); s != nil {
		c.accumulate = s
	}
	switch {
	case b.l.slides(op.Args[0]):
		c.reduction, c.overwrites = nil, true
		c.accumulate = b.l.windows(monoid, op, c)
	case c.args[0].short != 0:
		c.accumulate = b.narrowReduction(f, monoid, op, c)
	}
	if c.accumulate == nil {
		b.l.reject(
			op, "the CPU backend does not reduce %s by %s", op.Instr.Shape.DType, monoid,
		)
	}
}

// inRowKernels reports whether row kernels reduce a type that is held as f32: f32 itself, and
// what returns one of its operands, which is not rounded, of types that they load.
func inRowKernels(monoid hlo.Opcode, d hlo.DType) bool {
	if _, half := vector.HalfCodecs[d]; half {
		return monoid == hlo.OpMaximum || monoid == hlo.OpMinimum
	}
	return d == hlo.F32
}

// Rows of up to vector.MaxShortRow elements, as of a norm over seven features, of a sum of three
// coordinates or of the two parts of a complex number, are what a call for each row is dear for:
// it takes ten times as long as the sum. They are reduced in the order of their elements, which
// gives other bits than the partial sums of longer rows, and the same ones for all tilings that
// have whole rows.

// shortRows is a reduction of a tile of rows of a few elements, each to one element, by one
// machine function for all rows; nil for others.
func (l *lowering) shortRows(
	f *reduceLoop, monoid hlo.Opcode, op symtile.Op, c *accumulator,
) step {
	// The rows follow each other in the tile as their results do, and have all elements. Of
	// others, as of rows of many elements, a row is a call.
	const fewRows = 8 // of which calls take no time
	if !l.jit || len(f.dims) != 2 ||
		f.dims[0].kept != 1 || f.dims[0].mask >= 0 || f.dims[0].size < fewRows ||
		f.dims[1].kept != 0 || f.dims[1].mask >= 0 {
		return nil
	}
	rows, n := f.dims[0].size, f.dims[1].size
	a := l.assembler()
	if !vector.EmitShortRows(a, monoid, op.Instr.Shape.DType, n) {
		return nil
	}
	code, ok := l.addRoutine(a)
	if !ok {
		return nil
	}
	// A call is short enough for the garbage collector to wait for.
	out, arg := c.outs[0], c.args[0]
	most := vector.MaxCallLength / n
	return func(w *worker) {
		from, to := w.addresses[arg.id], w.addresses[out.id]
		for at := int64(0); at < rows; at += most {
			w.reduceArgs = vector.ReduceArgs{
				N: min(most, rows-at),
				X: (*float32)(unsafe.Add(from, at*n*arg.elementBytes())),
				Y: (*float32)(unsafe.Add(to, at*out.elementBytes())),
			}
			code.Call(unsafe.Pointer(&w.reduceArgs))
		}
	}
}

// Integers and truth values of one and two bytes are reduced where arrays have them, widened in
// registers or not at all: in scratch they would take four times the bytes, which are written and
// read again. Of s8[1024,1024] sums of rows take .50 of the time that they take by way of scratch,
// maxima of rows and of columns .42, sums as s32 .60 (Zen 4, two threads, quiet).
//
// Columns are combined in lanes of bytes over as many rows as a call has, to a row of bytes in
// scratch that is then widened into the result: one addition of 64 bytes is one of 16 elements
// with a load, a widening and a store otherwise.

// narrowStrides is the strides in its array of the tile of a load of such elements that one
// reduction reads, perhaps as a type that is held alike; else nil.
func (l *lowering) narrowStrides(
	n int, op symtile.Op,
) []int64 {
	const fewElements = 32 // along a row, which is a call
	held, from := n, op.Instr.Shape.DType
	reader := l.onlyReader(held)
	for reader >= 0 &&
		l.p.Ops[reader].Code == hlo.OpConvert &&
		sameInScratch(
			from, l.p.Ops[reader].Instr.Shape.DType,
		) {
		held, reader = reader, l.onlyReader(reader)
	}
	last := len(op.Tile) - 1
	if reader < 0 || !l.jit || last < 0 ||
		op.Tile.Sizes()[last] < fewElements ||
		hasOnline(l.p.Body) {
		return nil
	}
	user := l.p.Ops[reader]
	if user.Code != hlo.OpReduce ||
		len(user.Args) != 2 || user.Args[0] != held {
		return nil
	}
	monoid, single := user.Instr.Attrs.ToApply.Monoid()
	strides := l.arrayStrides(op)
	if !single || strides == nil || strides[last] != 1 ||
		!vector.HasNarrowReduction(
			monoid, user.Instr.Shape.DType, from,
		) {
		return nil
	}
	return strides
}

// narrowReduction is the reduction of a tile whose elements lie as in their array. Runs of the loop
// are rows or parts of them; where the innermost dimension is kept and the one around it reduced,
// that one is left to the routine of columns, if there is one.
func (b *block) narrowReduction(
	f *reduceLoop, monoid hlo.Opcode, op symtile.Op, c *accumulator,
) step {
	source := b.l.p.Ops[op.Args[0]]
	for source.Code == hlo.OpConvert {
		source = b.l.p.Ops[source.Args[0]]
	}
	r := &narrowReducer{arg: c.args[0], out: c.outs[0]}
	var ok bool
	r.NarrowReduction, ok = vector.NarrowReductionOf(
		monoid, op.Instr.Shape.DType, source.Instr.Shape.DType,
	)
	if !ok {
		return nil
	}
	if !r.HasColumns || !f.hasColumns() {
		return func(w *worker) {
			f.each(w, func(from, to, n, step int64) {
				r.run(w, from, to, n, step)
			})
		}
	}
	last := len(f.dims) - 1
	r.rows = f.dims[last-1]
	others := slices.Clone(f.dims)
	others = slices.Delete(others, last-1, last)
	r.loop = &reduceLoop{others, f.masks}
	bytes := min(
		f.dims[last].size, vector.MaxCallLength,
	)
	r.combined = b.l.value(
		"rows", portable.Int32, noTile, (bytes+3)/4,
	)
	c.temporaries = append(c.temporaries, r.combined)
	return func(w *worker) {
		r.loop.each(w, func(from, to, n, _ int64) {
			r.columns(w, from, to, n)
		})
	}
}

// hasColumns reports whether rows of some elements are combined, all of which are valid. A mask of
// rows would be another number of them in each tile program; they are reduced one by one then.
func (f *reduceLoop) hasColumns() bool {
	last := len(f.dims) - 1
	return last > 0 && f.dims[last].kept == 1 &&
		f.dims[last].size >= vector.ColumnBytes &&
		f.dims[last-1].kept == 0 && f.dims[last-1].mask < 0
}

// A narrowReducer reduces elements of one and two bytes.
type narrowReducer struct {
	vector.NarrowReduction
	loop     *reduceLoop // Of columns: without the rows that are combined.
	rows     reduceDim
	combined *value // Rows that were combined.
	arg, out *value
}

// run reduces n elements, into one where the step is 0.
func (r *narrowReducer) run(
	w *worker, from, to, n, step int64,
) {
	x := unsafe.Add(
		w.addresses[r.arg.id], from*r.arg.elementBytes(),
	)
	r.into(w, x, to, n, step)
}

// into reduces n elements at an address, a part of them a call: into the element at a place where
// the step is 0, and else into as many elements from there on.
func (r *narrowReducer) into(
	w *worker, x unsafe.Pointer, to, n, step int64,
) {
	code, y := &r.Each, w.addresses[r.out.id]
	y = unsafe.Add(y, 4*to)
	if step == 0 {
		code = &r.Row
	}
	for at := int64(0); at < n; at += vector.MaxCallLength {
		w.narrowArgs.N = min(vector.MaxCallLength, n-at)
		w.narrowArgs.X = unsafe.Add(
			x, at*r.arg.elementBytes(),
		)
		w.narrowArgs.Y = unsafe.Add(
			y, 4*at*step,
		)
		code.Call(unsafe.Pointer(&w.narrowArgs))
	}
}

// columns combines rows of n bytes, in lanes of bytes as far as whole vectors go. The others of a
// row, fewer than a vector has, are widened row by row.
func (r *narrowReducer) columns(
	w *worker, from, to, n int64,
) {
	const most = 8 * vector.MaxCallLength // bytes of a call, 64 of which take about a cycle
	const vectors = ^int64(vector.ColumnBytes - 1)
	whole, piece := n&vectors, r.combined.bytes()&vectors
	x := unsafe.Add(w.addresses[r.arg.id], from)
	args := &w.narrowArgs
	for at := int64(0); at < whole; at += piece {
		length := min(piece, whole-at)
		rows := max(1, most/length)
		for row := int64(0); row < r.rows.size; row += rows {
			args.N, args.Step = length, r.rows.from
			args.Rows = min(rows, r.rows.size-row)
			args.X = unsafe.Add(x, at+row*r.rows.from)
			args.Y = w.addresses[r.combined.id]
			r.Columns.Call(unsafe.Pointer(args))
			r.into(w, args.Y, to+at, length, 1)
		}
	}
	if whole == n {
		return
	}
	from, to = from+whole, to+whole
	for row := range r.rows.size {
		at := from + row*r.rows.from
		r.run(w, at, to, n-whole, 1)
	}
}

// Windows that lie along the rows of an array, as those of a moving sum or of pooling with the
// channels outside, are short rows that overlap. They are not copied side by side: neighbouring
// places are lanes of vectors, which have one element of each window after the other.
//
// Of windows of three by three in rows of 20 elements, places are dimensions of strides 20 and 1,
// and the offsets of the elements of a window 0, 1, 2, 20, 21, 22, 40, 41 and 42. Where the last
// places are not neighbours, as of windows two apart, or the channels are innermost, windows stay a
// view: that of channels is read in whole vectors as it is.

// slides reports whether an op is windows that a reduction reads where they lie.
func (l *lowering) slides(n int) bool {
	op, reader := l.p.Ops[n], l.onlyReader(n)
	if op.Code != symtile.OpUnfold ||
		reader < 0 || !l.jit ||
		l.copies.ops[n] != nil ||
		op.Tile.HasDigits() ||
		l.arg(op, 0).where == inSplat ||
		l.arg(op, 0).strides != nil {
		return false
	}
	user := l.p.Ops[reader]
	if user.Code != hlo.OpReduce ||
		len(user.Args) != 2 ||
		user.Loop != nil || l.running[reader] != nil {
		return false
	}
	monoid, single := user.Instr.Attrs.ToApply.Monoid()
	_, offsets := l.windowDims(op, user)
	return single && offsets != nil &&
		vector.HasWindows(
			monoid, user.Instr.Shape.DType, int64(len(offsets)),
		)
}

// windowDims is the places of the windows that a reduction reads where they lie, whose last ones
// follow each other in scratch, and the offsets of the elements of each; nil where the innermost
// elements are not those of one window, or the places no vector.
func (l *lowering) windowDims(
	unfold, reduce symtile.Op,
) (places []reduceDim, offsets []int64) {
	strides, _ := l.viewStrides(unfold)
	sizes := unfold.Tile.Sizes()
	kept := hlo.RowMajor(reduce.Tile.Sizes())
	inner := false // The innermost elements are those of one window.
	offsets = []int64{0}
	for d, size := range sizes {
		if indexOf(reduce.Instr.Attrs.Dimensions, d) < 0 {
			if size > 1 {
				places = append(
					places, reduceDim{size, strides[d], kept[0], -1},
				)
				inner = false
			}
			kept = kept[1:]
			continue
		}
		inner = inner || size > 1
		if unfold.Tile[d].Masked() ||
			size*int64(len(offsets)) > vector.MaxWindow {
			return nil, nil
		}
		offsets = withOffsets(offsets, size, strides[d])
	}
	n := len(places) - 1
	if !inner || n < 0 ||
		places[n].size < vector.Lanes ||
		places[n].from != 1 ||
		places[n].kept != 1 {
		return nil, nil
	}
	return places, offsets
}

// withOffsets is the offsets of a box with another dimension inside of the others: those of three
// rows 20 apart with three elements in each are 0, 1, 2, 20 and so on, which is the order in which
// the elements of a window are reduced.
func withOffsets(
	outer []int64, size, stride int64,
) (all []int64) {
	for _, at := range outer {
		for k := range size {
			all = append(all, at+k*stride)
		}
	}
	return all
}

// windows is the reduction of windows that slides accepts; nil where there is no code. It begins
// with the initial value itself, which need not be written to the result first.
func (l *lowering) windows(
	monoid hlo.Opcode, op symtile.Op, c *accumulator,
) step {
	places, offsets := l.windowDims(
		l.p.Ops[op.Args[0]], op,
	)
	f := &reduceLoop{}
	for _, d := range places {
		f.push(d)
	}
	a := l.assembler()
	if !vector.EmitWindows(a, monoid, op.Instr.Shape.DType, offsets) {
		return nil
	}
	code, ok := l.addRoutine(a)
	if !ok {
		return nil
	}
	out, arg, init := c.outs[0], c.args[0], c.inits[0]
	most := vector.MaxCallLength / int64(len(offsets))
	return func(w *worker) {
		x, y := w.addresses[arg.id], w.addresses[out.id]
		f.each(w, func(
			from, to, n, _ int64,
		) {
			for at := int64(0); at < n; at += most {
				w.windowArgs = vector.WindowArgs{
					N: min(most, n-at),
					X: unsafe.Add(
						x, (from+at)*arg.elementBytes(),
					),
					Y: unsafe.Add(
						y, (to+at)*out.elementBytes(),
					),
					Init: w.addresses[init.id],
				}
				code.Call(unsafe.Pointer(&w.windowArgs))
			}
		})
	}
}

// reduceStep is a reduction by machine code, or by a loop in Go; nil where there is none for
// the type.
func reduceStep[T portable.Number](
	f *reduceLoop, monoid hlo.Opcode, op symtile.Op, c *accumulator,
) step {
	s := jitReduceStep[T](f, monoid, op.Instr.Shape.DType, c.outs[0], c.args[0])
	if s != nil {
		return s
	}
	return goReduceStep[T](f, monoid, op, c)
}

// goReduceStep is a reduction by a loop in Go, nil where there is none for the
// type.
func goReduceStep[T portable.Number](
	f *reduceLoop, monoid hlo.Opcode, op symtile.Op, c *accumulator,
) step {
	d := op.Instr.Shape.DType
	row := portable.ReduceRow[T](monoid, d)
	into := portable.BinaryOf[T](monoid, d)
	if into == nil || row == nil {
		return nil
	}
	return reduceRuns(f, monoid, d, c.outs[0], c.args[0], func(
		_ *worker, dst, src []T, n, step int64,
	) {
		if step == 0 {
			dst[0] = row(dst[0], src[:n])
			return
		}
		x := dst[:n] // The kept dimension is innermost, with stride 1.
		into(x, x, src[:n])
	})
}

// joinedRuns is the number of neighbouring runs that are summed before their sum is
// added to that of others. Added one by one to a sum of 2²⁴ times as much, short runs are
// lost in it: f32[301,401] in tiles of two columns, one element in 16 of them 256 times as
// large, lost 1.2e-4 of its sum of squares.
const joinedRuns = 64

// joins reports whether neighbouring runs are reduced to one element.
func (f *reduceLoop) joins() bool {
	n := len(f.dims)
	return n > 1 && f.dims[n-1].kept == 0 && f.dims[n-2].kept == 0
}

// A runReducer reduces the first n elements of src: into one element of dst where the
// step is 0, and else element by element.
type runReducer[T portable.Number] func(
	w *worker, dst, src []T, n, step int64,
)

// reduceRuns is a reduction of every run of a tile. Sums of floating-point numbers join
// neighbouring runs first.
func reduceRuns[T portable.Number](
	f *reduceLoop, monoid hlo.Opcode, d hlo.DType,
	out, arg *value, reduce runReducer[T],
) step {
	if monoid == hlo.OpAdd && d.IsFloat() && f.joins() {
		return joinRuns(f, out, arg, reduce)
	}
	return func(w *worker) {
		dst := whole[T](w, out)
		src := whole[T](w, arg)
		f.each(w, func(from, to, n, step int64) {
			reduce(w, dst[to:], src[from:], n, step)
		})
	}
}

// joinRuns is reduceRuns of sums where neighbouring runs are reduced to one element.
func joinRuns[T portable.Number](
	f *reduceLoop, out, arg *value, reduce runReducer[T],
) step {
	zero := T(0)
	zero = -zero // The sum of nothing has the sign of what is added.
	return func(w *worker) {
		dst := whole[T](w, out)
		src := whole[T](w, arg)
		at := unsafe.Pointer(&w.joined)
		joined := unsafe.Slice((*T)(at), 1)
		joined[0] = zero
		runs, into := 0, int64(0)
		flush := func() {
			if runs > 0 {
				dst[into] += joined[0]
			}
			runs, joined[0] = 0, zero
		}
		f.each(w, func(from, to, n, step int64) {
			if runs == joinedRuns || to != into {
				flush()
			}
			reduce(w, joined, src[from:], n, step)
			runs, into = runs+1, to
		})
		flush()
	}
}

// reduceByProgram lowers a reduce by any computation of any number of operands.
func (b *block) reduceByProgram(f *reduceLoop, op symtile.Op, c *accumulator) {
	n := len(c.outs)
	places := b.placesOf(c)
	r := b.pairsReducer(op, c)
	if r == nil {
		return
	}
	if r.program == nil {
		r.places = places
		r.extremum = b.extremumOf(op, c.args[0])
		c.accumulate = r.accumulate(f)
		return
	}
	// Element by element, no strips are filled. The first half of the parameters are the
	// results so far, the second half the next elements.
	outs, args, prog := c.outs, c.args, r.program
	c.accumulate = func(w *worker) {
		if places != nil {
			places(w, 0, args[1].n)
		}
		f.each(w, func(from, to, count, step int64) {
			for range count {
				for k := range n {
					w.scalarRegisters[k] = loadScalar(w, outs[k], to)
					w.scalarRegisters[n+k] = loadScalar(
						w, args[k], from,
					)
				}
				prog.Run(w.scalarRegisters)
				for k, r := range prog.Results {
					storeScalar(w, outs[k], to, w.scalarRegisters[r])
				}
				from, to = from+1, to+step
			}
		})
	}
}

// pairsReducer is the computation of a reduction on pairs: strip by strip where possible and
// else by a scalar program. It is nil where the op is rejected.
func (b *block) pairsReducer(op symtile.Op, c *accumulator) *stripReducer {
	prog, err := portable.CompileScalar(op.Instr.Attrs.ToApply)
	if err != nil {
		b.l.reject(op, "%v", err)
		return nil
	}
	n := len(c.outs)
	if len(prog.Results) != n || prog.Params != 2*n {
		b.l.reject(
			op, "its computation has %d parameters and %d results for %d operands",
			prog.Params, len(prog.Results), n,
		)
		return nil
	}
	b.l.scalarRegisters = max(b.l.scalarRegisters, prog.Registers)
	if r := b.stripReducer(op, c); r != nil {
		return r
	}
	return b.scalarReducer(prog, c)
}

// scalarReducer is the computation as a scalar program, with strips of operands and results:
// a constant, which strips would need copies of, is in a register of the program. A running
// reduction fills the strips; other reductions run the program on elements where they are.
func (b *block) scalarReducer(prog *portable.ScalarProgram, c *accumulator) *stripReducer {
	r := &stripReducer{outs: c.outs, strip: b.l.strip, program: prog}
	// The results so far, the next elements, and what is made of them.
	strips := [][]*value{nil, nil, nil}
	for k := range strips {
		for _, out := range c.outs {
			v := b.l.value("pairs", out.class, noTile, b.l.strip)
			strips[k] = append(strips[k], v)
			c.temporaries = append(c.temporaries, v)
		}
	}
	r.lhs, r.rhs, r.results = strips[0], strips[1], strips[2]
	r.combines = []strip{func(w *worker, lo, hi int64) {
		registers := w.scalarRegisters
		for at := lo; at < hi; at++ {
			for k := range c.outs {
				registers[k] = loadScalar(w, r.lhs[k], at)
				registers[len(c.outs)+k] = loadScalar(w, r.rhs[k], at)
			}
			prog.Run(registers)
			for k, from := range prog.Results {
				storeScalar(w, r.results[k], at, registers[from])
			}
		}
	}}
	return r
}

// placesOf is what writes places that a selection reads, which it does on its own: the pair
// that is kept is mostly known before its place is. It is nil where scratch has them.
func (b *block) placesOf(c *accumulator) strip {
	if len(c.args) != 2 || b.l.places[c.args[1]] == nil {
		return nil
	}
	c.temporaries = append(c.temporaries, c.args[1])
	return b.l.places[c.args[1]]
}

// extremumOf is the search of a row for the pair that a reduction keeps, nil where it keeps
// none or no machine code runs.
func (b *block) extremumOf(op symtile.Op, values *value) extremumSearch {
	if !b.l.jit {
		return nil
	}
	monoid, ok := selection.Of(b.l.p, op)
	if !ok {
		return nil
	}
	switch values.class {
	case portable.Float32:
		return extremumOn[float32](monoid, values)
	case portable.Float64:
		return extremumOn[float64](monoid, values)
	case portable.Int32:
		return extremumOn[int32](monoid, values)
	}
	return nil
}

// An extremumSearch is the place of the pair of n that is kept, from an element on; it is not
// ok where the computation has to say.
type extremumSearch func(w *worker, from, n int64) (at int64, ok bool)

// extremumOn is the search of values of a class.
func extremumOn[T vector.Ordered](monoid hlo.Opcode, values *value) extremumSearch {
	x, ok := vector.ExtremumOf[T](monoid)
	if !ok {
		return nil
	}
	return func(w *worker, from, n int64) (int64, bool) {
		return x.First(&w.extremumArgs, whole[T](w, values)[from:][:n])
	}
}

// loadScalar reads an element of any class; floats are widened to float64.
func loadScalar(w *worker, v *value, at int64) portable.Scalar {
	p := unsafe.Add(
		w.addresses[v.id], at*v.class.Bytes(),
	)
	switch v.class {
	case portable.Float32:
		return portable.Scalar{F: float64(*(*float32)(p))}
	case portable.Float64:
		return portable.Scalar{F: *(*float64)(p)}
	case portable.Int32:
		return portable.Scalar{I: int64(*(*int32)(p))}
	}
	return portable.Scalar{I: *(*int64)(p)}
}

// storeScalar writes an element of any class.
func storeScalar(w *worker, v *value, at int64, x portable.Scalar) {
	p := unsafe.Add(
		w.addresses[v.id], at*v.class.Bytes(),
	)
	switch v.class {
	case portable.Float32:
		*(*float32)(p) = float32(x.F)
	case portable.Float64:
		*(*float64)(p) = x.F
	case portable.Int32:
		*(*int32)(p) = int32(x.I)
	case portable.Int64:
		*(*int64)(p) = x.I
	}
}

// jitReduceStep is goReduceStep by machine code.
func jitReduceStep[T portable.Number](
	f *reduceLoop, monoid hlo.Opcode, d hlo.DType, out, arg *value,
) step {
	code, ok := vector.ReduceRoutinesOf(monoid, d)
	if !ok {
		return nil
	}
	return reduceRuns(f, monoid, d, out, arg, func(
		w *worker, dst, src []T, n, step int64,
	) {
		// The two routines are over a row, and element by element.
		at := code[1]
		if step == 0 {
			at = code[0]
		}
		args := &w.reduceArgs
		for from, to := int64(0), int64(0); n > 0; {
			part := min(n, vector.MaxCallLength)
			*args = vector.ReduceArgs{
				N: part,
				X: (*float32)(unsafe.Pointer(&src[from])),
				Y: (*float32)(unsafe.Pointer(&dst[to])),
			}
			at.Call(unsafe.Pointer(args))
			from, n = from+part, n-part
			to += part * step
		}
	})
}

// A stripReducer applies the computation of a reduce to many pairs at once: its
// scalar instructions are strips, of machine code where there is some.
//
// Along kept dimensions it reduces one element into each result. A run along
// reduced dimensions becomes one element by combining neighbours repeatedly,
// which keeps the order and changes only the association, which a reduce leaves
// open. That element is then reduced into the result. Rounds of few pairs are
// mostly calls: of a run of several strips, each is left when it has some elements,
// and these are combined further when they fill a strip.
type stripReducer struct {
	// The operands of the computation, in scratch of its own.
	lhs, rhs  []*value
	collected []*value // What is left of strips of a run, in order.
	results   []*value // Its results, in other values than these.
	combines  []strip  // The strips of the computation.
	// The scalar program that combines runs; nil where that is strips.
	program *portable.ScalarProgram
	// The computation of neighbours as one machine function, or nil.
	pairs      func(w *worker, from []*value, at, pairs int64)
	outs, args []*value // The results of the reduce, and its operands.
	strip      int64    // The number of pairs at a time.
	// What writes the second operand, element by element; nil where scratch has it.
	places strip
	// The search for the pair that is kept; nil where pairs are combined.
	extremum extremumSearch
}

// stripReducer makes one of the computation, nil where an instruction of it has
// no strips, or where a result is an operand.
func (b *block) stripReducer(op symtile.Op, c *accumulator) *stripReducer {
	to := op.Instr.Attrs.ToApply
	n := len(c.outs)
	if len(to.Params) != 2*n {
		return nil
	}
	r := &stripReducer{
		outs:  c.outs,
		args:  c.args,
		strip: b.l.strip,
	}
	// Every scalar instruction becomes a strip of as many pairs as fit.
	made := map[*hlo.Instr]*value{}
	for k, p := range to.Params {
		v := b.l.stripOfScalars(p)
		made[p] = v
		c.temporaries = append(c.temporaries, v)
		if k < n {
			r.lhs = append(r.lhs, v)
		} else {
			r.rhs = append(r.rhs, v)
		}
	}
	for _, p := range to.Params[:n] {
		v := b.l.stripOfScalars(p)
		c.temporaries = append(c.temporaries, v)
		r.collected = append(r.collected, v)
	}
	group, ok := b.stripReducerBody(to, made, c)
	if !ok || !r.finish(to, made) {
		return nil
	}
	b.l.combineStrips(group, r)
	return r
}

// stripOfScalars is the value for a strip of results of a scalar instruction.
func (l *lowering) stripOfScalars(i *hlo.Instr) *value {
	return l.value(
		"%"+i.Name,
		portable.ClassOf(i.Shape.DType), noTile,
		l.strip,
	)
}

// stripReducerBody makes the strips of the instructions between the parameters
// and the root.
func (b *block) stripReducerBody(
	to *hlo.Computation,
	made map[*hlo.Instr]*value,
	c *accumulator,
) (
	group []*instr, ok bool,
) {
	// Constants and other instructions without operands are left to the scalar
	// program, since they would need a strip of copies.
	for _, i := range to.Instrs {
		switch {
		case i.Op == hlo.OpParameter,
			i.Op == hlo.OpTuple && i == to.Root:
			continue
		case i.Shape.Rank() > 0 ||
			!i.Shape.DType.IsArray() ||
			i.Shape.DType.IsComplex():
			return nil, false
		case i.Op == hlo.OpConstant ||
			len(i.Operands) == 0:
			return nil, false
		}
		p := &pointwiseOp{
			instr: i,
			out:   b.l.stripOfScalars(i),
		}
		for _, o := range i.Operands {
			p.args = append(p.args, made[o])
		}
		x := &instr{
			name:      string(i.Op),
			outs:      []*value{p.out},
			stripArgs: p.args,
			pointwise: p,
		}
		if x.strip = stripOfAny(p); x.strip == nil {
			return nil, false
		}
		made[i] = p.out
		c.temporaries = append(c.temporaries, p.out)
		group = append(group, x)
	}
	return group, true
}

// stripOfAny is elementwiseStrip for a result of any class.
func stripOfAny(p *pointwiseOp) strip {
	switch p.out.class {
	case portable.Float32:
		return elementwiseStrip[float32](p.instr, p.out, p.args)
	case portable.Float64:
		return elementwiseStrip[float64](p.instr, p.out, p.args)
	case portable.Int32:
		return elementwiseStrip[int32](p.instr, p.out, p.args)
	}
	return elementwiseStrip[int64](p.instr, p.out, p.args)
}

// finish finds the results: values of their own, of the classes of the outputs.
func (r *stripReducer) finish(
	to *hlo.Computation, made map[*hlo.Instr]*value,
) bool {
	roots := []*hlo.Instr{to.Root}
	if to.Root.Op == hlo.OpTuple {
		roots = to.Root.Operands
	}
	if len(roots) != len(r.outs) {
		return false
	}
	// Results are moved to the operands of the next round one after the other, so
	// that none may be an operand, or two results at once.
	taken := map[*value]bool{}
	for k, i := range roots {
		v := made[i]
		if v == nil || taken[v] || i.Op == hlo.OpParameter {
			return false
		}
		operands := []*value{v, r.lhs[k], r.rhs[k]}
		if len(r.args) > 0 { // a running reduction may read its array where it is
			operands = append(operands, r.args[k])
		}
		for _, u := range operands {
			if u.class != r.outs[k].class {
				return false
			}
		}
		taken[v] = true
		r.results = append(r.results, v)
	}
	return true
}

// combineStrips makes the strips of a reducer: machine functions of operations that agree in
// the width of lanes, and where all have lanes of four bytes one that reads neighbours; or
// loops in Go.
func (l *lowering) combineStrips(group []*instr, r *stripReducer) {
	for len(group) > 0 {
		run := r.machineRun(l, group)
		m := newStripFunction(run, nil)
		m.writes = r.readAfter(run, group[len(run):])
		f, ok := (*amd64.Func)(nil), false
		if len(run) > 0 {
			f, ok = m.compile(l)
		}
		// The first operation is left to its loop in Go where no function has it.
		if !ok {
			r.combines = append(r.combines, group[0].strip)
			group = group[1:]
			continue
		}
		if len(r.combines) == 0 && len(run) == len(group) && m.lanes() == 4 {
			if f, ok := r.compilePairs(l, m); ok {
				r.pairs = r.callPairs(f)
			}
		}
		r.combines = append(r.combines, m.strip(f))
		group = group[len(run):]
	}
}

// machineRun is as many of the first operations of a group as one machine function does.
func (r *stripReducer) machineRun(l *lowering, group []*instr) (run []*pointwiseOp) {
	for k, i := range group {
		next := append(run[:len(run):len(run)], i.pointwise)
		m := newStripFunction(next, nil)
		if !l.jit || !vector.Has(i.pointwise.instr) || !lanesFit(next) ||
			len(m.reads)+len(r.readAfter(next, group[k+1:])) > len(addressRegs) {
			break
		}
		run = next
	}
	return run
}

// readAfter is what a run makes that is a result, or that the rest of its group reads.
func (r *stripReducer) readAfter(run []*pointwiseOp, rest []*instr) (values []*value) {
	for _, p := range run {
		if slices.Contains(r.results, p.out) ||
			slices.ContainsFunc(rest, func(i *instr) bool {
				return slices.Contains(i.stripArgs, p.out)
			}) {
			values = append(values, p.out)
		}
	}
	return values
}

// compilePairs emits the computation of neighbours: a loop over whole vectors of pairs of
// elements of four bytes. Its addresses are those of the operands, whose elements at even
// places are left ones, and of the results. A result may be its operand's array, since it
// is written behind what is read.
func (r *stripReducer) compilePairs(l *lowering, m *stripFunction) (*amd64.Func, bool) {
	n := len(r.results)
	if 2*n > len(addressRegs) {
		return nil, false
	}
	a := l.assembler()
	a.Emit(amd64.MOV, amd64.RAX, amd64.Mem{Base: amd64.RDI})
	c := l.chain()
	loop := &amd64.Loop{Chain: c, Counter: amd64.RAX, Width: 4, Copies: 2}
	at := map[*value]amd64.Value{}
	regs := map[*value]amd64.Reg{}
	// Operands are read two elements a pair, results written one.
	for k := range 2 * n {
		reg, bytes := addressRegs[k], 8
		a.Emit(amd64.MOV, reg, amd64.Mem{Base: amd64.RDI, Disp: int32(8 + 8*k)})
		if k < n {
			at[r.lhs[k]], at[r.rhs[k]] = vector.LoadPairs(c, reg)
		} else {
			regs[r.results[k-n]] = reg
			bytes = 4
		}
		loop.Pointers = append(loop.Pointers, amd64.Pointer{Reg: reg, Bytes: bytes})
	}
	m.operations(c, at, regs)
	if loop.EmitWhole(a) != nil {
		return nil, false
	}
	a.Emit(amd64.RET)
	return l.addRoutine(a)
}

// callPairs calls the function of neighbours for operands from an element on.
func (r *stripReducer) callPairs(f *amd64.Func) func(w *worker, from []*value, at, pairs int64) {
	n := len(r.results)
	return func(w *worker, from []*value, at, pairs int64) {
		args := &w.stripArgs
		args.n = pairs
		for k, v := range from {
			args.at[k] = unsafe.Add(w.addresses[v.id], 4*at)
			args.at[n+k] = w.addresses[r.results[k].id]
		}
		f.Call(unsafe.Pointer(args))
	}
}

// accumulate reduces the operands along the loop.
func (r *stripReducer) accumulate(f *reduceLoop) step {
	return func(w *worker) {
		f.each(w, func(from, to, n, step int64) {
			if step == 0 {
				r.row(w, from, to, n)
				return
			}
			r.provide(w, from, n)
			for n > 0 {
				part := min(n, r.strip)
				r.column(w, from, to, part)
				from = from + part
				to = to + part*step
				n = n - part
			}
		})
	}
}

// column reduces n elements into n.
func (r *stripReducer) column(w *worker, from, to, n int64) {
	// The results so far are the left operands, the elements the right ones, as in
	// the order of the reduce.
	for k, v := range r.outs {
		size := v.class.Bytes()
		copyBytes(
			w.addresses[r.lhs[k].id],
			unsafe.Add(w.addresses[v.id], to*size),
			n*size,
		)
		copyBytes(
			w.addresses[r.rhs[k].id],
			unsafe.Add(w.addresses[r.args[k].id], from*size),
			n*size,
		)
	}
	r.combine(w, n, to)
}

// combine runs the computation and stores the results at to.
func (r *stripReducer) combine(w *worker, n, to int64) {
	r.run(w, 0, n)
	for k, v := range r.outs {
		size := v.class.Bytes()
		copyBytes(
			unsafe.Add(w.addresses[v.id], to*size),
			w.addresses[r.results[k].id],
			n*size,
		)
	}
}

// run runs the computation on the pairs from lo to hi.
func (r *stripReducer) run(w *worker, lo, hi int64) {
	for _, f := range r.combines {
		f(w, lo, hi)
	}
}

// row reduces n elements into one.
func (r *stripReducer) row(w *worker, from, to, n int64) {
	if !r.selects(w, from, n) {
		r.provide(w, from, n)
		r.combineRow(w, from, n)
	}
	// One element is left. It becomes the right operand of the result so far.
	for k, v := range r.outs {
		copyElement(w, r.rhs[k], 0, r.results[k], 0)
		copyElement(w, r.lhs[k], 0, v, to)
	}
	r.combine(w, 1, to)
}

// combineRow combines the pairs of a row until one is left, the first of the results.
func (r *stripReducer) combineRow(w *worker, from, n int64) {
	if n <= r.strip {
		// A run of one strip needs no collection.
		r.halve(w, r.args, from, n, 1)
		return
	}
	held := r.collect(w, from, n)
	r.halve(w, r.collected, 0, held, 1)
}

// provide writes n places where scratch does not have them.
func (r *stripReducer) provide(w *worker, from, n int64) {
	if r.places != nil {
		r.places(w, from, from+n)
	}
}

// selects makes the pair of n that is kept the first of the results, and reports whether its
// place could be searched for.
func (r *stripReducer) selects(w *worker, from, n int64) bool {
	if r.extremum == nil {
		return false
	}
	at, ok := r.extremum(w, from, n)
	if !ok {
		return false
	}
	r.provide(w, from+at, 1)
	for k, v := range r.results {
		copyElement(w, v, 0, r.args[k], from+at)
	}
	return true
}

// stripRounds is the number of rounds in which elements of a strip of a longer run are
// combined before they are collected.
const stripRounds = 4

// collect reduces n elements to at most a strip of collected ones, and returns how many
// these are. They are in order: what is left of what was collected before comes first.
func (r *stripReducer) collect(w *worker, from, n int64) (held int64) {
	most := max(1, r.strip>>stripRounds)
	for n > 0 {
		part := min(n, r.strip)
		if held+most > r.strip {
			// The elements collected so far stay before those that come.
			held = r.append(w, 0, r.halve(w, r.collected, 0, held, most))
		}
		held = r.append(w, held, r.halve(w, r.args, from, part, most))
		from, n = from+part, n-part
	}
	return held
}

// append copies the first n results behind what was collected, and returns how many are
// collected then.
func (r *stripReducer) append(w *worker, held, n int64) int64 {
	for k, v := range r.collected {
		size := v.class.Bytes()
		copyBytes(
			unsafe.Add(w.addresses[v.id], held*size),
			w.addresses[r.results[k].id],
			n*size,
		)
	}
	return held + n
}

// halve combines neighbours of n elements, at most a strip, until at most some are left, and
// returns how many these are: the first results.
func (r *stripReducer) halve(w *worker, from []*value, at, n, most int64) int64 {
	if n <= most {
		// Nothing is to be combined: the elements are moved to where results are expected.
		for k, v := range from {
			size := v.class.Bytes()
			copyBytes(
				w.addresses[r.results[k].id],
				unsafe.Add(w.addresses[v.id], at*size),
				n*size,
			)
		}
		return n
	}
	// From the second round on, results are combined in place.
	for n > most {
		r.round(w, from, at, n)
		from, at = r.results, 0
		n = n/2 + n%2
	}
	return n
}

// round combines neighbours of n elements; the last of an odd number follows the results.
func (r *stripReducer) round(w *worker, from []*value, at, n int64) {
	pairs, done := n/2, int64(0)
	if r.pairs != nil && pairs >= pairsInVector {
		// Whole vectors of pairs need no operands of their own.
		done = pairs / pairsInVector * pairsInVector
		r.pairs(w, from, at, done)
	}
	if done < pairs {
		for k, v := range from {
			r.deinterleave(w, k, v, at+2*done, done, pairs-done)
		}
		r.run(w, done, pairs)
	}
	if n%2 == 1 {
		for k, v := range r.results {
			copyElement(w, v, pairs, from[k], at+n-1)
		}
	}
}

// pairsInVector is the number of pairs that the function of neighbours combines at a time.
const pairsInVector = 8

// deinterleave moves neighbours of v, from an element on, to the left and right operands:
// neighbours are combined, so that the order of elements is kept.
func (r *stripReducer) deinterleave(w *worker, k int, v *value, at, to, pairs int64) {
	src := w.addresses[v.id]
	left := w.addresses[r.lhs[k].id]
	right := w.addresses[r.rhs[k].id]
	if v.class.Bytes() == 4 {
		deinterleaveInto(
			elementsAfter[uint32](left, to, pairs),
			elementsAfter[uint32](right, to, pairs),
			elementsAfter[uint32](src, at, 2*pairs),
		)
	} else {
		deinterleaveInto(
			elementsAfter[uint64](left, to, pairs),
			elementsAfter[uint64](right, to, pairs),
			elementsAfter[uint64](src, at, 2*pairs),
		)
	}
}

// elementsAfter are n elements behind the first skip at p.
func elementsAfter[T uint32 | uint64](p unsafe.Pointer, skip, n int64) []T {
	return unsafe.Slice((*T)(p), skip+n)[skip:]
}

// deinterleaveInto splits neighbours of src into left and right.
func deinterleaveInto[T uint32 | uint64](left, right, src []T) {
	for k := range right {
		two := src[:2]
		left[k], right[k] = two[0], two[1]
		src = src[2:]
	}
}

// copyBytes copies bytes.
func copyBytes(dst, src unsafe.Pointer, bytes int64) {
	copy(
		unsafe.Slice((*byte)(dst), bytes),
		unsafe.Slice((*byte)(src), bytes),
	)
}

// copyElement copies element from of src to element at of dst.
func copyElement(w *worker, dst *value, at int64, src *value, from int64) {
	size := dst.class.Bytes()
	copyBytes(
		unsafe.Add(w.addresses[dst.id], at*size),
		unsafe.Add(w.addresses[src.id], from*size),
		size,
	)
}
