package reference

import "github.com/tilewright/tilewright/kernels/reference/internal/products"

// Contractions are most of the time of the reference on large fusions. Blocks of
// results are computed at once, which keeps several independent sums in registers;
// the terms of each sum stay in their order, so that results do not depend on the
// blocks.

// A contraction has the extents of a dot whose operands are laid out as [batch,
// m, k] and [batch, n, k]; its result is [batch, m, n].
type contraction struct{ batch, m, n, k int64 }

const (
	// Rows and columns of results that are summed at the same time, so that the
	// processor has several independent sums.
	rowsAtOnce    = 2
	columnsAtOnce = 4
	// Columns whose operand stays in the second level of cache during all rows, and rows
	// between two looks at the context.
	columnPanel = 16
	rowPanel    = 16
)

// contract computes every result as one sum from the first product to the last;
// only the order of the results differs from that of plain loops. Rows of all batches
// are divided among the cores. Within a core the columns are taken in panels, whose
// operand is read from the second level of cache for all rows but the first.
func contract[T int64 | float64](
	e *evaluation, c contraction, out, left, right []T,
) {
	c.divide(func(batch, lo, hi int64) {
		o := matrixOf(out, batch, c.m*c.n)
		l := matrixOf(left, batch, c.m*c.k)
		r := matrixOf(right, batch, c.n*c.k)
		for y := int64(0); y < c.n; y += columnPanel {
			columns := [2]int64{y, min(y+columnPanel, c.n)}
			for x := lo; x < hi; x += rowPanel {
				e.look()
				rows := [2]int64{x, min(x+rowPanel, hi)}
				contractPanel(c, o, l, r, rows, columns)
			}
		}
	})
}

// matrixOf is one of several matrices of a size.
func matrixOf[T any](all []T, batch, size int64) []T {
	return all[batch*size:][:size]
}

// divide divides the rows of all batches of a contraction among the cores, and calls do
// for rows lo … hi−1 of a batch.
func (c contraction) divide(do func(batch, lo, hi int64)) {
	each := c.n * max(1, c.k)
	Parallel(c.batch*c.m, each, func(lo, hi int64) {
		for lo < hi {
			batch, row := lo/c.m, lo%c.m
			last := min(c.m, row+hi-lo)
			do(batch, row, last)
			lo += last - row
		}
	})
}

// contractFloats is contract in vector registers where the processor has code for
// them: with the same bits, in a tenth of the time. The operand of some columns is packed
// once for all rows that a core computes, so that this takes little of the time unless
// there are few rows.
func contractFloats(
	e *evaluation, c contraction, out, left, right []float64,
) {
	few := c.m < products.Rows/2 // a block would be mostly zeros
	if few || !products.Fast() {
		contract(e, c, out, left, right)
		return
	}
	c.divide(func(batch, lo, hi int64) {
		b := blocks{
			contraction: c,

			out:    matrixOf(out, batch, c.m*c.n),
			left:   matrixOf(left, batch, c.m*c.k),
			packed: make([]float64, products.Columns*c.k),
		}
		b.multiply(e, matrixOf(right, batch, c.n*c.k), lo, hi)
	})
}

// blocks are a contraction of one batch whose results are computed block by block.
type blocks struct {
	contraction
	out, left []float64
	// The operand of the columns of a block.
	packed []float64
	// Rows of the left operand, where there are fewer than a block has.
	few []float64
}

// multiply computes rows lo … hi−1 of all columns, whose operand is right.
func (b *blocks) multiply(
	e *evaluation, right []float64, lo, hi int64,
) {
	for y := int64(0); y < b.n; y += products.Columns {
		operand := right[y*b.k:]
		products.Pack(b.packed, operand, int(b.k))
		b.columns(e, lo, hi, y)
	}
}

