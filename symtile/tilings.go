package symtile

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// Tilings yields every legal tiling made of the sizes that the space proposes,
// the last dimension fastest. A tiling is the caller's to keep. The sizes
// proposed for a dimension are
//
//   - powers of two and the extent: whole vectors, and one tile;
//   - divisors of the extent: tiles without a masked rest;
//   - where tiles of a window's operand overlap by Halo, 2ⁿ − Halo: the
//     operand's tile is a power of two.
//
// Choices that no size of a later dimension can complete are pruned, so that
// the time is proportional to the tilings yielded. The exception is constraints
// between more sizes than a table holds; these prune when their last size is
// chosen.
func (s *Space) Tilings() iter.Seq[Tiling] {
	return func(yield func(Tiling) bool) {
		b := s.buckets()
		if b.empty {
			return
		}
		w := b.enumeration(func(int) bool { return true })
		w.walk(0, func() bool {
			return yield(slices.Clone(w.at))
		})
	}
}

// Sizes are the tile sizes of dimension k that Tilings proposes, ascending. The
// slice is the space's.
func (s *Space) Sizes(k int) []int64 { return s.buckets().sizes[k] }

// Sample yields every tiling when there are at most n, as Tilings does, and
// else n of them, distributed evenly over the sizes of every dimension; always
// the same ones.
//
// The sample follows an additive recurrence in as many dimensions as the space
// has (Roberts, The Unreasonable Effectiveness of Quasirandom Sequences, 2018):
// point k is frac(k·φ⁻ʲ) in dimension j, where φ is the root of φᵈ⁺¹ = φ + 1. A
// quarter of each dimension goes to its largest size, since whole rows in
// several dimensions at once would be rare otherwise.
func (s *Space) Sample(n int) iter.Seq[Tiling] {
	return func(yield func(Tiling) bool) {
		b := s.buckets()
		if b.empty || n <= 0 {
			return
		}
		if s.atMost(n) {
			s.Tilings()(yield)
			return
		}
		for _, t := range b.sample(n) {
			if !yield(t) {
				return
			}
		}
	}
}

// atMost reports whether there are no more than n tilings. It enumerates n + 1
// at most where they cannot be counted.
func (s *Space) atMost(n int) bool {
	b := s.buckets()
	if !slices.Contains(b.uncounted, true) {
		return s.Count() <= int64(n)
	}
	w := b.enumeration(func(int) bool { return true })
	return w.walk(0, func() bool {
		n--
		return n >= 0
	})
}

// drawsPerTiling bounds the points evaluated for each tiling of a sample:
// several points may be the same tiling, and some cannot be completed.
const drawsPerTiling = 4

// sample draws n tilings, and continues with the first ones of the enumeration
// where it draws too few.
func (b *buckets) sample(n int) []Tiling {
	w := b.enumeration(func(int) bool { return true })
	seen := make(map[string]bool, n)
	var all []Tiling
	var key []byte
	enter := func() bool {
		key = key[:0]
		for _, k := range w.choice {
			key = binary.AppendUvarint(key, uint64(k))
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			all = append(all, slices.Clone(w.at))
		}
		return len(all) < n
	}
	steps := recurrence(len(b.sizes))
	for k := 0; k < drawsPerTiling*n && len(all) < n; k++ {
		if w.draw(float64(k), steps) {
			enter()
		}
	}
	if len(all) < n {
		w.walk(0, enter)
	}
	return all
}

// recurrence is φ⁻¹ … φ⁻ᵈ.
func recurrence(d int) []float64 {
	phi := 1.5
	for range 50 {
		phi = math.Pow(1+phi, 1/float64(d+1))
	}
	steps := make([]float64, d)
	for k := range steps {
		steps[k] = math.Pow(phi, -float64(k+1))
	}
	return steps
}

// draw chooses the sizes at a point of the sequence; false where it meets a
// dimension of which no size is legal.
func (w *enumeration) draw(point float64, steps []float64) bool {
	legal := w.drawn
	for d, sizes := range w.sizes {
		legal = legal[:0]
		for k, size := range sizes {
			w.at[d], w.choice[d] = size, k
			if w.legal(d) {
				legal = append(legal, k)
			}
		}
		if len(legal) == 0 {
			return false
		}
		_, part := math.Modf(0.5 + point*steps[d])
		last := len(legal) - 1
		k := legal[min(last, int(part*float64(last)*4/3))]
		w.at[d], w.choice[d] = sizes[k], k
		w.drawn = legal
	}
	return true
}

