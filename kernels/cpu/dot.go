package cpu

import (
	"slices"

	"github.com/tilewright/tilewright/symtile"
)

// dot brings both operands to [batch][m][k] and [batch][k][n], with zeros where
// contracting dimensions are masked, and multiplies.
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
	left := packing[T](b, op, 0, c, a.LHSContract, a.LHSBatch, others(rank(0), a.LHSBatch, a.LHSContract), a.LHSContract)
	right := packing[T](b, op, 1, c, a.RHSContract, a.RHSBatch, a.RHSContract, others(rank(1), a.RHSBatch, a.RHSContract))
	batch, m, k, n := left.extents[0], left.extents[1], left.extents[2], right.extents[2]
	out := c.outs[0]
	c.accumulate = func(w *worker) {
		if left.pack != nil {
			left.pack(w)
		}
		if right.pack != nil {
			right.pack(w)
		}
		x, y, z := whole[T](w, left.v), whole[T](w, right.v), whole[T](w, out)
		for i := range batch {
			multiply(z[i*m*n:(i+1)*m*n], x[i*m*k:(i+1)*m*k], y[i*k*n:(i+1)*k*n], int(m), int(n), int(k))
		}
	}
}

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

// A packed operand of a dot.
type packed struct {
	v       *value
	extents [3]int64
	pack    step // nil: the operand is used as it is
}

// packing arranges the tile of argument k in the order of parts. Where that is
// the order it has and masked elements are zeros, it is used as it is.
func packing[T number](b *block, op symtile.Op, k int, c *closer, contract []int64, parts ...[]int64) packed {
	source := b.l.p.Ops[op.Args[k]]
	from := everywhere(b, op, k)
	c.full = append(c.full, from)
	p := packed{extents: [3]int64{1, 1, 1}}
	sizes := source.Tile.Sizes()
	order := slices.Concat(parts...)
	for n, dims := range parts {
		for _, d := range dims {
			p.extents[n] *= sizes[d]
		}
	}
	var masked []int64
	for _, d := range contract {
		if source.Tile[d].Masked() && source.Code != "parameter" { // loads leave zeros
			masked = append(masked, d)
		}
	}
	g := arranging(sizes, order)
	if g.identity() && masked == nil && from.class == classFor[T]() {
		p.v = from
		return p
	}
	p.v = b.l.value(from.name+".packed", classFor[T](), op.Args[k], product(sizes))
	c.temps = append(c.temps, p.v)
	copyTile := packFrom[T](g, p.v, from)
	blanks := blanking[T](b, p.v, source.Tile, order, masked)
	p.pack = func(w *worker) {
		copyTile(w)
		for _, f := range blanks {
			f(w)
		}
	}
	return p
}

// arranging gathers a tile of sizes into the order.
func arranging(sizes, order []int64) *gather {
	to, strides := make([]int64, len(order)), make([]int64, len(order))
	for k, d := range order {
		to[k], strides[k] = sizes[d], rowMajor(sizes)[d]
	}
	return newGather(to, strides, 0)
}

// packFrom gathers from the operand, converting when its class differs.
func packFrom[T number](g *gather, to, from *value) step {
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

// multiply adds x·y to z, m×k times k×n: two rows of z and four terms of their
// sums at a time, so that z is read and written once for eight products.
func multiply[T number](z, x, y []T, m, n, k int) {
	i := 0
	for ; i+2 <= m; i += 2 {
		multiplyRows(z[i*n:(i+1)*n], z[(i+1)*n:(i+2)*n], x[i*k:(i+1)*k], x[(i+1)*k:(i+2)*k], y, n)
	}
	if i < m {
		multiplyRow(z[i*n:(i+1)*n], x[i*k:(i+1)*k], y, n)
	}
}

func multiplyRows[T number](z0, z1, x0, x1, y []T, n int) {
	x1 = x1[:len(x0)]
	p := 0
	for ; p+4 <= len(x0); p += 4 {
		a0, a1, a2, a3 := x0[p], x0[p+1], x0[p+2], x0[p+3]
		b0, b1, b2, b3 := x1[p], x1[p+1], x1[p+2], x1[p+3]
		y0 := y[p*n : (p+1)*n]
		y1, y2, y3 := y[(p+1)*n:][:len(y0)], y[(p+2)*n:][:len(y0)], y[(p+3)*n:][:len(y0)]
		z0, z1 = z0[:len(y0)], z1[:len(y0)]
		for j, v := range y0 {
			u, w, t := y1[j], y2[j], y3[j]
			z0[j] += a0*v + a1*u + a2*w + a3*t
			z1[j] += b0*v + b1*u + b2*w + b3*t
		}
	}
	for ; p < len(x0); p++ {
		a, b := x0[p], x1[p]
		row := y[p*n : (p+1)*n]
		z0, z1 = z0[:len(row)], z1[:len(row)]
		for j, v := range row {
			z0[j] += a * v
			z1[j] += b * v
		}
	}
}

func multiplyRow[T number](z, x, y []T, n int) {
	p := 0
	for ; p+4 <= len(x); p += 4 {
		a0, a1, a2, a3 := x[p], x[p+1], x[p+2], x[p+3]
		y0 := y[p*n : (p+1)*n]
		y1, y2, y3 := y[(p+1)*n:][:len(y0)], y[(p+2)*n:][:len(y0)], y[(p+3)*n:][:len(y0)]
		z = z[:len(y0)]
		for j, v := range y0 {
			z[j] += a0*v + a1*y1[j] + a2*y2[j] + a3*y3[j]
		}
	}
	for ; p < len(x); p++ {
		a := x[p]
		row := y[p*n : (p+1)*n]
		z = z[:len(row)]
		for j, v := range row {
			z[j] += a * v
		}
	}
}
