//go:build !noasm

package gemm

import (
	"cmp"
	"fmt"
	"unsafe"
)

const (
	// panelGroup is the number of panels of b that are packed together.
	panelGroup = 4
	// slabPadding is the bytes between rows of a slab, which keep rows from
	// competing for the same lines of a cache.
	slabPadding = 64
)

// panel is the bytes of a panel of b, beside which others pass through the
// first-level cache.
func (c Caches) panel() int {
	return c.First / 4 * 3
}

// slab is the bytes of rows of a that stay in the second-level cache, beside
// the next ones and the panels.
func (c Caches) slab() int {
	return c.blocks() / 8 * 3
}

// blocks is the bytes of the second-level cache of which blocks are parts.
func (c Caches) blocks() int {
	if c.Pairs {
		return c.Second / 2
	}
	return c.Second
}

// store is the bytes of panels of b that stay in the third-level cache, beside
// everything else.
func (c Caches) store() int {
	return c.Third / 4
}

// stream is the bytes of a row of c, or of rows of b of a gemv, that stay in
// the first-level cache.
func (c Caches) stream() int {
	return c.First / 2
}

// freshFlag makes a kernel begin with zeros. With pastFlag kernels of f32 and f64 write whole
// vectors of c past the caches, for which rows of c begin at multiples of a vector.
const (
	freshFlag = 1
	pastFlag  = 2
)

// A byteMatrix is a matrix as kernels see it, with strides in bytes.
type byteMatrix struct {
	p        unsafe.Pointer
	row, col int
}

// byteMatrixOf is the matrix with strides in bytes.
func byteMatrixOf[T Element](x Matrix[T]) byteMatrix {
	var zero T
	size := int(unsafe.Sizeof(zero))
	return byteMatrix{
		unsafe.Pointer(unsafe.SliceData(x.Data)),
		x.Row * size,
		x.Col * size,
	}
}

// operandsOf are A and B, and the bytes of their elements.
func operandsOf[T Element](x Product[T]) (m [2]byteMatrix, sizes [2]int) {
	m = [2]byteMatrix{byteMatrixOf(x.A), byteMatrixOf(x.B)}
	strides := [2][2]int{{x.A.Row, x.A.Col}, {x.B.Row, x.B.Col}}
	for k, s := range x.Short {
		sizes[k] = cmp.Or(s.Size, int(unsafe.Sizeof(*new(T))))
		if s.Size != 0 {
			p := unsafe.Pointer(unsafe.SliceData(s.Data))
			m[k] = byteMatrix{p, strides[k][0] * s.Size, strides[k][1] * s.Size}
		}
	}
	return m, sizes
}

// transposed is the matrix with rows for columns.
func (x byteMatrix) transposed() byteMatrix {
	return byteMatrix{x.p, x.col, x.row}
}

// at is the matrix from element i, j on.
func (x byteMatrix) at(i, j int) byteMatrix {
	x.p = unsafe.Add(x.p, i*x.row+j*x.col)
	return x
}

// first is the address of element 0, 0.
func (x byteMatrix) first() *byte { return (*byte)(x.p) }

// A blocking divides a product: slabs of some rows and terms of a stay in the
// second-level cache while they are multiplied by panels of as many terms of b,
// one panel after the other. Several slabs use the same panels again.
type blocking struct {
	rows, terms, columns int
}

// blocking is as even as can be: whole blocks of 6 rows, whole panels. Several
// slabs have a third more terms, since all of c is read and written for each, where
// a term of a panel is a cache line: measured, this outweighs that panels fill the
// first-level cache (2 to 4 % on a Zen 4). Panels of two lines, of vectors of 512
// bits, read twice as much of it a term: at most 288 terms are 8 % faster than 384 for 2048
// cubed on a Xeon of 48 KiB.
func (f *family) blocking(c Caches, m, n, k int) blocking {
	c = f.cachesOf(c, m)
	if f.isNarrow(m, n) {
		return f.narrow(c, m, n, k)
	}
	return f.slabBlocking(c, m, n, k)
}

// minPairRows is the rows of a from which on two panels are multiplied at once where kernels
// fetch operands ahead: 32 rows by weights from memory are up to 5 % faster by one (Zen 4).
const minPairRows = 64

// cachesOf is caches as a family uses them for m rows of a: without kernels of pairs, panels are
// as long as is best for kernels of one.
func (f *family) cachesOf(c Caches, m int) Caches {
	c = c.Filled()
	few := m < minPairRows && !c.Fetched
	if c.Pairs && (few || f.pairs[0] == nil) {
		c.Pairs, c.Fetched = false, false
		c.Panel = c.Single
	}
	return c
}

