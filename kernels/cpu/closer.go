package cpu

import (
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A closer is lowered in three parts: initialise before its loop, accumulate
// at the end of every iteration, finish after it. Without a loop the three
// follow each other.

func (v *level) initialise(n int) {
	op := v.l.p.Ops[n]
	if v.l.err != nil {
		return
	}
	for k, s := range v.l.slots[n] {
		switch {
		case op.Code == "dot":
			v.clear(s)
		default:
			v.fill(s, v.l.slots[op.Args[len(op.Args)/2+k]][0])
		}
	}
}

func (v *level) clear(s slot) {
	switch s.class {
	case classF32:
		v.add(func(w *worker) { zero(view[float32](w, s)) })
	case classF64:
		v.add(func(w *worker) { zero(view[float64](w, s)) })
	case classInt:
		v.add(func(w *worker) { zero(view[int64](w, s)) })
	}
}

func (v *level) fill(s, value slot) {
	switch s.class {
	case classF32:
		v.add(func(w *worker) { spread(view[float32](w, s), view[float32](w, value)[0]) })
	case classF64:
		v.add(func(w *worker) { spread(view[float64](w, s), view[float64](w, value)[0]) })
	case classInt:
		v.add(func(w *worker) { spread(view[int64](w, s), view[int64](w, value)[0]) })
	}
}

func spread[T number](dst []T, x T) {
	for k := range dst {
		dst[k] = x
	}
}

// finish rounds to the element type once the sum is complete.
func (v *level) finish(n int) {
	op := v.l.p.Ops[n]
	if v.l.err != nil {
		return
	}
	for k, s := range v.l.slots[n] {
		d := op.Instr.Shape.DType
		if d == hlo.Tuple {
			d = op.Instr.Shape.Tuple[k].DType
		}
		v.rounding(s, d)
		if s.class == classInt && d.Bits() < 64 {
			v.add(func(w *worker) {
				x := view[int64](w, s)
				for k, y := range x {
					x[k] = kernels.WrapInt(d, y)
				}
			})
		}
	}
}

func (v *level) accumulate(n int) {
	op := v.l.p.Ops[n]
	if v.l.err != nil {
		return
	}
	if op.Code == "dot" {
		v.dot(n, op)
		return
	}
	v.reduce(n, op)
}

// A folding walks the unmasked elements of a reduce's operand along the
// reduced dimensions and all elements along the others.
type folding struct {
	source box
	kept   []int64 // strides of the result, 0 along reduced dimensions
}

// each calls f for every run along the last dimension: from its first element
// in the operand and in the result, n elements, step in the result.
func (f *folding) each(w *worker, do func(from, to, n, step int64)) {
	rank := len(f.source.sizes)
	var lo, hi, index [maxRank]int64
	for d := range rank {
		lo[d], hi[d] = 0, f.source.sizes[d]
		if f.kept[d] < 0 {
			lo[d], hi[d] = f.source.span(w, d)
		}
		if lo[d] >= hi[d] {
			return
		}
		index[d] = lo[d]
	}
	inner := rank - 1
	for {
		var from, to int64
		for d := range inner {
			from = (from + index[d]) * f.source.sizes[d+1]
			to += index[d] * max(0, f.kept[d])
		}
		step := max(0, f.kept[inner])
		do(from+lo[inner], to+lo[inner]*step, hi[inner]-lo[inner], step)
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

func (v *level) reduce(n int, op symtile.Op) {
	f := &folding{source: v.box(v.l.p.Ops[op.Args[0]].Tile), kept: make([]int64, len(v.l.p.Ops[op.Args[0]].Tile))}
	kept := rowMajor(op.Tile.Sizes())
	for d := range f.kept {
		if f.kept[d] = -1; indexOf(op.Instr.Attrs.Dimensions, d) < 0 {
			f.kept[d], kept = kept[0], kept[1:]
		}
	}
	out := v.l.slots[n]
	if monoid, ok := kernels.Monoid(op.Instr.Attrs.ToApply); ok && len(out) == 1 {
		arg := v.l.slots[op.Args[0]][0]
		switch out[0].class {
		case classF32:
			reduceAs[float32](v, f, monoid, op, out[0], arg)
		case classF64:
			reduceAs[float64](v, f, monoid, op, out[0], arg)
		case classInt:
			reduceAs[int64](v, f, monoid, op, out[0], arg)
		}
		return
	}
	v.reduceByProgram(f, op, out)
}

func reduceAs[T number](v *level, f *folding, monoid hlo.Opcode, op symtile.Op, out, arg slot) {
	row, into := foldRow[T](monoid, op.Instr.Shape.DType), binary[T](monoid, op.Instr.Shape.DType)
	if into == nil {
		v.l.reject(op, "no loop for %s", monoid)
		return
	}
	v.add(func(w *worker) {
		dst, src := view[T](w, out), view[T](w, arg)
		f.each(w, func(from, to, n, step int64) {
			if step == 0 {
				dst[to] = row(dst[to], src[from:from+n])
				return
			}
			x := dst[to : to+n] // kept and innermost: its stride is 1
			into(x, x, src[from:from+n])
		})
	})
}

// foldRow folds a contiguous run into x. Sums keep four partial sums, in a
// fixed order.
func foldRow[T number](monoid hlo.Opcode, d hlo.DType) func(x T, row []T) T {
	switch monoid {
	case "add":
		if d == hlo.Pred {
			break
		}
		return sumRow[T]
	case "maximum":
		if d == hlo.U64 {
			break
		}
		return func(x T, row []T) T {
			for _, v := range row {
				x = max(x, v)
			}
			return x
		}
	case "minimum":
		if d == hlo.U64 {
			break
		}
		return func(x T, row []T) T {
			for _, v := range row {
				x = min(x, v)
			}
			return x
		}
	}
	f := binary[T](monoid, d)
	return func(x T, row []T) T {
		acc := [1]T{x}
		for k := range row {
			f(acc[:], acc[:], row[k:k+1])
		}
		return acc[0]
	}
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

// dot packs both operands as [batch][free][contracting] and [batch][contracting][free],
// with zeros where the contracting dimensions are masked, and multiplies.
func (v *level) dot(n int, op symtile.Op) {
	out := v.l.slots[n][0]
	switch out.class {
	case classF32:
		dotAs[float32](v, op, out)
	case classF64:
		dotAs[float64](v, op, out)
	case classInt:
		dotAs[int64](v, op, out)
	}
}

func dotAs[T number](v *level, op symtile.Op, out slot) {
	a := op.Instr.Attrs
	l, r := v.l.p.Ops[op.Args[0]].Tile, v.l.p.Ops[op.Args[1]].Tile
	left := packing[T](v, op.Args[0], out.class, [][]int64{a.LHSBatch, others(len(l), a.LHSBatch, a.LHSContract), a.LHSContract}, a.LHSContract)
	right := packing[T](v, op.Args[1], out.class, [][]int64{a.RHSBatch, a.RHSContract, others(len(r), a.RHSBatch, a.RHSContract)}, a.RHSContract)
	batch, m, k := left.extents[0], left.extents[1], left.extents[2]
	n := right.extents[2]
	v.add(func(w *worker) {
		left.pack(w)
		right.pack(w)
		x, y, z := view[T](w, left.slot), view[T](w, right.slot), view[T](w, out)
		for b := range batch {
			multiply(z[b*m*n:(b+1)*m*n], x[b*m*k:(b+1)*m*k], y[b*k*n:(b+1)*k*n], m, n, k)
		}
	})
}

func others(rank int, taken ...[]int64) []int64 {
	var dims []int64
	for d := range int64(rank) {
		free := true
		for _, t := range taken {
			free = free && indexOf(t, int(d)) < 0
		}
		if free {
			dims = append(dims, d)
		}
	}
	return dims
}

// A packed operand of a dot.
type packed struct {
	slot    slot
	extents [3]int64
	pack    func(w *worker)
}

// packing arranges the tile of op arg in the order of parts. Where that is the
// order it has and nothing can be masked, it is used in place.
func packing[T number](v *level, arg int, want class, parts [][]int64, contract []int64) packed {
	tile, from := v.l.p.Ops[arg].Tile, v.l.slots[arg][0]
	var order []int64
	p := packed{extents: [3]int64{1, 1, 1}}
	sizes := tile.Sizes()
	for k, dims := range parts {
		for _, d := range dims {
			order = append(order, d)
			p.extents[k] *= sizes[d]
		}
	}
	masked := false
	for _, d := range contract {
		masked = masked || tile[d].Masked()
	}
	inOrder := true
	for k, d := range order {
		inOrder = inOrder && int64(k) == d
	}
	if inOrder && !masked && from.class == want {
		p.slot, p.pack = from, func(*worker) {}
		return p
	}
	p.slot = v.l.alloc(want, product(sizes))
	g := &gather{sizes: make([]int64, len(order)), strides: make([]int64, len(order))}
	for k, d := range order {
		g.sizes[k], g.strides[k] = sizes[d], rowMajor(sizes)[d]
	}
	copyTile := packFrom[T](g, p.slot, from)
	if !masked {
		p.pack = copyTile
		return p
	}
	source := v.box(tile)
	outer := rowMajor(g.sizes)
	p.pack = func(w *worker) {
		copyTile(w)
		x := view[T](w, p.slot)
		for k, d := range order {
			if indexOf(contract, int(d)) < 0 {
				continue
			}
			lo, hi := source.span(w, int(d))
			blank(x, g.sizes[k], outer[k], 0, lo)
			blank(x, g.sizes[k], outer[k], hi, g.sizes[k])
		}
	}
	return p
}

// packFrom gathers from the operand's scratch, converting when its type differs.
func packFrom[T number](g *gather, to, from slot) func(w *worker) {
	switch {
	case from.class == to.class:
		return func(w *worker) { run(g, view[T](w, to), view[T](w, from)) }
	case from.class == classF32:
		return func(w *worker) { runAs(g, view[T](w, to), view[float32](w, from)) }
	case from.class == classF64:
		return func(w *worker) { runAs(g, view[T](w, to), view[float64](w, from)) }
	}
	return func(w *worker) { runAs(g, view[T](w, to), view[int64](w, from)) }
}

// runAs is run between scratch types, element by element.
func runAs[T, S number](g *gather, dst []T, src []S) {
	var index [maxRank]int64
	at := g.start
	for k := range dst {
		dst[k] = T(src[at])
		for d := len(g.sizes) - 1; d >= 0; d-- {
			index[d]++
			at += g.strides[d]
			if index[d] < g.sizes[d] {
				break
			}
			at -= index[d] * g.strides[d]
			index[d] = 0
		}
	}
}

// blank zeroes elements lo … hi−1 of a dimension of size and stride.
func blank[T number](x []T, size, stride, lo, hi int64) {
	if lo >= hi {
		return
	}
	for row := x; len(row) > 0; row = row[size*stride:] {
		zero(row[lo*stride : hi*stride])
	}
}

// multiply adds x·y to z, m×k times k×n, four rows at a time.
func multiply[T number](z, x, y []T, m, n, k int64) {
	i := int64(0)
	for ; i+4 <= m; i += 4 {
		z0, z1, z2, z3 := z[i*n:(i+1)*n], z[(i+1)*n:(i+2)*n], z[(i+2)*n:(i+3)*n], z[(i+3)*n:(i+4)*n]
		for p := range k {
			a, b, c, d := x[i*k+p], x[(i+1)*k+p], x[(i+2)*k+p], x[(i+3)*k+p]
			row := y[p*n : (p+1)*n]
			z0, z1, z2, z3 = z0[:len(row)], z1[:len(row)], z2[:len(row)], z3[:len(row)]
			for j, v := range row {
				z0[j] += a * v
				z1[j] += b * v
				z2[j] += c * v
				z3[j] += d * v
			}
		}
	}
	for ; i < m; i++ {
		zi := z[i*n : (i+1)*n]
		for p := range k {
			a := x[i*k+p]
			for j, v := range y[p*n : (p+1)*n] {
				zi[j] += a * v
			}
		}
	}
}

// reduceByProgram folds with a scalar program: any computation, any number of
// operands.
func (v *level) reduceByProgram(f *folding, op symtile.Op, out []slot) {
	prog, err := compileScalar(op.Instr.Attrs.ToApply)
	if err != nil {
		v.l.reject(op, "%v", err)
		return
	}
	v.l.scalars = max(v.l.scalars, prog.registers)
	n := len(out)
	args := make([]slot, n)
	for k := range args {
		args[k] = v.l.slots[op.Args[k]][0]
	}
	v.add(func(w *worker) {
		f.each(w, func(from, to, count, step int64) {
			for range count {
				for k := range n {
					w.regs.load(k, get(w, out[k], to))
					w.regs.load(n+k, get(w, args[k], from))
				}
				prog.run(&w.regs)
				for k, r := range prog.results {
					put(w, out[k], to, w.regs.scalars[r])
				}
				from, to = from+1, to+step
			}
		})
	})
}

// get and put move one element of any class; floats travel as float64.
func get(w *worker, s slot, at int64) scalar {
	switch s.class {
	case classF32:
		return scalar{f: float64(w.f32[s.at+at])}
	case classF64:
		return scalar{f: w.f64[s.at+at]}
	}
	return scalar{i: w.ints[s.at+at]}
}

func put(w *worker, s slot, at int64, x scalar) {
	switch s.class {
	case classF32:
		w.f32[s.at+at] = float32(x.f)
	case classF64:
		w.f64[s.at+at] = x.f
	case classInt:
		w.ints[s.at+at] = x.i
	}
}
