package gemm

// The block of a product in Go: terms and columns.
const (
	plainTerms   = 64
	plainColumns = 64
)

// multiplyPlain is Multiply in Go: two rows of c and four terms of their sums
// at a time, so that c is read and written once for eight products.
func multiplyPlain[T Element](x Product[T], scratch []T) {
	c := x.C
	a := x.A
	b := x.B
	m := x.M
	n := x.N
	k := x.K
	if x.Fresh {
		x.clear()
	}
	for p := 0; p < k; p += plainTerms {
		terms := min(plainTerms, k-p)
		for j := 0; j < n; j += plainColumns {
			columns := min(plainColumns, n-j)
			y := Matrix[T]{
				b.Data[p*b.Row+j*b.Col:],
				b.Row,
				b.Col,
			}
			if b.Col != 1 {
				y = packRows(y, terms, columns, scratch)
			}
			for i := 0; i < m; i += 2 {
				x := Matrix[T]{
					a.Data[i*a.Row+p*a.Col:],
					a.Row,
					a.Col,
				}
				z0 := c.Data[i*c.Row+j:][:columns]
				if i+1 == m {
					plainRow(z0, x, y, terms)
					continue
				}
				plainRows(
					z0,
					c.Data[(i+1)*c.Row+j:][:columns],
					x, y, terms,
				)
			}
		}
	}
}

// packRows copies a matrix to rows of n elements in to.
func packRows[T Element](
	from Matrix[T], m, n int, to []T,
) Matrix[T] {
	for i := range m {
		row := to[i*n : (i+1)*n]
		at := i * from.Row
		for j := range row {
			row[j] = from.Data[at]
			at += from.Col
		}
	}
	return Dense(to, n)
}

// plainRows adds the product of two rows of x and k rows of y to two rows of
// the result.
func plainRows[T Element](
	z0, z1 []T, x, y Matrix[T], k int,
) {
	p := 0
	for ; p+4 <= k; p += 4 {
		at := p * x.Col
		to := x.Row + p*x.Col
		a0 := x.Data[at]
		a1 := x.Data[at+x.Col]
		a2 := x.Data[at+2*x.Col]
		a3 := x.Data[at+3*x.Col]
		b0 := x.Data[to]
		b1 := x.Data[to+x.Col]
		b2 := x.Data[to+2*x.Col]
		b3 := x.Data[to+3*x.Col]
		y0 := y.Data[p*y.Row:][:len(z0)]
		y1 := y.Data[(p+1)*y.Row:][:len(y0)]
		y2 := y.Data[(p+2)*y.Row:][:len(y0)]
		y3 := y.Data[(p+3)*y.Row:][:len(y0)]
		z0 := z0[:len(y0)]
		z1 := z1[:len(y0)]
		for j, v := range y0 {
			u := y1[j]
			w := y2[j]
			t := y3[j]
			z0[j] = z0[j] + a0*v + a1*u + a2*w + a3*t
			z1[j] = z1[j] + b0*v + b1*u + b2*w + b3*t
		}
	}
	for ; p < k; p++ {
		a := x.Data[p*x.Col]
		b := x.Data[x.Row+p*x.Col]
		row := y.Data[p*y.Row:][:len(z0)]
		z0 := z0[:len(row)]
		z1 := z1[:len(row)]
		for j, v := range row {
			z0[j] += a * v
			z1[j] += b * v
		}
	}
}

// plainRow is plainRows for one row.
func plainRow[T Element](z []T, x, y Matrix[T], k int) {
	p := 0
	for ; p+4 <= k; p += 4 {
		at := p * x.Col
		a0 := x.Data[at]
		a1 := x.Data[at+x.Col]
		a2 := x.Data[at+2*x.Col]
		a3 := x.Data[at+3*x.Col]
		y0 := y.Data[p*y.Row:][:len(z)]
		y1 := y.Data[(p+1)*y.Row:][:len(y0)]
		y2 := y.Data[(p+2)*y.Row:][:len(y0)]
		y3 := y.Data[(p+3)*y.Row:][:len(y0)]
		z := z[:len(y0)]
		for j, v := range y0 {
			z[j] = z[j] + a0*v +
				a1*y1[j] + a2*y2[j] +
				a3*y3[j]
		}
	}
	for ; p < k; p++ {
		a := x.Data[p*x.Col]
		row := y.Data[p*y.Row:][:len(z)]
		z := z[:len(row)]
		for j, v := range row {
			z[j] += a * v
		}
	}
}