// columns computes rows lo … hi−1 of the columns from y on, whose operand is packed. A
// block may have more rows and columns than there are; what is left of them is not
// stored.
func (b *blocks) columns(e *evaluation, lo, hi, y int64) {
	var sums products.Block
	n := min(products.Columns, b.n-y)
	for x := lo; x < hi; x += products.Rows {
		e.look()
		sums.Sum(b.rows(x), b.packed, int(b.k))
		for row := range min(products.Rows, hi-x) {
			to := b.out[(x+row)*b.n+y:]
			copy(to[:n], sums[row*products.Columns:])
		}
	}
}

// rows are those of the left operand that a block from x on is computed from. Where there
// are fewer, the others are zeros.
func (b *blocks) rows(x int64) []float64 {
	rest := b.left[x*b.k:]
	if int64(len(rest)) >= products.Rows*b.k {
		return rest
	}
	if b.few == nil {
		b.few = make([]float64, products.Rows*b.k)
	}
	copy(b.few, rest)
	return b.few
}

// contractPanel computes the results of a range of rows and a range of columns,
// in blocks where there is room for them.
func contractPanel[T int64 | float64](
	c contraction, out, left, right []T,
	rows, columns [2]int64,
) {
	line := func(a []T, n int64) []T {
		return a[n*c.k : (n+1)*c.k]
	}
	for y := columns[0]; y < columns[1]; y += columnsAtOnce {
		x := rows[0]
		whole := y+columnsAtOnce <= columns[1]
		for ; whole && x+rowsAtOnce <= rows[1]; x += rowsAtOnce {
			sums := sumBlock(
				line(left, x),
				line(left, x+1),
				line(right, y),
				line(right, y+1),
				line(right, y+2),
				line(right, y+3),
			)
			copy(out[x*c.n+y:], sums[:columnsAtOnce])
			copy(out[(x+1)*c.n+y:], sums[columnsAtOnce:])
		}
		for ; whole && x < rows[1]; x++ {
			sums := sumLines(
				line(left, x),
				line(right, y),
				line(right, y+1),
				line(right, y+2),
				line(right, y+3),
			)
			copy(out[x*c.n+y:], sums[:])
		}
		last := min(y+columnsAtOnce, columns[1])
		for ; x < rows[1]; x++ {
			for v := y; v < last; v++ {
				out[x*c.n+v] = sumProducts(
					line(left, x),
					line(right, v),
				)
			}
		}
	}
}

// sumBlock is the sums of products of two rows with four columns.
func sumBlock[T int64 | float64](
	p, q, a, b, c, d []T,
) [rowsAtOnce * columnsAtOnce]T {
	var pa, pb, pc, pd, qa, qb, qc, qd T
	q = q[:len(p)]
	a = a[:len(p)]
	b = b[:len(p)]
	c = c[:len(p)]
	d = d[:len(p)]
	for k, x := range p {
		y := q[k]
		pa += x * a[k]
		qa += y * a[k]
		pb += x * b[k]
		qb += y * b[k]
		pc += x * c[k]
		qc += y * c[k]
		pd += x * d[k]
		qd += y * d[k]
	}
	return [...]T{pa, pb, pc, pd, qa, qb, qc, qd}
}

// sumLines are the sums of the products of a vector with each of four, which may be longer.
func sumLines[T int64 | float64](x, a, b, c, d []T) [featuresAtOnce]T {
	var ofA, ofB, ofC, ofD T
	a = a[:len(x)]
	b = b[:len(x)]
	c = c[:len(x)]
	d = d[:len(x)]
	for k, v := range x {
		ofA += v * a[k]
		ofB += v * b[k]
		ofC += v * c[k]
		ofD += v * d[k]
	}
	return [...]T{ofA, ofB, ofC, ofD}
}

// sumProducts is the sum of the products of two vectors; y may be longer.
func sumProducts[T int64 | float64](x, y []T) T {
	var sum T
	y = y[:len(x)]
	for k, v := range x {
		sum += v * y[k]
	}
	return sum
}
