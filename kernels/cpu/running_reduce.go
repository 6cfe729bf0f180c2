package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/kernels/cpu/internal/running"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Cumulative sums, products, maxima and their like reach a backend as a reduce-window
// whose windows are as long as the array, which is padded so that window k has the
// elements up to k, or from k on (jax.lax.cumsum, torch.cumsum). As the reduction of an
// unfold they take n² operations. Where a tile has whole windows, the results are
// computed one from the other instead, and the unfold is not lowered.
//
// A computation of several operations, as log-add-exp is one, has no scan of vectors. Its
// results are computed in the order of a row, an element each of several rows at a time, so
// that a vector has elements of different rows and no step waits for more than the one before.
//
// The windows of a tile need not begin with the array: what lies before the first of
// them is reduced first, so that tile programs share a long row.

// planRunning finds the running reductions of the program.
func (l *lowering) planRunning() {
	for n := range l.p.Ops {
		r := running.Of(l.p, n)
		if r == nil || !r.Fits(l.p, n) {
			continue
		}
		if l.running == nil {
			l.running = map[int]*running.Reduce{}
		}
		l.running[n] = r
	}
}

// args are those of op n: of a running reduction the padded array instead of its
// windows, and nothing instead of an array that is read where it is.
func (l *lowering) args(n int) []int {
	args := l.p.Ops[n].Args
	switch r := l.running[n]; {
	case r == nil:
		return args
	case l.inPlace(r):
		return args[1:]
	default:
		return []int{r.Padded, args[1]}
	}
}

// inPlace reports whether the tile of the array can be read where it is: tile ids
// determine its place, and what lies inside of the dimension is one run.
func (l *lowering) inPlace(r *running.Reduce) bool {
	if !r.OfParameter(l.p) {
		return false
	}
	op := l.p.Ops[r.Array]
	sizes := op.Tile.Sizes()
	for k, d := range op.Tile {
		whole := sizes[k] == op.Instr.Shape.Dims[k]
		if len(l.runtimeVars(d.Offset)) > 0 || strideOf(d) != 1 ||
			k != r.Axis && d.MaskedBelow() ||
			k > r.Axis+1 && (!whole || d.Masked()) {
			return false
		}
	}
	// A column of an array of several is no run.
	inner := op.Instr.Shape.Dims[r.Axis+1:]
	return hlo.Elements(sizes[r.Axis+1:]) > 1 ||
		hlo.Elements(inner) == 1
}

// runningReduce lowers a running reduction.
func (b *block) runningReduce(
	r *running.Reduce, n int, op symtile.Op, c *accumulator,
) {
	c.inits = []*value{b.l.arg(op, 1)}
	c.overwrites = true
	monoid, simple := op.Instr.Attrs.ToApply.Monoid()
	c.name = "running " + string(monoid)
	// An array that is in memory as scratch would have it is neither copied nor padded.
	s := b.runningStep(r, op)
	s.out, s.init = c.outs[0], c.inits[0]
	if b.l.inPlace(r) {
		s.readInPlace(b, r)
	} else {
		op.Args = b.l.args(n)
		s.arg = materialized(b, op, 0)
		c.args = []*value{s.arg}
	}
	if !simple {
		b.runningByProgram(s, op, c)
		return
	}
	switch d := op.Instr.Shape.DType; c.outs[0].class {
	case portable.Float32:
		code := portableScans[float32](monoid, d)
		if scan, ok := vector.Scans()[monoid]; ok &&
			b.l.jit {
			sums, _ := vector.ReduceRoutines(monoid)
			code = vectorScans(code, scan, sums[0])
		}
		c.accumulate = runningStepAs(s, code)
	case portable.Float64:
		c.accumulate = runningStepAs(
			s, portableScans[float64](monoid, d),
		)
	case portable.Int32:
		c.accumulate = runningStepAs(
			s, portableScans[int32](monoid, d),
		)
	case portable.Int64:
		c.accumulate = runningStepAs(
			s, portableScans[int64](monoid, d),
		)
	}
	if c.accumulate == nil {
		b.l.reject(
			op, "the CPU backend does not reduce %s by %s", op.Instr.Shape.DType, monoid,
		)
	}
}

