package symtile

import (
	"iter"
	"slices"
)

// Tilings yields every legal tiling made of the sizes the space proposes, the
// last dimension fastest. A tiling is the caller's to keep. Proposed are, of a
// dimension,
//
//   - powers of two and the extent: whole vectors, and one tile;
//   - divisors of the extent: tiles without a masked rest;
//   - where tiles of a window's operand overlap by Halo, 2ⁿ − Halo: the operand's
//     tile is a power of two.
//
// Choices that no size of a later dimension can complete are not followed, so
// that the time is that of the tilings yielded; but for constraints that join
// more sizes than a table holds, which prune when their last size is chosen.
func (s *Space) Tilings() iter.Seq[Tiling] {
	return func(yield func(Tiling) bool) {
		b := s.buckets()
		if b.empty {
			return
		}
		w := b.enumeration(func(int) bool { return true })
		w.walk(0, func() bool { return yield(slices.Clone(w.at)) })
	}
}

// Boxed is the space of those tilings in which no tile has digits, for backends
// that cannot walk them.
func (s *Space) Boxed() *Space {
	if len(s.Boxes) == 0 {
		return s
	}
	boxed := *s
	if s.boxed != nil && s.legal.where.is(s.Where) && s.boxed.boxes.is(s.Boxes) {
		boxed.Where, boxed.legal = s.boxed.where, s.boxed
	} else {
		boxed.Where, boxed.legal = s.boxes(), nil
	}
	return &boxed
}

// boxes are the constraints of Boxed.
func (s *Space) boxes() Constraint {
	where := slices.Clip(s.Where)
	for _, clause := range s.Boxes {
		where = where.and(clause)
	}
	return where
}

// Count is the number of tilings Tilings yields; the greatest int64 stands for
// more. Only dimensions joined by more constraints than tables hold are
// enumerated for it.
func (s *Space) Count() int64 {
	b := s.buckets()
	if b.empty {
		return 0
	}
	n, open := int64(1), false
	for k := range b.sizes {
		if b.open[k] {
			open = true
		} else {
			n = satMul(n, b.ways[k])
		}
	}
	if !open {
		return n
	}
	rest := int64(0)
	w := b.enumeration(func(k int) bool { return b.open[k] })
	w.walk(0, func() bool { rest++; return true })
	return satMul(n, rest)
}

// proposals lists candidate sizes of a dimension, ascending.
func (d Dim) proposals() []int64 {
	n := max(1, d.Extent)
	sizes := []int64{n}
	for p := int64(1); p < n && p < 1<<62; p *= 2 {
		sizes = append(sizes, p)
	}
	for run := int64(1); d.Halo > 0 && run < satAdd(n, d.Halo) && run < 1<<62; run *= 2 {
		if run > d.Halo {
			sizes = append(sizes, run-d.Halo)
		}
	}
	for k := int64(2); k*k <= n && k < 1<<20; k++ {
		if n%k == 0 {
			sizes = append(sizes, k, n/k)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// An enumeration visits the legal choices of the dimensions.
type enumeration struct {
	*buckets
	dims    []int // those it walks, ascending
	at      Tiling
	choice  []int
	scratch []int64
}

func (b *buckets) enumeration(takes func(dim int) bool) *enumeration {
	w := &enumeration{buckets: b, at: make(Tiling, len(b.sizes)), choice: make([]int, len(b.sizes))}
	for k, sizes := range b.sizes {
		w.at[k] = sizes[0]
		if takes(k) {
			w.dims = append(w.dims, k)
		}
		if b.late[k] != nil {
			w.scratch = slices.Grow(w.scratch, b.late[k].ScratchLen())[:max(len(w.scratch), b.late[k].ScratchLen())]
		}
	}
	return w
}

// walk visits legal sizes of the n-th dimension and those after it; false stops
// it.
func (w *enumeration) walk(n int, visit func() bool) bool {
	if n == len(w.dims) {
		return visit()
	}
	d := w.dims[n]
	for k, size := range w.sizes[d] {
		w.at[d], w.choice[d] = size, k
		if w.legal(d) && !w.walk(n+1, visit) {
			return false
		}
	}
	return true
}

// legal says whether the choices up to d can be completed, as far as tables go.
func (w *enumeration) legal(d int) bool {
	for _, t := range w.factors[d] {
		if t.count[t.index(w.choice)] == 0 {
			return false
		}
	}
	return w.late[d] == nil || w.late[d].Holds(w.at, w.scratch)
}
