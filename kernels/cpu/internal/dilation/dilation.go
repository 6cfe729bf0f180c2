// Package dilation divides the product of a transposed convolution by what of its terms lies on
// elements. It knows the dimensions of windows, and neither programs nor arrays.
//
// The windows of a transposed convolution, whose array is dilated, lie on zeros with most of
// their terms. Which terms do not depends on the place of the window only, and is the same for
// every few of them: rows of one phase are multiplied by the terms that they have elements
// for, one place of a window after the other, in the order of the whole product. Of a window
// of four by four over an array with one zero between elements these are four places:
//
//	windows of even rows and columns    windows of odd ones
//	  x . x .                             . . . .
//	  . . . .                             . x . x
//	  x . x .                             . . . .
//	  . . . .                             . x . x
package dilation

import "slices"

// MaxDims is the most dilated dimensions, and the most dimensions of rows or of terms.
const MaxDims = 16

// A Distance is places along each dilated dimension.
type Distance [MaxDims]int64

// A Dim is a dimension of rows or of terms.
type Dim struct {
	Size int64
	From int64 // The stride in the left operand, in elements.
	To   int64 // Of rows, the stride in the result; of terms, in rows of the right operand.
	// The dilated dimension that it moves along, or −1, and the places of a step on the
	// dilated array, gaps among them.
	Along int
	Step  int64
}

// Windows are windows of a dilated array as rows of a left operand. The last dimension of Rows
// is divided into phases, and that of Terms, contiguous elements of no dilated dimension, is
// multiplied at once.
type Windows struct {
	Rows, Terms []Dim
	// The distance of elements along each dilated dimension, in places; 1 where there are no gaps.
	By []int64
}

// A Phase is rows that have elements for the same terms.
type Phase struct {
	Rows     int   // How many they are.
	From, To int64 // Where the first one begins in the left operand and in the result.
	// How far it lies behind an element along each dilated dimension.
	behind Distance
}

// Period is the rows after which those of the last dimension of rows have the same phase.
func (w *Windows) Period() int64 {
	last := w.Rows[len(w.Rows)-1]
	if last.Along < 0 {
		return 1
	}
	by := w.By[last.Along]
	for n := int64(1); n < by; n++ {
		if n*last.Step%by == 0 {
			return n
		}
	}
	return by
}

// Strides are the distances of the rows of a phase in the left operand and in the result.
func (w *Windows) Strides() (from, to int64) {
	last := w.Rows[len(w.Rows)-1]
	period := w.Period()
	return period * last.From, period * last.To
}

// RowsAtOnce is the most rows of a phase; none has more than one row less.
func (w *Windows) RowsAtOnce() int {
	last := w.Rows[len(w.Rows)-1]
	return int((last.Size-1)/w.Period()) + 1
}

// TermsAtOnce is the terms of a place.
func (w *Windows) TermsAtOnce() int {
	return int(w.Terms[len(w.Terms)-1].Size)
}

// Each visits all phases, whose rows are all rows, until visit returns false. The first row lies
// behind an element as many places along each dilated dimension as behind has.
func (w *Windows) Each(
	behind *Distance,
	visit func(*Phase) bool,
) {
	last := w.Rows[len(w.Rows)-1]
	period := w.Period()
	var row place
	for more := true; more; more = row.next(w.Rows) {
		for n := range min(period, last.Size) {
			p := Phase{
				Rows:   int((last.Size-1-n)/period) + 1,
				From:   row.from + n*last.From,
				To:     row.to + n*last.To,
				behind: *behind,
			}
			row.move(w.Rows, &p.behind)
			if last.Along >= 0 {
				p.behind[last.Along] += n * last.Step
			}
			if !visit(&p) {
				return
			}
		}
	}
}

// EachTerm visits the places of terms that the rows of a phase have elements for, in the order
// of terms: where the first term lies behind the beginning of a row, and its row of the right
// operand.
func (w *Windows) EachTerm(
	p *Phase, visit func(from, to int64),
) {
	var term place
	for more := true; more; more = term.next(w.Terms) {
		// Distances add up: that of the window, and that of the term within it.
		at := p.behind
		term.move(w.Terms, &at)
		if w.isElement(&at) {
			visit(term.from, term.to)
		}
	}
}

// isElement reports whether a place of the dilated array is no gap.
func (w *Windows) isElement(at *Distance) bool {
	for k, by := range w.By {
		if at[k]%by != 0 {
			return false
		}
	}
	return true
}

// A place is indices of all dimensions but the last, and where the row or term is.
type place struct {
	index    [MaxDims]int64
	from, to int64
}

// next goes to the next place and reports false after the last.
func (p *place) next(dims []Dim) bool {
	outer := dims[:len(dims)-1]
	for k, d := range slices.Backward(outer) {
		p.from += d.From
		p.to += d.To
		p.index[k]++
		if p.index[k] < d.Size {
			return true
		}
		p.from -= d.Size * d.From
		p.to -= d.Size * d.To
		p.index[k] = 0
	}
	return false
}

// move adds how far the place is along each dilated dimension.
func (p *place) move(dims []Dim, along *Distance) {
	for k, d := range dims[:len(dims)-1] {
		if d.Along >= 0 {
			along[d.Along] += p.index[k] * d.Step
		}
	}
}