// A runningStep is a running reduction as it runs. Its results are outer times positions
// rows of inner elements. A row of what is reduced is a window's element further than
// the row before.
type runningStep struct {
	backward                bool
	first                   int64 // The last element of the first window.
	outer, positions, inner int64
	valid                   dimMask // The rows that are no padding.
	out, init               *value

	arg   *value           // The padded array, in scratch, or nil.
	array int              // The parameter that is read where it is.
	base  int              // The slot of the place of its first element.
	row   int64            // The elements from a row to the next.
	parts []runningPartDim // Those that are divided in outer parts.
	width *dimMask         // The innermost elements that there are, nil for all.
	wide  int64            // The elements of each of them.
}

// A runningPartDim is a dimension outside of the one that is reduced along.
type runningPartDim struct {
	size, stride int64
	mask         *dimMask // The indices that there are, nil for all.
}

// runningStep is the step over the padded array.
func (b *block) runningStep(
	r *running.Reduce, op symtile.Op,
) runningStep {
	sizes := b.l.p.Ops[r.Padded].Tile.Sizes()
	s := runningStep{
		backward:  r.Backward,
		first:     r.Size - 1,
		outer:     hlo.Elements(sizes[:r.Axis]),
		inner:     hlo.Elements(sizes[r.Axis+1:]),
		positions: op.Tile.Sizes()[r.Axis],
	}
	// The array has as many elements along the dimension, those of the padding masked.
	array := b.l.p.Ops[r.Array].Tile
	s.valid = newDimMask(b, array[r.Axis])
	s.row = s.inner
	s.parts = []runningPartDim{{
		size:   s.outer,
		stride: sizes[r.Axis] * s.inner,
	}}
	return s
}

// readInPlace makes it a step over a parameter.
func (s *runningStep) readInPlace(
	b *block, r *running.Reduce,
) {
	op := b.l.p.Ops[r.Array]
	memory := op.Instr.Shape.Strides()
	base := b.l.p.Space.Ring.Const(0)
	s.array = op.Instr.Attrs.Param
	s.row = memory[r.Axis]
	s.parts = nil
	for k, d := range op.Tile {
		base = base.Add(d.Offset.Scale(memory[k]))
		var mask *dimMask
		if d.Masked() && k != r.Axis {
			m := newDimMask(b, d)
			mask = &m
		}
		size, _ := d.Size.Value()
		switch {
		case k < r.Axis:
			s.parts = append(
				s.parts, runningPartDim{size, memory[k], mask},
			)
		case k == r.Axis+1:
			s.width, s.wide = mask, memory[k]
		}
	}
	s.base = b.slot(base)
}

// place is where a part begins; it is false where the part is outside of the array.
func (s *runningStep) place(
	w *worker, part int64,
) (at int64, ok bool) {
	if s.arg == nil {
		at = w.slots[s.base]
	}
	for k := len(s.parts) - 1; k >= 0; k-- {
		d := &s.parts[k]
		i := part % d.size
		part /= d.size
		at += i * d.stride
		if d.mask != nil {
			if _, hi := d.mask.valid(w); i >= hi {
				return 0, false
			}
		}
	}
	return at, true
}