// slabBlocking is blocking of products that are not narrow.
func (f *family) slabBlocking(c Caches, m, n, k int) blocking {
	if f.isDeep(c) {
		return f.deep(c, m, n, k)
	}
	depth := f.depth(c)
	line := f.width()*f.bytes <= 64
	if line && m > c.slab()/(depth*f.bytes) {
		depth += depth / 3
	}
	b := blocking{terms: evenParts(k, depth, 8)}
	b.rows = evenParts(
		m, max(6, c.slab()/(depth*f.bytes)), 6,
	)
	b.columns = evenParts(
		n,
		max(f.width(), c.store()/(depth*f.bytes)),
		f.width(),
	)
	if m <= b.rows { // nothing is used again
		b.columns = n
	}
	return b
}

// isDeep reports whether panels of two lines a term are larger than the first-level cache.
func (f *family) isDeep(c Caches) bool { return c.Panel > 0 && f.width()*f.bytes > 64 }

// deep is the blocking of panels that the second-level cache holds, beside a slab of as many
// terms: c is read and written for fewer slabs, which takes 5 % of the time of 1024 cubed with
// 176 terms on a Zen 4, and the rows of a slab are longer. Where a slab of half as many terms
// holds all of a, it has those, since groups of panels pass through the cache beside it.
func (f *family) deep(c Caches, m, n, k int) blocking {
	depth := max(16, c.Panel/(f.width()*f.bytes)/16*16)
	if m*depth/2*f.bytes <= c.slab() {
		depth /= 2
	}
	b := blocking{terms: evenParts(k, depth, 8)}
	row := b.terms * f.bytes
	most := c.slab() / row / 6 * 6
	if c.Pairs {
		most = min(most, mostPairRows)
	}
	b.rows = evenParts(m, max(6, most), 6)
	b.columns = evenParts(
		n, max(f.width(), c.store()/row), f.width(),
	)
	if m <= b.rows { // nothing is used again
		b.columns = n
	}
	return b
}

// mostPairRows is the rows of a slab that pairs of panels are multiplied by, at most: each is a page
// of c of its own where these rows are long, of which a core finds some hundred at once.
// 2048×2048×128 takes 0.93 of the time that it takes with 768 rows (Emerald Rapids).
const mostPairRows = 192

const (
	// narrowRow is the bytes of a row of b of a narrow product, at most.
	narrowRow = 512
	// narrowRows is the rows of a that it has more than.
	narrowRows = 96
)

// isNarrow reports whether a product has many rows of a and few columns of b, so that the
// rate at which a is read counts.
func (f *family) isNarrow(m, n int) bool {
	return m > narrowRows &&
		n*f.bytes <= narrowRow
}

// narrow is the blocking of a narrow product. Rows of a are read from where they are, in
// pieces of 2 KiB and more, the next ones of which kernels fetch ahead; packing would touch each of
// its elements twice for a few multiply-adds. All panels of these terms take a quarter of
// the second-level cache, and a slab three sixteenths; or a half and three thirty-seconds where
// that cache gives panels as fast as kernels multiply them, and kernels fetch a ahead: longer
// pieces take 0.94 to 0.96 of the time of 4096×64×4096 (Zen 4, BenchmarkPairs).
func (f *family) narrow(c Caches, m, n, k int) blocking {
	row := evenParts(n, n, f.width()) * f.bytes
	b := blocking{columns: n}
	panels, slab := c.blocks()/4, c.blocks()/16*3
	if f.isDeep(c) && !c.Fetched {
		panels, slab = c.Second/2, c.Second/32*3
	}
	b.terms = evenParts(
		k, max(16, panels/row/8*8), 8,
	)
	b.rows = evenParts(
		m, max(6, slab/(b.terms*f.bytes)/6*6), 6,
	)
	return b
}

// depth is the terms of a panel that stays in the first-level cache.
func (f *family) depth(c Caches) int {
	row := f.width() * f.bytes
	return max(16, c.panel()/row/8*8)
}

// evenParts is the length of parts of n, at most so long but for rounding up to
// the unit, that are as equal as can be.
func evenParts(n, most, unit int) int {
	parts := (n + most - 1) / most
	return ((n+parts-1)/parts + unit - 1) /
		unit * unit
}

// slab is the bytes of a slab.
func (b blocking) slab(f *family) int {
	return b.rows * (b.terms*f.bytes + slabPadding)
}

