//go:build !noasm

package gemm

import "unsafe"

const (
	slabBytes  = 288 << 10 // rows of a that stay in a second cache of 512 KiB
	storeBytes = 3 << 20   // panels of b that stay in a third cache
	padding    = 64        // bytes between rows of a slab, so that they do not compete for the same lines of a cache
)

// fresh, in place of 0, has a kernel begin with zeros.
const fresh = 1

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

// A blocking divides a product: slabs of so many rows and terms of a stay in
// the second cache while they are multiplied by panels of as many terms of b,
// one panel after the other; several slabs use the same panels again.
type blocking struct {
	rows, terms, columns int
}

// blocking is as even as can be: whole blocks of 6 rows, whole panels.
func (f *family) blocking(m, n, k int) blocking {
	columns := f.width()
	b := blocking{terms: even(k, f.depth, 8)}
	b.rows = even(m, slabBytes/(f.depth*f.bytes), 6)
	b.columns = even(n, storeBytes/(f.depth*f.bytes), columns)
	if m <= b.rows { // nothing is used again
		b.columns = n
	}
	return b
}

// even is the length of parts of n, at most so long but for rounding up to the
// unit, that are as equal as can be.
func even(n, most, unit int) int {
	parts := (n + most - 1) / most
	return ((n+parts-1)/parts + unit - 1) / unit * unit
}

func (b blocking) slab(f *family) int { return b.rows * (b.terms*f.bytes + padding) }

// panels is how many are kept.
func (b blocking) panels(f *family, m int) int {
	if m <= b.rows {
		return 1
	}
	return (b.columns + f.width() - 1) / f.width()
}

// scratch is the bytes a product needs for a slab and panels.
func (f *family) scratch(m, n, k int) int {
	b := f.blocking(m, n, k)
	return b.slab(f) + b.panels(f, m)*b.terms*f.width()*f.bytes
}

// A product is one on its way.
type product struct {
	*family
	blocking
	a, b, c place
	m, n, k int
	how     int
	slab    place // of a, arranged
	panels  place // of b, arranged: rows of a row of b; next to each other
	ahead   ahead
}

// ahead is lines that are needed soon, one every stride bytes. They may end
// behind an array, where no pointer may point.
type ahead struct {
	p             uintptr
	stride, lines int
}

// multiplyPanels multiplies slab by slab, in each panel by panel.
func multiplyPanels[T Element](f *family, x Product[T], scratch []T) {
	p := product{
		family: f, blocking: f.blocking(x.M, x.N, x.K),
		a: placeOf(x.A), b: placeOf(x.B), c: placeOf(x.C), m: x.M, n: x.N, k: x.K,
	}
	p.slab = place{unsafe.Pointer(unsafe.SliceData(scratch)), p.terms*f.bytes + padding, f.bytes}
	p.panels = place{unsafe.Add(p.slab.p, p.blocking.slab(f)), f.width() * f.bytes, f.bytes}
	if p.streams() {
		if x.Fresh {
			x.clear()
		}
		p.streamed()
		return
	}
	for j := 0; j < p.n; j += p.columns {
		for t := 0; t < p.k; t += p.terms {
			p.how = 0
			if x.Fresh && t == 0 {
				p.how = fresh
			}
			for i := 0; i < p.m; i += p.rows {
				p.block(i, j, t)
			}
		}
	}
}

// block multiplies the slab at i, t by the panels from j on.
func (p *product) block(i, j, t int) {
	rows, terms, end := min(p.rows, p.m-i), min(p.terms, p.k-t), min(j+p.columns, p.n)
	slab := p.left(p.a.at(i, t), rows, terms)
	each := p.width()
	for n := 0; j < end; n, j = n+1, j+each {
		columns := min(each, end-j)
		panel := p.right(p.b.at(t, j), i, n, terms, columns)
		if j+each < end {
			p.ahead = p.next(i, j+each, t, n+1, terms)
		}
		p.strip(p.c.at(i, j), slab, panel, rows, columns, terms)
	}
}

// next is where panel n, at t, j, will be read from.
func (p *product) next(i, j, t, n, terms int) ahead {
	if i > 0 && p.kept(p.b.at(t, j), p.width()) {
		return ahead{uintptr(p.panels.p) + uintptr(n*p.terms*p.panels.row), 64, terms * p.panels.row / 64}
	}
	return ahead{uintptr(p.b.at(t, j).p), p.b.row, terms}
}