// Boxed is the space of those tilings in which no tile has digits, for backends
// that cannot iterate over digits.
func (s *Space) Boxed() *Space {
	if len(s.Boxes) == 0 {
		return s
	}
	boxed := *s
	if s.boxed != nil &&
		sameSlice(s.legal.where, s.Where) &&
		sameSlice(s.boxed.boxes, s.Boxes) {
		boxed.Where = s.boxed.where
		boxed.legal = s.boxed
	} else {
		boxed.Where = s.boxes()
		boxed.legal = nil
	}
	return &boxed
}

// boxes is Where with Boxes.
func (s *Space) boxes() index.Constraint {
	where := slices.Clip(s.Where)
	for _, clause := range s.Boxes {
		where = where.With(clause)
	}
	return where
}

// Count is the number of tilings that Tilings yields, at most math.MaxInt64. It
// multiplies and adds the tables of the elimination, and enumerates only
// dimensions that have constraints too large for a table.
func (s *Space) Count() int64 {
	b := s.buckets()
	if b.empty {
		return 0
	}
	n, open := int64(1), false
	for k := range b.sizes {
		if b.uncounted[k] {
			open = true
		} else {
			n = index.SatMul(n, b.ways[k])
		}
	}
	if !open {
		return n
	}
	rest := int64(0)
	w := b.enumeration(func(k int) bool {
		return b.uncounted[k]
	})
	w.walk(0, func() bool { rest++; return true })
	return index.SatMul(n, rest)
}

// proposals are the sizes that Tilings tries for the dimension, in ascending
// order.
func (d Dim) proposals() []int64 {
	n := max(1, d.Extent)
	sizes := []int64{n}
	for p := int64(1); p < n && p < 1<<62; p *= 2 {
		sizes = append(sizes, p)
	}
	for run := int64(1); d.Halo > 0 &&
		run < index.SatAdd(n, d.Halo) &&
		run < 1<<62; run *= 2 {
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

// An enumeration chooses a size of each dimension, in order. The dimensions
// that it does not enumerate keep their first size.
type enumeration struct {
	*buckets
	// dims are the dimensions that are enumerated, in ascending order.
	dims []int
	// at is the sizes chosen so far, choice their positions among the
	// proposals.
	at      Tiling
	choice  []int
	scratch []int64
	drawn   []int // positions of the legal sizes of a dimension, while one is drawn
}

// enumeration prepares to enumerate the dimensions that takes reports.
func (b *buckets) enumeration(enumerates func(dim int) bool) *enumeration {
	w := &enumeration{
		buckets: b,
		at:      make(Tiling, len(b.sizes)),
		choice:  make([]int, len(b.sizes)),
	}
	for k, sizes := range b.sizes {
		w.at[k] = sizes[0]
		if enumerates(k) {
			w.dims = append(w.dims, k)
		}
		if b.untabulated[k] != nil {
			w.scratch = slices.Grow(
				w.scratch, b.untabulated[k].ScratchLen(),
			)[:max(len(w.scratch), b.untabulated[k].ScratchLen())]
		}
	}
	return w
}

// walk visits all legal sizes of the n-th dimension and of those after it;
// false stops it.
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

// legal reports whether the choices up to dimension d can be completed, as far
// as the tables tell.
func (w *enumeration) legal(d int) bool {
	for _, t := range w.factors[d] {
		if t.count[t.index(w.choice)] == 0 {
			return false
		}
	}
	return w.untabulated[d] == nil ||
		w.untabulated[d].Holds(w.at, w.scratch)
}

// Completions say how tilings that have their first sizes go on. They are for one goroutine
// at a time.
type Completions struct{ w *enumeration }

// Completions are those of the tilings that Tilings yields.
func (s *Space) Completions() *Completions {
	b := s.buckets()
	return &Completions{b.enumeration(func(int) bool { return !b.empty })}
}

// After appends the sizes of dimension n, ascending, with which the first n sizes of t can be
// completed to a legal tiling. Those of the last dimension are exactly the legal ones; where
// constraints are between more sizes than a table holds, some of the others cannot be
// completed.
func (c *Completions) After(t Tiling, n int, sizes []int64) []int64 {
	w := c.w
	if w.empty {
		return sizes
	}
	for d, size := range t[:n] {
		at, found := slices.BinarySearch(w.sizes[d], size)
		if !found {
			return sizes
		}
		w.at[d], w.choice[d] = size, at
	}
	for k, size := range w.sizes[n] {
		if w.at[n], w.choice[n] = size, k; w.legal(n) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}
