package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A reduceLoop walks a reduce's operand in row-major order: all elements along
// kept dimensions, those that are there along reduced ones. Dimensions that
// follow each other, both kept or both reduced and not masked, are one.
type reduceLoop struct {
	dims  []reduceDim
	masks []dimMask
}

type reduceDim struct {
	size int64
	kept int64 // stride of the result, 0 along reduced dimensions
	mask int   // −1: nothing is masked
}

func newReduceLoop(b *block, source symtile.Tile, reduced []int64, result symtile.Tile) *reduceLoop {
	f := &reduceLoop{}
	kept := hlo.RowMajor(result.Sizes())
	for d, t := range source {
		size, _ := t.Size.Value()
		next := reduceDim{size: size, mask: -1}
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
		f.dims = []reduceDim{{1, 0, -1}}
	}
	return f
}

func (f *reduceLoop) push(d reduceDim) {
	if d.size == 1 && d.mask < 0 {
		return
	}
	n := len(f.dims)
	if n > 0 && d.mask < 0 {
		out := &f.dims[n-1]
		if out.mask < 0 && out.kept == d.size*d.kept {
			out.size = out.size * d.size
			out.kept = d.kept
			return
		}
	}
	f.dims = append(f.dims, d)
}

// each calls do for every run along the last dimension: its first element in
// the operand and in the result, its length, its step in the result.
func (f *reduceLoop) each(
	w *worker, do func(from, to, n, step int64),
) {
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
	step := f.dims[inner].kept
	for {
		var from, to int64
		for d := range inner {
			from = (from + index[d]) * f.dims[d+1].size
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

func (b *block) reduce(op symtile.Op, c *accumulator) {
	n := len(op.Args) / 2
	for k := range n {
		c.args = append(c.args, materialized(b, op, k))
		c.inits = append(c.inits, b.l.arg(op, n+k))
	}
	f := newReduceLoop(
		b,
		b.l.p.Ops[op.Args[0]].Tile,
		op.Instr.Attrs.Dimensions, op.Tile,
	)
	monoid, ok := op.Instr.Attrs.ToApply.Monoid()
	if !ok || n > 1 {
		b.reduceByProgram(f, op, c)
		return
	}
	c.name = "reduce " + string(monoid)
	switch c.outs[0].class {
	case classF32:
		if op.Instr.Shape.DType == hlo.F32 && b.l.jit {
			c.reduction = &rowReduction{
				loop:   f,
				monoid: monoid,
				arg:    c.args[0],
				out:    c.outs[0],
			}
		}
		c.accumulate = jitReduceStep(
			f, monoid, op.Instr.Shape.DType,
			c.outs[0], c.args[0],
		)
		if c.accumulate == nil {
			c.accumulate = goReduceStep[float32](f, monoid, op, c)
		}
	case classF64:
		c.accumulate = goReduceStep[float64](f, monoid, op, c)
	case classI32:
		c.accumulate = goReduceStep[int32](f, monoid, op, c)
	case classI64:
		c.accumulate = goReduceStep[int64](f, monoid, op, c)
	}
	if c.accumulate == nil {
		b.l.reject(
			op, "the CPU backend does not reduce %s by %s", op.Instr.Shape.DType, monoid,
		)
	}
}

func goReduceStep[T number](
	f *reduceLoop, monoid hlo.Opcode, op symtile.Op, c *accumulator,
) step {
	d := op.Instr.Shape.DType
	row := reduceRow[T](monoid, d)
	into := binary[T](monoid, d)
	if into == nil || row == nil {
		return nil
	}
	out := c.outs[0]
	arg := c.args[0]
	return func(w *worker) {
		dst := whole[T](w, out)
		src := whole[T](w, arg)
		f.each(w, func(from, to, n, step int64) {
			if step == 0 {
				dst[to] = row(dst[to], src[from:from+n])
				return
			}
			x := dst[to : to+n] // kept and innermost: its stride is 1
			into(x, x, src[from:from+n])
		})
	}
}

// reduceRow folds a run into x with four partial results, in a fixed order; nil
// where the operation is not of the type.
func reduceRow[T number](
	monoid hlo.Opcode, d hlo.DType,
) func(x T, row []T) T {
	if hasNumberLoop(monoid, d) {
		switch monoid {
		case hlo.OpAdd:
			return sumRow[T]
		case hlo.OpMultiply:
			return productRow[T]
		case hlo.OpMaximum:
			return maxRow[T]
		case hlo.OpMinimum:
			return minRow[T]
		}
	}
	var row any
	switch classFor[T]() {
	case classI32:
		row = reduceIntegerRow[int32](monoid, d)
	case classI64:
		row = reduceIntegerRow[int64](monoid, d)
	}
	f, _ := row.(func(x T, row []T) T)
	return f
}

// reduceIntegerRow folds by what only integers have: bits, and the order of unsigned
// numbers of 64 bits. Pred adds as or.
func reduceIntegerRow[T integer](
	monoid hlo.Opcode, d hlo.DType,
) func(x T, row []T) T {
	switch {
	case monoid == hlo.OpAnd:
		return func(x T, row []T) T {
			for _, v := range row {
				x &= v
			}
			return x
		}
	case monoid == hlo.OpXor:
		return func(x T, row []T) T {
			for _, v := range row {
				x ^= v
			}
			return x
		}
	case monoid == hlo.OpOr,
		monoid == hlo.OpAdd && d == hlo.Pred:
		return func(x T, row []T) T {
			for _, v := range row {
				x |= v
			}
			return x
		}
	case monoid == hlo.OpMaximum:
		return func(x T, row []T) T {
			for _, v := range row {
				x = T(max(uint64(x), uint64(v)))
			}
			return x
		}
	case monoid == hlo.OpMinimum:
		return func(x T, row []T) T {
			for _, v := range row {
				x = T(min(uint64(x), uint64(v)))
			}
			return x
		}
	}
	return nil
}

func sumRow[T number](x T, row []T) T {
	var a, b, c, d T
	for len(row) >= 4 {
		a += row[0]
		b += row[1]
		c += row[2]
		d += row[3]
		row = row[4:]
	}
	for _, v := range row {
		a += v
	}
	return x + ((a + b) + (c + d))
}

func productRow[T number](x T, row []T) T {
	var a T = 1
	var b T = 1
	var c T = 1
	var d T = 1
	for len(row) >= 4 {
		a *= row[0]
		b *= row[1]
		c *= row[2]
		d *= row[3]
		row = row[4:]
	}
	for _, v := range row {
		a *= v
	}
	return x * ((a * b) * (c * d))
}

func maxRow[T number](x T, row []T) T {
	a := x
	b := x
	c := x
	d := x
	for len(row) >= 4 {
		a = max(a, row[0])
		b = max(b, row[1])
		c = max(c, row[2])
		d = max(d, row[3])
		row = row[4:]
	}
	for _, v := range row {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

func minRow[T number](x T, row []T) T {
	a := x
	b := x
	c := x
	d := x
	for len(row) >= 4 {
		a = min(a, row[0])
		b = min(b, row[1])
		c = min(c, row[2])
		d = min(d, row[3])
		row = row[4:]
	}
	for _, v := range row {
		a = min(a, v)
	}
	return min(a, b, c, d)
}

// reduceByProgram folds with a scalar program: any computation, any number of
// operands.
func (b *block) reduceByProgram(f *reduceLoop, op symtile.Op, c *accumulator) {
	prog, err := compileScalar(op.Instr.Attrs.ToApply)
	if err != nil {
		b.l.reject(op, "%v", err)
		return
	}
	n := len(c.outs)
	if len(prog.results) != n || prog.params != 2*n {
		b.l.reject(
			op, "its computation has %d parameters and %d results for %d operands",
			prog.params, len(prog.results), n,
		)
		return
	}
	b.l.scalarRegisters = max(b.l.scalarRegisters, prog.registers)
	if r := b.stripReducer(op, c); r != nil {
		c.accumulate = r.accumulate(f)
		return
	}
	outs, args := c.outs, c.args
	c.accumulate = func(w *worker) {
		f.each(w, func(from, to, count, step int64) {
			for range count {
				for k := range n {
					w.scalarRegisters[k] = loadScalar(w, outs[k], to)
					w.scalarRegisters[n+k] = loadScalar(
						w, args[k], from,
					)
				}
				prog.run(w.scalarRegisters)
				for k, r := range prog.results {
					storeScalar(w, outs[k], to, w.scalarRegisters[r])
				}
				from, to = from+1, to+step
			}
		})
	}
}

// loadScalar and put move one element of any class; floats travel as float64. The
// folding keeps at inside of the value.
func loadScalar(w *worker, v *value, at int64) scalar {
	p := unsafe.Add(
		w.addresses[v.id], at*classBytes[v.class],
	)
	switch v.class {
	case classF32:
		return scalar{f: float64(*(*float32)(p))}
	case classF64:
		return scalar{f: *(*float64)(p)}
	case classI32:
		return scalar{i: int64(*(*int32)(p))}
	}
	return scalar{i: *(*int64)(p)}
}

func storeScalar(w *worker, v *value, at int64, x scalar) {
	p := unsafe.Add(
		w.addresses[v.id], at*classBytes[v.class],
	)
	switch v.class {
	case classF32:
		*(*float32)(p) = float32(x.f)
	case classF64:
		*(*float64)(p) = x.f
	case classI32:
		*(*int32)(p) = int32(x.i)
	case classI64:
		*(*int64)(p) = x.i
	}
}
