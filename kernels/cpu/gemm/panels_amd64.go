//go:build !noasm

package gemm

import "unsafe"

const (
	cachedRows  = 192 // rows of a that are multiplied by one panel of b after the other
	reused      = 96  // rows from which on it is worth to arrange panels of b
	reusedAlias = 12  // the same where all rows of a panel compete for the same lines of a first cache
	alias       = 4096
)

// A place is a matrix as kernels see it: strides are bytes.
type place struct {
	p        unsafe.Pointer
	row, col int
}

func placeOf[T Element](x Matrix[T]) place {
	var zero T
	size := int(unsafe.Sizeof(zero))
	return place{unsafe.Pointer(unsafe.SliceData(x.Data)), x.Row * size, x.Col * size}
}

func (x place) at(i, j int) place {
	x.p = unsafe.Add(x.p, i*x.row+j*x.col)
	return x
}

func (x place) first() *byte { return (*byte)(x.p) }

// multiplyPanels goes through b in panels: as many columns as a kernel has and as
// many rows as stay in the first cache.
func multiplyPanels[T Element](f *family, c, a, b Matrix[T], m, n, k int, scratch []T) {
	x, y, z := placeOf(a), placeOf(b), placeOf(c)
	columns, terms := f.columns(), f.terms()
	panel := place{unsafe.Pointer(unsafe.SliceData(scratch[:terms*columns])), columns * f.bytes, f.bytes}
	for i := 0; i < m; i += cachedRows {
		rows := min(cachedRows, m-i)
		for p := 0; p < k; p += terms {
			depth := min(terms, k-p)
			for j := 0; j < n; j += columns {
				width := min(columns, n-j)
				from := y.at(p, j)
				switch {
				case b.Col != 1:
					f.turn(panel, from, depth, width)
					from = panel
				case width == columns && from.row != panel.row && (rows >= reused || rows >= reusedAlias && from.row%alias == 0):
					f.copy(panel, from, depth)
					from = panel
				}
				f.rows(z.at(i, j), x.at(i, p), from, rows, width, depth)
			}
		}
	}
}

// rows multiplies by one panel, in blocks of rows as equal as can be.
func (f *family) rows(c, a, b place, m, n, k int) {
	rows, more := m, 0
	if m > 6 {
		blocks := (m + 5) / 6
		rows, more = m/blocks, m%blocks
	}
	if more > 0 {
		rows++ // in the first blocks
	}
	for {
		f.block(c, a, b, rows, n, k)
		if m -= rows; m == 0 {
			return
		}
		c, a = c.at(rows, 0), a.at(rows, 0)
		if more--; more == 0 {
			rows--
		}
	}
}

func (f *family) block(c, a, b place, rows, n, k int) {
	if n == f.columns() {
		f.full[rows-1](k, a.first(), a.row, a.col, b.first(), b.row, c.first(), c.row, nil)
		return
	}
	masked := f.masked[rows-1]
	masked(k, a.first(), a.row, a.col, b.first(), b.row, c.first(), c.row, f.masks(min(n, f.lanes)))
	if n > f.lanes {
		b.p, c.p = unsafe.Add(b.p, f.lanes*f.bytes), unsafe.Add(c.p, f.lanes*f.bytes)
		masked(k, a.first(), a.row, a.col, b.first(), b.row, c.first(), c.row, f.masks(n-f.lanes))
	}
}

// copy copies k rows of a panel, 64 bytes at a time.
func (f *family) copy(to, from place, k int) {
	for at := 0; at < f.columns()*f.bytes; at += 64 {
		copyRows64(k, (*byte)(unsafe.Add(to.p, at)), to.row, (*byte)(unsafe.Add(from.p, at)), from.row)
	}
}

// turn arranges k rows of n elements whose columns are not next to each other:
// in squares where its rows are.
func (f *family) turn(to, from place, k, n int) {
	side := 32 / f.bytes
	rows, columns := 0, 0
	if from.row == f.bytes {
		rows, columns = k/side*side, n/side*side
		for j := 0; j < columns; j += side {
			f.transpose(k/side, to.at(0, j).first(), to.row, from.at(0, j).first(), from.col)
		}
	}
	f.gather(to, from, 0, rows, columns, n)
	f.gather(to, from, rows, k, 0, n)
}

// gather copies elements of rows p … q−1 and columns i … j−1.
func (f *family) gather(to, from place, p, q, i, j int) {
	for ; p < q && i < j; p++ {
		t, s := to.at(p, i).p, from.at(p, i).p
		for n := j - i; n > 0; n-- {
			if f.bytes == 4 {
				*(*uint32)(t) = *(*uint32)(s)
			} else {
				*(*uint64)(t) = *(*uint64)(s)
			}
			if n > 1 {
				t, s = unsafe.Add(t, to.col), unsafe.Add(s, from.col)
			}
		}
	}
}