// panels is the number of panels that are kept.
func (b blocking) panels(f *family, m int) int {
	all := (b.columns + f.width() - 1) /
		f.width()
	if m <= b.rows {
		return min(panelGroup, all)
	}
	return all
}

// scratch is the bytes that a product needs for a slab and panels.
func (f *family) scratch(c Caches, m, n, k int) int {
	b := f.blocking(c, m, n, k)
	return b.slab(f) +
		b.panels(f, m)*b.terms*f.width()*f.bytes
}

// A product is a product while it is computed.
type product struct {
	*family
	blocking
	a, b, c byteMatrix
	m, n, k int
	// The bytes between panels of b, 0 where it is not panels.
	apart int
	flags int // The argument how of kernels: freshFlag or 0.
	// Where the next block of rows fills the panel that it is given: the rows of b that it
	// multiplies by.
	source  byteMatrix
	packing Packing
	caches  Caches
	beside  int        // The bytes between the panels of a pair.
	slab    byteMatrix // The packed slab of a.
	// The packed panels of b: rows are rows of b, panels follow each other.
	panels     byteMatrix
	prefetches [2]prefetch // What the kernels prefetch.
	// Where a is windows: what they are of, and whether blocks read them in place.
	windows windowSource
	inPlace bool
	// Where b is weights: where they lie, and the row that is row 0.
	weights *Weights
	begin   int
}

// A prefetch is what is needed soon: columns of cache lines, next bytes apart, in each a
// line every stride bytes. They may end behind an array, where no pointer may point.
type prefetch struct {
	p                   uintptr
	next, stride, lines int
	// The columns, and the lines of the first column that are done.
	columns, doneLines int
	after              rest
}

// A rest is the terms, and columns, of b that are prefetched after others, which their rows are
// not one stride from.
type rest struct{ t, j, terms, columns int }

// ofPart is the prefetch of so many rows and columns of x, of elements of size bytes, line by
// line of all rows or columns that are contiguous.
func ofPart(x byteMatrix, rows, columns, size int) prefetch {
	if x.row == size { // columns are contiguous
		return prefetch{
			p:       uintptr(x.p),
			next:    x.col,
			stride:  64,
			lines:   (rows*size + 63) / 64,
			columns: columns,
		}
	}
	return prefetch{
		p:       uintptr(x.p),
		next:    64,
		stride:  x.row,
		lines:   rows,
		columns: (columns*size + 63) / 64,
	}
}

// take returns the next lines, at most so many, and how many they are.
func (x *prefetch) take(most int) (p uintptr, step, taken int) {
	taken = min(most, x.lines-x.doneLines)
	p = x.p + uintptr(x.doneLines*x.stride)
	step = x.stride
	if x.doneLines += taken; x.doneLines >= x.lines {
		x.p += uintptr(x.next)
		x.doneLines = 0
		x.columns--
	}
	return p, step, taken
}

// multiplyPanels multiplies in the way that suits the shape: as a matrix-vector
// product where few rows use b, else slab by slab.
func multiplyPanels[T Element](f *family, x Product[T], scratch []T) {
	p := productOf(f, &x, scratch)
	p.multiply(x.Fresh, x.Past)
}

// multiplyBatch is multiplyPanels for n products that differ in where their matrices begin,
// apart elements apart.
func multiplyBatch[T Element](
	f *family, x Product[T],
	n int, apart [3]int,
	scratch []T,
) {
	p := productOf(f, &x, scratch)
	c := p.c.p
	a := p.a.p
	b := p.b.p
	for i := range n {
		// Each matrix begins so many bytes behind the first.
		at := i * f.bytes
		p.c.p = unsafe.Add(
			c, at*apart[0],
		)
		p.a.p = unsafe.Add(
			a, at*apart[1],
		)
		p.b.p = unsafe.Add(
			b, at*apart[2],
		)
		p.multiply(x.Fresh, x.Past)
	}
}

// productOf is a product with its blocks, which are packed in scratch.
func productOf[T Element](f *family, in *Product[T], scratch []T) product {
	x := *in
	p := product{
		family:   f,
		blocking: blockingOf(f, x),
		inPlace:  x.windowsInPlace(f),
		windows:  windowsOf(x),
		caches:   f.cachesOf(x.Caches, x.M),
		a:        byteMatrixOf(x.A),
		b:        byteMatrixOf(x.B),
		c:        byteMatrixOf(x.C),
		m:        x.M,
		n:        x.N,
		k:        x.K,
		packing:  x.Packing,
		apart:    x.Panels * f.bytes,
		weights:  x.Weights,
		begin:    x.begin,
	}
	p.slab = byteMatrix{
		unsafe.Pointer(unsafe.SliceData(scratch)),
		p.terms*f.bytes + slabPadding,
		f.bytes,
	}
	p.panels = byteMatrix{
		unsafe.Add(p.slab.p, p.slabBytes()),
		f.width() * f.bytes,
		f.bytes,
	}
	p.checkScratch(len(scratch) * f.bytes)
	return p
}