// elements are what is read.
func runningElements[T portable.Number](
	w *worker, s *runningStep,
) []T {
	if s.arg != nil {
		return whole[T](w, s.arg)
	}
	data := w.in[s.array].Data
	size := int(portable.ClassFor[T]().Bytes())
	return unsafe.Slice(
		(*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/size,
	)
}

// scans is the code of an operation on elements of a class.
type scans[T portable.Number] struct {
	// Reduce is x combined with the elements of a row.
	reduce func(w *worker, x T, row []T) T
	// Forward and backward are portable.Scan.
	forward, backward func(
		w *worker, dst, row []T, x T,
	) T
	// Rows sets dst to the elements of two rows in pairs; dst may be one of them.
	rows func(w *worker, dst, before, row []T)
}

// portableScans are loops in Go; without reduce where there are none.
func portableScans[T portable.Number](
	monoid hlo.Opcode, d hlo.DType,
) (s scans[T]) {
	into := portable.BinaryOf[T](monoid, d)
	reduce := portable.ReduceRow[T](monoid, d)
	forward, backward := portable.ScanRow[T](monoid, d)
	if into == nil || reduce == nil || forward == nil {
		return s
	}
	s.reduce = func(
		_ *worker, x T, row []T,
	) T {
		return reduce(x, row)
	}
	s.forward = func(
		_ *worker, dst, row []T, x T,
	) T {
		return forward(dst, row, x)
	}
	s.backward = func(
		_ *worker, dst, row []T, x T,
	) T {
		return backward(dst, row, x)
	}
	s.rows = func(
		_ *worker, dst, before, row []T,
	) {
		into(dst, before, row)
	}
	return s
}

// vectorScans are machine code, and loops in Go for what is left of a run.
func vectorScans(
	loops scans[float32], scan vector.Scan, reduce amd64.Func,
) (s scans[float32]) {
	s.reduce = func(
		w *worker, x float32, row []float32,
	) float32 {
		args := &w.scanArgs
		args.Carry = x
		for len(row) > 0 {
			part := min(len(row), vector.MaxCallLength)
			w.reduceArgs = vector.ReduceArgs{
				N: int64(part), X: &row[0], Y: &args.Carry,
			}
			reduce.Call(unsafe.Pointer(&w.reduceArgs))
			row = row[part:]
		}
		return args.Carry
	}
	// The carry of a call is that of the next one.
	s.forward = func(
		w *worker, dst, row []float32, x float32,
	) float32 {
		args := &w.scanArgs
		for len(row) >= vector.Lanes {
			part := min(
				len(row)&^(vector.Lanes-1), vector.MaxCallLength,
			)
			*args = vector.ScanArgs{
				N: int64(part), X: &row[0], Y: &dst[0], Carry: x,
			}
			scan.Forward.Call(unsafe.Pointer(args))
			x = args.Carry
			dst, row = dst[part:], row[part:]
		}
		return loops.forward(w, dst, row, x)
	}
	// Backwards, vectors are counted from the end of a row, and its beginning is left.
	s.backward = func(
		w *worker, dst, row []float32, x float32,
	) float32 {
		args := &w.scanArgs
		for len(row) >= vector.Lanes {
			part := min(
				len(row)&^(vector.Lanes-1), vector.MaxCallLength,
			)
			at := len(row) - vector.Lanes
			*args = vector.ScanArgs{
				N: int64(part), X: &row[at], Y: &dst[at], Carry: x,
			}
			scan.Backward.Call(unsafe.Pointer(args))
			x = args.Carry
			dst, row = dst[:len(row)-part], row[:len(row)-part]
		}
		return loops.backward(w, dst, row, x)
	}
	s.rows = func(
		w *worker, dst, before, row []float32,
	) {
		args := &w.scanArgs
		for len(row) > 0 {
			part := min(len(row), vector.MaxCallLength)
			*args = vector.ScanArgs{
				N: int64(part), X: &row[0], Y: &dst[0], Before: &before[0],
			}
			scan.Rows.Call(unsafe.Pointer(args))
			dst, before, row = dst[part:], before[part:], row[part:]
		}
	}
	return s
}

// runningStepAs is the step on elements of a class, nil without code.
func runningStepAs[T portable.Number](
	s runningStep, code scans[T],
) step {
	if code.reduce == nil {
		return nil
	}
	return func(w *worker) {
		src := runningElements[T](w, &s)
		dst := whole[T](w, s.out)
		r := runningRows[T]{step: &s, n: s.inner}
		r.init = first[T](w, s.init)
		r.lo, r.hi = s.valid.valid(w)
		if s.width != nil {
			_, there := s.width.valid(w)
			r.n = there * s.wide
		}
		to := s.positions * s.inner
		for part := range s.outer {
			at, ok := s.place(w, part)
			if ok && r.n > 0 {
				r.at, r.src = at, src
				r.dst = dst[:to]
				code.run(w, &r)
			}
			dst = dst[to:]
		}
	}
}

// runningRows are a part: the rows from lo to hi−1 of what is read, n elements of each.
type runningRows[T portable.Number] struct {
	step       *runningStep
	src, dst   []T
	at, lo, hi int64
	n          int64
	init       T
}

// run computes the results of a part. Those whose windows have padding only are what the
// reduction begins with, those behind the last row what the last one is.
func (c *scans[T]) run(w *worker, r *runningRows[T]) {
	s := r.step
	if s.backward {
		// Row k is the first one of window k.
		end := min(s.positions, r.hi)
		begin := min(r.lo, end)
		r.fill(end, s.positions, r.init)
		c.between(w, r, end, r.hi, begin, end)
		return
	}
	// Row k is the last one of window k − first.
	begin := min(r.lo-s.first, s.positions)
	begin = max(0, begin)
	end := min(s.positions, r.hi-s.first)
	end = max(begin, end)
	r.fill(0, begin, r.init)
	to := min(s.first, r.hi)
	c.between(w, r, r.lo, to, begin, end)
}

// fill sets results.
func (r *runningRows[T]) fill(from, to int64, x T) {
	inner := r.step.inner
	portable.Fill(r.dst[from*inner:to*inner], x)
}

// row is row k of what is read.
func (r *runningRows[T]) row(k int64) []T {
	at := r.at + k*r.step.row
	return r.src[at : at+r.n]
}

// run is rows from … to−1 of what is read, which follow each other; none where to is not
// greater.
func (r *runningRows[T]) run(from, to int64) []T {
	if to <= from {
		return nil
	}
	return r.src[r.at+from : r.at+to]
}

// between reduces rows from … to−1 and then computes results begin … end−1, the last
// of them first where it goes backwards. The results beyond are the one computed last.
func (c *scans[T]) between(
	w *worker, r *runningRows[T], from, to, begin, end int64,
) {
	s := r.step
	if s.inner > 1 {
		c.rowsBetween(w, r, from, to, begin, end)
		return
	}
	// The rows before are in every result; from there on each has one more.
	x := c.reduce(w, r.init, r.run(from, to))
	dst := r.dst[begin:end]
	if s.backward {
		x = c.backward(w, dst, r.run(begin, end), x)
		r.fill(0, begin, x)
		return
	}
	row := r.run(begin+s.first, end+s.first)
	x = c.forward(w, dst, row, x)
	r.fill(end, s.positions, x)
}

// rowsBetween is between for rows of several elements.
func (c *scans[T]) rowsBetween(
	w *worker, r *runningRows[T], from, to, begin, end int64,
) {
	// Result at is that of row at + shift, and the one after it is by further.
	at, by, stop := begin, int64(1), r.step.positions
	shift := r.step.first
	if r.step.backward {
		at, by, stop = end-1, -1, -1
		shift = 0
	}
	if at == stop {
		return
	}
	before := r.result(at)
	portable.Fill(before, r.init)
	for k := from; k < to; k++ {
		c.rows(w, before, before, r.row(k))
	}
	for range end - begin {
		next := r.result(at)
		c.rows(w, next, before, r.row(at+shift))
		before = next
		at += by
	}
	for ; at != stop; at += by {
		copy(r.result(at), before)
	}
}

// result is the elements of result k that there are.
func (r *runningRows[T]) result(k int64) []T {
	at := k * r.step.inner
	return r.dst[at : at+r.n]
}

// runningLanes is the most rows of which a computation combines an element each at a time:
// eight vectors of f32 hide the latency of an exponential and a logarithm, and 64 lines of
// cache, one of each row, are an eighth of a first cache of 32 KiB.
const runningLanes = 64

// runningByProgram lowers a running reduction by a computation that is no single operation.
func (b *block) runningByProgram(s runningStep, op symtile.Op, c *accumulator) {
	c.name = "running computation"
	// Its operands are strips of elements of several rows.
	r := b.pairsReducer(op, c)
	if r == nil {
		return
	}
	switch s.out.class {
	case portable.Float32:
		c.accumulate = runningProgramStep[float32](s, r)
	case portable.Float64:
		c.accumulate = runningProgramStep[float64](s, r)
	case portable.Int32:
		c.accumulate = runningProgramStep[int32](s, r)
	case portable.Int64:
		c.accumulate = runningProgramStep[int64](s, r)
	}
}

// A runningProgram is a running reduction by a computation. A result waits for the one before
// it, so that a strip has elements of several rows: neighbours where what is reduced has
// several elements a row, and else one of each of some parts.
type runningProgram[T portable.Number] struct {
	step     *runningStep
	pairs    *stripReducer
	src, dst []T
	lo, hi   int64 // The rows that are no padding.
	init     T

	lanes    int
	from, to [runningLanes]int64 // Where parts begin in what is read, and their results.
}

// runningProgramStep is the step on elements of a class.
func runningProgramStep[T portable.Number](s runningStep, r *stripReducer) step {
	strip := min(r.strip, runningLanes)
	return func(w *worker) {
		x := runningProgram[T]{step: &s, pairs: r}
		x.src, x.dst = runningElements[T](w, &s), whole[T](w, s.out)
		x.init = first[T](w, s.init)
		x.lo, x.hi = s.valid.valid(w)
		n := s.inner
		if s.width != nil {
			_, there := s.width.valid(w)
			n = there * s.wide
		}
		for part := range s.outer {
			at, ok := s.place(w, part)
			to := part * s.positions * s.inner
			// Neighbours in memory are lanes beside each other.
			for k := int64(0); ok && k < n; k++ {
				x.from[x.lanes], x.to[x.lanes] = at+k, to+k
				if x.lanes++; int64(x.lanes) == strip {
					x.run(w)
				}
			}
		}
		x.run(w)
	}
}

// run computes the results of the lanes that there are, and leaves none. They are those of
// scans.run.
func (x *runningProgram[T]) run(w *worker) {
	s := x.step
	if x.lanes == 0 {
		return
	}
	// The elements that come first are the left operands.
	carry, next := x.pairs.lhs[0], x.pairs.rhs[0]
	if s.backward {
		carry, next = next, carry
	}
	portable.Fill(whole[T](w, carry)[:x.lanes], x.init)
	// Row k is the last one of window k − first, or backwards the first one of window k.
	at, by := int64(0), int64(1)
	row, shift := x.lo, s.first
	if s.backward {
		at, by = s.positions-1, -1
		row, shift = x.hi-1, 0
	}
	for ; at >= 0 && at < s.positions; at += by {
		// Each window has the rows up to its own.
		for ; row >= x.lo && row < x.hi && (at+shift-row)*by >= 0; row += by {
			x.combine(w, carry, next, row)
		}
		// Before the first row and behind the last one it is what it was.
		held := whole[T](w, carry)
		for l := range x.lanes {
			x.dst[x.to[l]+at*s.inner] = held[l]
		}
	}
	x.lanes = 0
}

// combine combines what came before with the elements of a row.
func (x *runningProgram[T]) combine(w *worker, carry, next *value, row int64) {
	elements := whole[T](w, next)
	for l := range x.lanes {
		elements[l] = x.src[x.from[l]+row*x.step.row]
	}
	n := int64(x.lanes)
	x.pairs.run(w, 0, n)
	copy(whole[T](w, carry)[:n], whole[T](w, x.pairs.results[0]))
}
