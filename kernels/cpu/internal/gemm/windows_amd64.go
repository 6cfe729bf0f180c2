//go:build !noasm

package gemm

import "unsafe"

const (
	// minPlacedRun and minPlacedRows are the terms of a run and the rows of a group from
	// which blocks read windows in place: c is read and written for each run, and a kernel
	// is called for each group.
	minPlacedRun  = 96
	minPlacedRows = 24
	// runBytes is the bytes that packRuns copies at a time.
	runBytes = 32
)

// ReadsByteWindows reports whether MultiplyInt8 reads windows of bytes.
func ReadsByteWindows() bool { return readsBytes() }

// A windowSource is windows of an array that begins at p, with strides in bytes.
type windowSource struct {
	*Windows
	p     unsafe.Pointer
	row   int
	size  int // bytes of an element
	bytes int // of the array
	first int // the term that is term 0
}

// windowsOf is the windows of a product, without Windows where A has none.
func windowsOf[T Element](x Product[T]) windowSource {
	if x.Windows == nil {
		return windowSource{}
	}
	operands, sizes := operandsOf(x)
	n := len(x.Short[0].Data)
	if x.Short[0].Size == 0 {
		n = len(x.A.Data) * sizes[0]
	}
	return windowSource{
		Windows: x.Windows,
		p:       operands[0].p,
		row:     operands[0].row,
		size:    sizes[0],
		bytes:   n,
		first:   x.first,
	}
}

// A windowPart is rows and terms of windows.
type windowPart struct{ row, rows, term, terms int }

// A windowRun is a run as packRuns reads it.
type windowRun struct{ at, vectors, bytes int }

// runs lists the runs of a part, and how far behind its row they are read.
func (x *windowSource) runs(part windowPart, to *[maxRuns]windowRun) (n, reach int) {
	term := x.first + part.term
	for end := term + part.terms; term < end; n++ {
		in := term % x.Terms
		some := min(x.Terms-in, end-term)
		at := x.Runs[term/x.Terms] + in
		r := windowRun{
			at:    at * x.size,
			bytes: some * x.size,
		}
		r.vectors = (r.bytes-1)/runBytes + 1
		last := r.at + r.vectors*runBytes
		reach = max(reach, last)
		to[n] = r
		term += some
	}
	return n, reach
}

// pack copies a part to rows, of which what follows the last term may be overwritten.
func (x *windowSource) pack(to byteMatrix, part windowPart, flip *[4]byte) {
	var runs [maxRuns]windowRun
	n, reach := x.runs(part, &runs)
	row := part.row
	end := row + part.rows
	for row < end {
		in := row % x.Rows
		some := min(x.Rows-in, end-row)
		group := x.Groups[row/x.Rows]
		at := group*x.size + in*x.row
		// Rows whose last vectors end in the array; others are copied byte by byte.
		inside := 0
		if left := x.bytes - reach - at; left >= 0 {
			inside = left/max(1, x.row) + 1
			inside = min(some, inside)
		}
		from := (*byte)(unsafe.Add(x.p, at))
		packRuns(
			inside, n,
			(*byte)(unsafe.Pointer(&runs)),
			to.first(), to.row,
			from, x.row,
			&flip[0],
		)
		for r := inside; r < some; r++ {
			x.packRow(
				to.at(r, 0).p,
				at+r*x.row,
				runs[:n], flip,
			)
		}
		if row += some; row < end {
			to = to.at(some, 0)
		}
	}
}

// packRow copies a row whose vectors would end behind the array.
func (x *windowSource) packRow(
	to unsafe.Pointer, at int,
	runs []windowRun, flip *[4]byte,
) {
	for _, r := range runs {
		from := unsafe.Add(x.p, at+r.at)
		copyBytes(to, from, r.bytes)
		row := unsafe.Slice((*byte)(to), r.bytes)
		for k := range row {
			row[k] ^= flip[0]
		}
		to = unsafe.Add(to, r.bytes)
	}
}

// windowsInPlace reports whether blocks read windows where they are.
func (x Product[T]) windowsInPlace(f *family) bool {
	w := x.Windows
	if w == nil || x.Packing == Packed {
		return false
	}
	return w.Terms >= minPlacedRun &&
		w.Rows >= minPlacedRows
}

// blockingOf is the blocking of a product: of windows in place, whole runs or equal parts of
// them; others are packed however narrow the product is.
func blockingOf[T Element](f *family, x Product[T]) blocking {
	c := f.cachesOf(x.Caches, x.M)
	switch {
	case x.Windows == nil:
		return f.blocking(
			c, x.M, x.N, x.K,
		)
	case x.windowsInPlace(f):
		run := x.Windows.Terms
		return blocking{
			rows:    x.M,
			columns: x.N,
			terms:   evenParts(run, f.depth(c), 8),
		}
	}
	b := f.slabBlocking(c, x.M, x.N, x.K)
	most := (maxRuns - 2) * MinRun
	b.terms = min(b.terms, most)
	return b
}

// windowScratch is the bytes that a product of windows needs.
func (x Product[T]) windowScratch() int {
	if x.Windows == nil {
		return 0
	}
	f := familyOf[T]()
	most := 0
	for _, packing := range []Packing{Suitable, Packed} {
		x.Packing = packing
		p := product{
			family:   f,
			blocking: blockingOf(f, x),
			inPlace:  x.windowsInPlace(f),
		}
		panels := p.blocking.panels(f, x.M)
		panel := p.terms * f.width() * f.bytes
		need := p.slabBytes() + panels*panel
		most = max(most, need)
	}
	return most
}

// slabBytes is the bytes of the slab.
func (p *product) slabBytes() int {
	if p.inPlace {
		return 0
	}
	return p.blocking.slab(p.family)
}

// termsFrom is the terms of the blocks from one on: those that read windows in place read one
// run.
func (p *product) termsFrom(t int) int {
	terms := min(p.terms, p.k-t)
	if p.inPlace {
		w := p.windows.Windows
		in := (p.windows.first + t) % w.Terms
		terms = min(terms, w.Terms-in)
	}
	return terms
}

// windowStrips multiplies all windows, of some terms of a run, by one panel.
func (p *product) windowStrips(i, j, t int, b byteMatrix, n, k int) {
	w := p.windows.Windows
	term := p.windows.first + t
	run := w.Runs[term/w.Terms]
	run += term % w.Terms
	for ; i < p.m; i += w.Rows {
		at := w.Groups[i/w.Rows] + run
		a := p.a
		a.p = unsafe.Add(a.p, at*p.bytes)
		rows := min(w.Rows, p.m-i)
		c := p.c.at(i, j)
		p.strip(c, a, b, rows, n, k)
	}
}