// multiply multiplies.
func (p *product) multiply(isFresh, past bool) {
	switch {
	case p.apart != 0 ||
		p.windows.Windows != nil ||
		p.weights != nil:
		p.slabs(isFresh, past)
	case p.usesGemv():
		p.clear(isFresh)
		p.runGemv()
	case p.usesStanding():
		p.clear(isFresh)
		p.runStanding()
	case p.usesTransposedGemv():
		p.clear(isFresh)
		p.runTransposedGemv()
	case p.isStrip():
		p.setFlags(isFresh, past)
		p.strip(
			p.c, p.a, p.b,
			p.m, p.n, p.k,
		)
	default:
		p.slabs(isFresh, past)
	}
}

// isStrip reports whether a product is one block of one panel, whose operands are read in place:
// a small one, which takes less time than to look for what is packed, or fetched, next.
func (p *product) isStrip() bool {
	return p.n <= p.width() &&
		p.m <= p.rows &&
		p.k <= p.terms &&
		!p.packsSlab(p.a) &&
		!p.packsPanel(p.b, p.n)
}

// checkScratch panics where the slab and panels take more bytes than there are.
func (p *product) checkScratch(bytes int) {
	panels := p.blocking.panels(p.family, p.m)
	need := p.slabBytes() + panels*p.panel()
	if need > bytes {
		panic(fmt.Sprintf(
			"gemm: %d×%d×%d needs %d bytes of scratch, not %d",
			p.m, p.n, p.k, need, bytes,
		))
	}
}

// clear makes a fresh c begin with zeros.
func (p *product) clear(isFresh bool) {
	if !isFresh {
		return
	}
	for i := range p.m {
		clear(unsafe.Slice((*byte)(
			p.c.at(i, 0).p,
		), p.n*p.bytes))
	}
}

// canWritePast reports whether all terms of c are added in one turn, and its rows begin with
// lines.
func (p *product) canWritePast() bool {
	lines := uintptr(p.c.p) | uintptr(p.c.row)
	return p.k <= p.terms && lines%64 == 0
}

// slabs multiplies slab by slab.
func (p *product) slabs(isFresh, past bool) {
	for j := 0; j < p.n; j += p.columns {
		for t := 0; t < p.k; t += p.termsFrom(t) {
			p.setFlags(isFresh && t == 0, past)
			for i := 0; i < p.m; i += p.rows {
				p.block(i, j, t)
			}
		}
	}
}

// setFlags sets what kernels do with c: a fresh one holds nothing yet, and may be written past
// the caches.
func (p *product) setFlags(isFresh, past bool) {
	p.flags = 0
	if isFresh {
		p.flags = freshFlag
		if past && p.canWritePast() {
			p.flags |= pastFlag
		}
	}
}

// block multiplies the slab at i, t by the panels from j on.
func (p *product) block(i, j, t int) {
	rows := min(p.rows, p.m-i)
	terms := p.termsFrom(t)
	begin := j
	end := min(j+p.columns, p.n)
	slab := p.slabAt(i, t, rows, terms)
	p.prefetches[1] = p.nextSlab(i, t)
	group := p.group()
	each := group * p.width()
	for n := 0; j < end; n, j = n+group, j+each {
		columns := min(each, end-j)
		panel := p.panels
		if p.m > p.rows {
			panel.p = unsafe.Add(
				panel.p, n*p.terms*panel.row,
			)
		}
		fills := p.fillsPanels(columns)
		if i == 0 && !fills {
			p.packTerms(panel, j, t, terms, columns)
		}
		p.prefetches[0] = p.nextPanels(
			i, j+each, t, begin, end, n+group,
		)
		width := 0
		for k := 0; k < columns; k += width {
			if k > 0 {
				panel.p = unsafe.Add(
					panel.p, width/p.width()*p.panel(),
				)
			}
			width = p.stripWidth(slab, columns-k)
			from := p.right(t, j+k)
			p.beside = cmp.Or(p.apart, p.width()*p.bytes)
			if p.packsPanel(from, min(width, p.width())) {
				if fills && i == 0 {
					p.source = from
				}
				from = panel
				p.beside = p.panel()
			}
			if p.inPlace {
				p.windowStrips(
					i, j+k, t,
					from, width, terms,
				)
				continue
			}
			p.strip(
				p.c.at(i, j+k),
				slab, from, rows, width, terms,
			)
		}
	}
}

