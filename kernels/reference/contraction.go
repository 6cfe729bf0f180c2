package reference

// Contractions are most of the time of the reference on large fusions. Blocks of
// results are computed at once, which keeps several independent sums in registers;
// the terms of each sum stay in their order, so that results do not depend on the
// blocks.

// A contraction has the extents of a dot whose operands are laid out as [batch,
// m, k] and [batch, n, k]; its result is [batch, m, n].
type contraction struct{ batch, m, n, k int64 }

// Rows and columns of results that are summed at the same time, so that the
// processor has several sums to add to; and columns whose operand stays in the
// second cache while the rows go by.
const (
	// Rows and columns of results that are summed at the same time, so that the
	// processor has several independent sums.
	rowsAtOnce    = 2
	columnsAtOnce = 4
	// Columns whose operand stays in the second level of cache during all rows.
	columnPanel = 16
)

// contract computes every result as one sum from the first product to the last;
// only the order of the results differs from that of plain loops. Rows are
// divided among the cores. Within a core the columns are taken in panels, whose
// operand is read from the second level of cache for all rows but the first; a
// panel is computed in blocks of two rows and four columns, whose eight sums
// are independent, so that the processor need not wait for one addition before
// the next.
func contract[T int64 | float64](e *evaluation, c contraction, out, left, right []T) {
	for b := range c.batch {
		o := out[b*c.m*c.n : (b+1)*c.m*c.n]
		l := left[b*c.m*c.k : (b+1)*c.m*c.k]
		r := right[b*c.n*c.k : (b+1)*c.n*c.k]
		e.parallel(c.m, c.n*
			max(1, c.k), func(lo, hi int64) {
			for y := int64(0); y < c.n; y += columnPanel {
				e.look()
				contractPanel(c, o, l, r, [2]int64{lo, hi}, [2]int64{
					y, min(y+columnPanel, c.n),
				})
			}
		})
	}
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
	for x := rows[0]; x < rows[1]; x += rowsAtOnce {
		for y := columns[0]; y < columns[1]; y += columnsAtOnce {
			if x+rowsAtOnce <= rows[1] &&
				y+columnsAtOnce <= columns[1] {
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
				continue
			}
			for u := x; u < min(x+rowsAtOnce, rows[1]); u++ {
				for v := y; v < min(y+columnsAtOnce, columns[1]); v++ {
					out[u*c.n+v] = sumProducts(
						line(left, u), line(right, v),
					)
				}
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
