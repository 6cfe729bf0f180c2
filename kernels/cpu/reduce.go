package cpu

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/portable"
	"github.com/tilewright/tilewright/kernels/cpu/vector"
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
	case portable.Float32:
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
	case portable.Float64:
		c.accumulate = goReduceStep[float64](f, monoid, op, c)
	case portable.Int32:
		c.accumulate = goReduceStep[int32](f, monoid, op, c)
	case portable.Int64:
		c.accumulate = goReduceStep[int64](f, monoid, op, c)
	}
	if c.accumulate == nil {
		b.l.reject(
			op, "the CPU backend does not reduce %s by %s", op.Instr.Shape.DType, monoid,
		)
	}
}

func goReduceStep[T portable.Number](
	f *reduceLoop, monoid hlo.Opcode, op symtile.Op, c *accumulator,
) step {
	d := op.Instr.Shape.DType
	row := portable.ReduceRow[T](monoid, d)
	into := portable.BinaryOf[T](monoid, d)
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

// reduceByProgram folds with a scalar program: any computation, any number of
// operands.
func (b *block) reduceByProgram(f *reduceLoop, op symtile.Op, c *accumulator) {
	prog, err := portable.CompileScalar(op.Instr.Attrs.ToApply)
	if err != nil {
		b.l.reject(op, "%v", err)
		return
	}
	n := len(c.outs)
	if len(prog.Results) != n || prog.Params != 2*n {
		b.l.reject(
			op, "its computation has %d parameters and %d results for %d operands",
			prog.Params, len(prog.Results), n,
		)
		return
	}
	b.l.scalarRegisters = max(b.l.scalarRegisters, prog.Registers)
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
				prog.Run(w.scalarRegisters)
				for k, r := range prog.Results {
					storeScalar(w, outs[k], to, w.scalarRegisters[r])
				}
				from, to = from+1, to+step
			}
		})
	}
}

// loadScalar and put move one element of any class; floats travel as float64. The
// folding keeps at inside of the value.
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

// jitReduceStep is folded for f32; nil where there is no function for it.
func jitReduceStep(f *reduceLoop, monoid hlo.Opcode, d hlo.DType, out, arg *value) step {
	code, ok := vector.ReduceRoutines()[monoid]
	if !ok || d != hlo.F32 {
		return nil
	}
	return func(w *worker) {
		dst := whole[float32](w, out)
		src := whole[float32](w, arg)
		args := &w.reduceArgs
		f.each(w, func(from, to, n, step int64) {
			at := code[1]
			if step == 0 {
				at = code[0]
			}
			for n > 0 {
				part := min(n, vector.MaxCallLength)
				*args = vector.ReduceArgs{N: part, X: &src[from], Y: &dst[to]}
				at.Call(unsafe.Pointer(args))
				from, n = from+part, n-part
				to += part * step
			}
		})
	}
}