// canFill reports whether the first block of rows packs panels of b while it multiplies: a copy
// by itself has nothing to do while it waits for lines.
func (p *product) canFill() bool {
	return p.fills[0] != nil &&
		p.isDeep(p.caches) && !p.caches.Fetched &&
		p.weights == nil && p.apart == 0 &&
		p.b.col == p.bytes
}

// fillsPanels reports whether panels of some columns of b are packed so.
func (p *product) fillsPanels(columns int) bool {
	return columns%p.width() == 0 && p.canFill() &&
		p.packsPanel(p.b, p.width())
}

// group is the panels of b that are packed, or prefetched, together. What the first block of rows
// packs is prefetched one panel ahead, or one pair: the second cache has not room for four of rows
// that share few of its sets.
func (p *product) group() int {
	switch {
	case !p.fillsPanels(p.width()):
		return panelGroup
	case p.caches.Pairs:
		return 2
	}
	return 1
}

// fill multiplies the first block of rows by b where it lies, a panel or a pair, and packs it.
func (p *product) fill(c, a, b byteMatrix, rows, n, k int) {
	from := p.source
	p.source = byteMatrix{}
	for {
		soon, step := p.nextLines(k, uintptr(from.p))
		p.fills[rows-1](
			1, k, a.first(), a.row, a.col,
			from.first(), from.row,
			c.first(), c.row, b.first(),
			soon, step, p.flags,
		)
		if n -= p.width(); n <= 0 {
			return
		}
		from, c = from.at(0, p.width()), c.at(0, p.width())
		b.p = unsafe.Add(b.p, p.beside)
	}
}

// nextLines is what is prefetched next, at most so many lines, or none of at.
func (p *product) nextLines(most int, at uintptr) (soon uintptr, step int) {
	for x := range p.prefetches {
		f := &p.prefetches[x]
		if most >= 4 && p.more(f) {
			soon, step, _ = f.take(most)
			return soon, step
		}
	}
	return at, 0
}

// stripWidth is how many of some columns of b are multiplied at once: two panels where kernels
// of pairs are used, which read terms of a that are contiguous, a panel, or what there is.
func (p *product) stripWidth(a byteMatrix, columns int) int {
	w := p.width()
	if columns >= 2*w && p.caches.Pairs &&
		a.col == p.bytes {
		return 2 * w
	}
	return min(w, columns)
}

// panel is the bytes of a panel.
func (p *product) panel() int {
	return p.terms * p.panels.row
}

// right is b from row t and column j on, where a panel begins.
func (p *product) right(t, j int) byteMatrix {
	from := p.b
	switch {
	case p.weights != nil:
		t += p.begin
		run := p.weights.Runs[t/p.weights.Terms]
		from.p = unsafe.Add(from.p, run*p.bytes)
		return from.at(t%p.weights.Terms, j)
	case p.apart == 0:
		return from.at(t, j)
	}
	from.p = unsafe.Add(from.p, t*from.row+j/p.width()*p.apart)
	return from
}

// nextSlab is the prefetch of what follows the slab at i, t, also where slabs are read in place:
// the hardware fetches along a row only, and begins anew in each. 5 % of 4096×64×4096 on a
// Zen 4.
func (p *product) nextSlab(i, t int) prefetch {
	if i += p.rows; i >= p.m {
		i, t = 0, t+p.terms
	}
	if t >= p.k || p.caches.Fetched ||
		p.windows.Windows != nil {
		return prefetch{}
	}
	rows := min(p.rows, p.m-i)
	terms := min(p.terms, p.k-t)
	return ofPart(p.a.at(i, t), rows, terms, p.bytes)
}