// left is the slab of rows and terms at from: arranged where its rows are far
// apart and several panels use it.
func (p *product) left(from place, rows, terms int) place {
	size := p.bytes
	if from.col == size && (p.n <= p.width() || from.row <= 2*p.slab.row && from.row%1024 != 0) {
		return from
	}
	if from.col != size {
		p.turn(p.slab, from, rows, terms)
		return p.slab
	}
	for i := range rows {
		copyBytes(p.slab.at(i, 0).p, from.at(i, 0).p, terms*size)
	}
	return p.slab
}

func copyBytes(to, from unsafe.Pointer, n int) {
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}

const (
	reused      = 36 // rows from which on it is worth to arrange panels of b
	reusedAlias = 12 // the same where all rows of a panel compete for the same lines of a first cache
	alias       = 4096
)

// right is panel n, which begins at from: arranged where it is used often enough
// or its columns are not next to each other. The first slab of several does that
// for all.
func (p *product) right(from place, i, n, terms, columns int) place {
	panel := p.panels
	if p.m > p.rows {
		panel.p = unsafe.Add(panel.p, n*p.terms*panel.row)
	}
	switch {
	case !p.kept(from, columns):
		return from
	case i > 0:
	case from.col != p.bytes:
		p.turn(panel, from, terms, columns)
	default:
		p.copy(panel, from, terms)
	}
	return panel
}

// kept says whether so many columns of b at from are arranged.
func (p *product) kept(from place, columns int) bool {
	return from.col != p.bytes ||
		columns == p.width() && from.row != p.panels.row && (p.m >= reused || p.m >= reusedAlias && from.row%alias == 0)
}

// strip multiplies by one panel, in blocks of rows as equal as can be.
func (p *product) strip(c, a, b place, m, n, k int) {
	rows, more := m, 0
	if m > 6 {
		blocks := (m + 5) / 6
		rows, more = m/blocks, m%blocks
	}
	if more > 0 {
		p.blocks(c, a, b, more, rows+1, n, k)
		if m -= more * (rows + 1); m == 0 {
			return
		}
		c, a = c.at(more*(rows+1), 0), a.at(more*(rows+1), 0)
	}
	p.blocks(c, a, b, m/rows, rows, n, k)
}

// blocks multiplies blocks of rows by one panel.
func (p *product) blocks(c, a, b place, blocks, rows, n, k int) {
	if n < p.width() {
		p.narrow(c, a, b, blocks, rows, n, k)
		return
	}
	full := p.full[rows-1]
	if turns := k / 4; p.ahead.lines > 0 && turns > 0 {
		some := min(blocks, (p.ahead.lines+turns-1)/turns)
		full(some, k, a.first(), a.row, a.col, b.first(), b.row, c.first(), c.row, nil, p.ahead.p, p.ahead.stride, p.how)
		p.ahead.p += uintptr(some * turns * p.ahead.stride)
		p.ahead.lines -= some * turns
		if blocks -= some; blocks == 0 {
			return
		}
		c, a = c.at(some*rows, 0), a.at(some*rows, 0)
	}
	full(blocks, k, a.first(), a.row, a.col, b.first(), b.row, c.first(), c.row, nil, uintptr(b.p), 0, p.how)
}

// narrow is blocks for a panel that is not as wide as the others.
func (p *product) narrow(c, a, b place, blocks, rows, n, k int) {
	masked := p.masked[rows-1]
	masked(blocks, k, a.first(), a.row, a.col, b.first(), b.row, c.first(), c.row, p.masks(min(n, p.lanes)), uintptr(b.p), 0, p.how)
	if n > p.lanes {
		b.p, c.p = unsafe.Add(b.p, p.lanes*p.bytes), unsafe.Add(c.p, p.lanes*p.bytes)
		masked(blocks, k, a.first(), a.row, a.col, b.first(), b.row, c.first(), c.row, p.masks(n-p.lanes), uintptr(b.p), 0, p.how)
	}
}

// copy copies k rows of a panel, 64 bytes at a time.
func (f *family) copy(to, from place, k int) {
	for at := 0; at < f.width()*f.bytes; at += 64 {
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