// nextPanels is the prefetch of what group n of panels will be read from: rows
// of b for the first slab, and after the last group of the last slab.
func (p *product) nextPanels(i, j, t, begin, end, n int) prefetch {
	if p.caches.Fetched && p.m <= p.rows {
		return prefetch{} // b is read once
	}
	if j >= end {
		if i+p.rows < p.m || t+p.terms >= p.k {
			return prefetch{}
		}
		i = 0
		j = begin
		t = t + p.terms
	}
	from := p.right(t, j)
	if i > 0 &&
		p.packsPanel(from, p.width()) {
		return prefetch{
			p:       uintptr(p.panels.p) + uintptr(n*p.panel()),
			next:    64,
			stride:  64,
			lines:   p.group() * p.panel() / 64,
			columns: 1,
		}
	}
	columns := min(p.group()*p.width(), end-j)
	if p.apart != 0 {
		return prefetch{
			p:       uintptr(from.p),
			next:    p.apart,
			stride:  64,
			lines:   min(p.terms, p.k-t) * from.row / 64,
			columns: columns / p.width(),
		}
	}
	return p.ofRight(rest{t, j, min(p.terms, p.k-t), columns})
}

// ofRight is the prefetch of a part of b, of which the first run is first.
func (p *product) ofRight(x rest) prefetch {
	terms := min(x.terms, p.runFrom(x.t))
	f := ofPart(
		p.right(x.t, x.j), terms, x.columns, p.bytes,
	)
	x.t += terms
	x.terms -= terms
	f.after = x
	return f
}

// more reports whether there is more to prefetch.
func (p *product) more(f *prefetch) bool {
	if f.columns == 0 && f.after.terms > 0 {
		*f = p.ofRight(f.after)
	}
	return f.columns > 0
}

// slabAt is the slab of rows and terms from i and t on.
func (p *product) slabAt(i, t, rows, terms int) byteMatrix {
	switch {
	case p.inPlace:
		return p.a
	case p.windows.Windows != nil:
		part := windowPart{i, rows, t, terms}
		p.windows.pack(p.slab, part, &keptSigns)
		return p.slab
	}
	return p.slabOf(p.a.at(i, t), rows, terms)
}

// slabOf is the slab of rows and terms at from: packed where its rows are far
// apart and several panels use it.
func (p *product) slabOf(from byteMatrix, rows, terms int) byteMatrix {
	size := p.bytes
	if !p.packsSlab(from) {
		return from
	}
	if from.col != size {
		p.transposeFrom(p.slab, from, rows, terms)
		return p.slab
	}
	for i := range rows {
		copyBytes(
			p.slab.at(i, 0).p,
			from.at(i, 0).p,
			terms*size,
		)
	}
	return p.slab
}

// packsSlab reports whether slabs are packed.
func (p *product) packsSlab(a byteMatrix) bool {
	if a.col != p.bytes || p.packing != Suitable {
		return a.col != p.bytes || p.packing == Packed
	}
	if p.isDeep(p.caches) && p.rows*a.row <= p.caches.Second/4*3 {
		return false // the second cache holds all sets of lines that rows compete for
	}
	return p.n > p.width() &&
		!p.isNarrow(p.m, p.n) &&
		(a.row > 2*p.slab.row || a.row%1024 == 0)
}

// copyBytes copies bytes.
func copyBytes(to, from unsafe.Pointer, n int) {
	copy(
		unsafe.Slice((*byte)(to), n),
		unsafe.Slice((*byte)(from), n),
	)
}

const (
	// minPackedRows is the number of rows from which packing panels of b is
	// worth it, where they are a line wide.
	minPackedRows = 36
	// minPackedWideRows is the same of panels of two lines (512 bits) whose rows are in the
	// second cache, which delivers both lines in less time than the multiply-adds of a term
	// take: packing gains 1 % of 512 rows where it gains anything (BenchmarkPacked, Zen 5).
	// Rows that come from memory are packed, since a copy fetches ahead, but for those that
	// minPackedFarRows is about.
	minPackedWideRows = 512
	// minPackedFarRows is the same of rows beyond the second cache, where that gives panels as
	// fast as kernels multiply them: the lines of the next panels are fetched while these
	// are multiplied, and a copy takes 7 to 10 % of the time of 49 rows, 3 of 196, and none of
	// 392 (Zen 4, from the third cache and from memory).
	minPackedFarRows = 256
	// minPackedHalfRows is the same where rows are half of aliasStride apart.
	minPackedHalfRows = 128
	// minPackedAliasRows is the same where all rows of a panel compete for the
	// same lines of a first-level cache.
	minPackedAliasRows = 12
	// minFilledRows is the same where the first block of rows packs them and they take half of
	// the second cache or more: each panel is read once from where it lies. 32 rows by 512×512
	// from memory take 0.9 of the time (Zen 4).
	minFilledRows = 12
	// aliasStride is the distance of rows that compete.
	aliasStride = 4096
)

// packedFrom is the number of rows from which panels of b are packed, whose rows are stride
// bytes apart.
func (p *product) packedFrom(stride int) int {
	far := p.k*stride > p.caches.Second
	if 2*p.k*stride > p.caches.Second && p.canFill() {
		return minFilledRows
	}
	fetches := p.isDeep(p.caches) && !p.caches.Fetched
	switch {
	case stride%aliasStride == 0:
		return minPackedAliasRows
	case p.width()*p.bytes <= 64 || far && !fetches:
		return minPackedRows
	case stride%(aliasStride/2) == 0:
		return minPackedHalfRows
	case far:
		return minPackedFarRows
	}
	return minPackedWideRows
}

// packTerms packs panels of the columns of b from j on, terms from t on, run by run.
func (p *product) packTerms(to byteMatrix, j, t, terms, columns int) {
	for end := t + terms; t < end; {
		some := min(end-t, p.runFrom(t))
		p.packPanels(to, p.right(t, j), some, columns)
		if t += some; t < end {
			to = to.at(some, 0)
		}
	}
}

// runFrom is the terms from t on whose rows of b are one stride apart.
func (p *product) runFrom(t int) int {
	if p.weights == nil {
		return p.k - t
	}
	n := p.weights.Terms
	return n - (p.begin+t)%n
}

// packPanels packs panels of some rows and columns of b.
func (p *product) packPanels(to, from byteMatrix, terms, columns int) {
	if p.apart != 0 {
		return // they are panels already
	}
	isGroup := columns == panelGroup*p.width() &&
		from.col == p.bytes
	if isGroup && p.copyGroup != nil &&
		p.packsPanel(from, columns) {
		p.copyGroup(
			terms, to.first(), p.panel(),
			from.first(), from.row,
		)
		return
	}
	for j := 0; j < columns; j += p.width() {
		if j > 0 { // never past the last: a pointer beyond its array must not be
			to.p = unsafe.Add(to.p, p.panel())
		}
		width := min(p.width(), columns-j)
		part := from.at(0, j)
		switch {
		case !p.packsPanel(part, width):
		case part.col != p.bytes || width < p.width():
			p.transposeFrom(to, part, terms, width)
		default:
			p.copy(to, part, terms)
		}
	}
}

// copyLines is copyGroup of panels of a line.
func copyLines(rows int, to *byte, panel int, from *byte, fromStride int) {
	copyPanels4(rows, to, 64, panel, from, fromStride)
}

// packsPanel reports whether a number of columns of b at from are packed.
func (p *product) packsPanel(from byteMatrix, columns int) bool {
	if p.apart != 0 || p.weights != nil {
		return p.apart == 0
	}
	if from.col != p.bytes ||
		columns < p.width() ||
		from.row == p.panels.row || p.packing != Suitable {
		return from.col != p.bytes ||
			columns >= p.width() && from.row != p.panels.row && p.packing == Packed
	}
	return p.m >= p.packedFrom(from.row)
}

// dividedRows is the rows of blocks of six at most, and how many of them have one more.
func dividedRows(m int) (rows, more int) {
	if m <= 6 {
		return m, 0
	}
	blocks := (m + 5) / 6
	return m / blocks, m % blocks
}

// strip multiplies by one panel or a pair, in blocks of rows as equal as can be.
func (p *product) strip(c, a, b byteMatrix, m, n, k int) {
	rows, more := dividedRows(m)
	if p.source.p != nil {
		first := rows + min(more, 1)
		p.fill(c, a, b, first, n, k)
		if m -= first; m == 0 {
			return
		}
		c = c.at(first, 0)
		a = a.at(first, 0)
		more = max(0, more-1)
	}
	if more > 0 {
		p.blocks(c, a, b, more, rows+1, n, k)
		if m -= more * (rows + 1); m == 0 {
			return
		}
		c = c.at(more*(rows+1), 0)
		a = a.at(more*(rows+1), 0)
	}
	p.blocks(c, a, b, m/rows, rows, n, k)
}

// blocks multiplies blocks of rows by one panel or a pair.
func (p *product) blocks(c, a, b byteMatrix, blocks, rows, n, k int) {
	switch {
	case n < p.width():
		p.maskedBlocks(
			c, a, b, blocks, rows, n, k,
		)
		return
	case n > p.width():
		p.run(nil, c, a, b, blocks, rows, k)
		return
	}
	if twice := blocks / 2; rows == tallRows/2 && p.tall != nil && twice > 0 {
		p.run(p.tall, c, a, b, twice, tallRows, k)
		if blocks -= 2 * twice; blocks == 0 {
			return
		}
		c = c.at(twice*tallRows, 0)
		a = a.at(twice*tallRows, 0)
	}
	p.run(p.full[rows-1], c, a, b, blocks, rows, k)
}

// run multiplies blocks of rows by a whole panel, or by a pair where no kernel is given. The
// kernel prefetches, in each turn of four terms, a line for every six rows of a panel.
func (p *product) run(multiply kernel, c, a, b byteMatrix, blocks, rows, k int) {
	lines := (rows + 5) / 6
	if multiply == nil {
		lines *= 2
	}
	each := k / 4 * lines // of a block
	for x := range p.prefetches {
		f := &p.prefetches[x]
		for each > 0 && p.more(f) {
			soon, step, taken := f.take(blocks * each)
			some := (taken + each - 1) / each
			p.runBlocks(
				multiply, c, a, b,
				some, rows, k, soon, step,
			)
			if blocks -= some; blocks == 0 {
				return
			}
			c = c.at(some*rows, 0)
			a = a.at(some*rows, 0)
		}
	}
	p.runBlocks(
		multiply, c, a, b,
		blocks, rows, k, uintptr(b.p), 0,
	)
}

// runBlocks runs a kernel, or that of pairs, which prefetches lines from soon on.
func (p *product) runBlocks(
	multiply kernel, c, a, b byteMatrix,
	blocks, rows, k int, soon uintptr, step int,
) {
	if multiply == nil {
		p.pairs[rows-1](
			blocks, k, a.first(), a.row,
			b.first(), b.row, p.beside,
			c.first(), c.row, soon, step,
			p.flags,
		)
		return
	}
	multiply(
		blocks, k, a.first(), a.row,
		a.col, b.first(), b.row,
		c.first(), c.row, nil, soon, step,
		p.flags,
	)
}

// maskedBlocks is blocks for a panel that is not as wide as the others.
func (p *product) maskedBlocks(c, a, b byteMatrix, blocks, rows, n, k int) {
	masked := p.masked[rows-1]
	masked(
		blocks, k, a.first(), a.row,
		a.col, b.first(), b.row,
		c.first(), c.row,
		p.masks(min(n, p.lanes)),
		uintptr(b.p), 0, p.flags,
	)
	if n > p.lanes {
		b.p, c.p = unsafe.Add(
			b.p, p.lanes*p.bytes,
		), unsafe.Add(c.p, p.lanes*p.bytes)
		masked(
			blocks, k, a.first(), a.row,
			a.col, b.first(), b.row,
			c.first(), c.row,
			p.masks(n-p.lanes),
			uintptr(b.p), 0, p.flags,
		)
	}
}

// panelOf copies k rows of a panel.
func panelOf[T Element](
	f *family, to, from Matrix[T], k int,
) {
	x := byteMatrixOf(to)
	y := byteMatrixOf(from)
	if from.Col == 1 {
		f.copy(x, y, k)
		return
	}
	f.transposeFrom(x, y, k, f.width())
}

// copy copies k rows of a panel, 64 bytes at a time.
func (f *family) copy(to, from byteMatrix, k int) {
	for at := 0; at < f.width()*f.bytes; at += 64 {
		copyPanels1(
			k,
			(*byte)(unsafe.Add(to.p, at)),
			to.row, 0,
			(*byte)(unsafe.Add(from.p, at)),
			from.row,
		)
	}
}

// transposeFrom packs k rows of n elements whose columns are not contiguous, in
// squares where its rows are.
func (f *family) transposeFrom(to, from byteMatrix, k, n int) {
	side := 32 / f.bytes
	rows, columns := 0, 0
	if from.row == f.bytes {
		rows = k / side * side
		columns = n / side * side
		for j := 0; j < columns; j += side {
			f.transpose(
				k/side,
				to.at(0, j).first(),
				to.row,
				from.at(0, j).first(),
				from.col,
			)
		}
	}
	f.gather(to, from, 0, rows, columns, n)
	f.gather(to, from, rows, k, 0, n)
}

// gather copies elements of rows p … q−1 and columns i … j−1.
func (f *family) gather(to, from byteMatrix, p, q, i, j int) {
	for ; p < q && i < j; p++ {
		t, s := to.at(p, i).p, from.at(p, i).p
		for n := j - i; n > 0; n-- {
			if f.bytes == 4 {
				*(*uint32)(t) = *(*uint32)(s)
			} else {
				*(*uint64)(t) = *(*uint64)(s)
			}
			if n > 1 {
				t = unsafe.Add(t, to.col)
				s = unsafe.Add(s, from.col)
			}
		}
	}
}
