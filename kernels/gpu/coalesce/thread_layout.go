package coalesce

import (
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// A ThreadLayout gives the elements of a box to the threads of a block. The box is
// seen as a matrix: outer dimensions, and inner ones, the last of which is the
// last fastest. Lanes threads stand along the inner side, each with Vector
// neighbouring elements; the others along the outer side.
type ThreadLayout struct {
	Sizes                        []int64
	Outer, Inner                 []int // dimensions, the slowest first
	InnerThreads                 int64 // a power of two
	OuterThreads                 int64 // threads along the outer side
	Vector                       int64
	OuterElements, InnerElements int64 // elements of either side
	OuterRounds                  int64
	InnerRounds                  int64
	// Pieces say that what a thread has of a side in its rounds follows each
	// other; else threads take turns.
	OuterBlocked, InnerBlocked bool
}

// NewThreadLayout divides threads by lanes, which divide them.
func NewThreadLayout(sizes []int64, outer, inner []int, threads, lanes, vector int64) *ThreadLayout {
	s := &ThreadLayout{
		Sizes:        sizes,
		Outer:        outer,
		Inner:        inner,
		InnerThreads: lanes,
		OuterThreads: threads / lanes,
		Vector:       vector,
	}
	s.OuterElements, s.InnerElements = s.side(outer),
		s.side(inner)
	s.OuterRounds, s.InnerRounds = index.CeilDiv(s.OuterElements, s.OuterThreads),
		index.CeilDiv(s.InnerElements, lanes*vector)
	return s
}

func (s *ThreadLayout) side(dims []int) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= s.Sizes[d]
	}
	return n
}

// PerThread is the elements of a thread.
func (s *ThreadLayout) PerThread() int64 {
	return s.OuterRounds * s.InnerRounds * s.Vector
}

// Order is all dimensions, the slowest first.
func (s *ThreadLayout) Order() []int {
	return slices.Concat(s.Outer, s.Inner)
}

// FastestDim is the last dimension of an order that has more than one element, or
// the last; −1 where there is none.
func FastestDim(sizes []int64, order []int) int {
	for _, d := range slices.Backward(order) {
		if sizes[d] > 1 {
			return d
		}
	}
	if len(order) == 0 {
		return -1
	}
	return order[len(order)-1]
}

// outerIndex and innerIndex are the numbers of the row and of the first element of the
// vector that a thread has in a round.
func outerIndex[T index.Number[T]](s *ThreadLayout, thread, round T) T {
	if s.OuterBlocked {
		return thread.Div(s.InnerThreads).Scale(s.OuterRounds).Add(round)
	}
	return round.Scale(s.OuterThreads).Add(thread.Div(s.InnerThreads))
}

func innerIndex[T index.Number[T]](s *ThreadLayout, thread, round T) T {
	if s.InnerBlocked {
		return thread.Mod(s.InnerThreads).Scale(s.InnerRounds).Add(round).Scale(s.Vector)
	}
	return round.Scale(s.InnerThreads).Add(thread.Mod(s.InnerThreads)).Scale(s.Vector)
}

// OuterIndex is the number of the row that a thread has in a round.
func (s *ThreadLayout) OuterIndex(thread, round index.Expr) index.Expr {
	return outerIndex(s, thread, round)
}

// InnerIndex is the number of the first element of a row of the vector that a thread has
// in a round.
func (s *ThreadLayout) InnerIndex(thread, round index.Expr) index.Expr {
	return innerIndex(s, thread, round)
}

// SetIndices sets the indices of the dimensions of a side to those of number n of it.
func (s *ThreadLayout) SetIndices(
	at []index.Expr, side []int, n index.Expr,
) {
	if len(side) == 0 {
		return
	}
	for k, x := range index.Delinearize(n, s.extents(side)) {
		at[side[k]] = x
	}
}

func (s *ThreadLayout) extents(side []int) []int64 {
	sizes := make([]int64, len(side))
	for k, d := range side {
		sizes[k] = s.Sizes[d]
	}
	return sizes
}

// A Box is the elements of a tile that the threads of a block go over, and what
// a thread can take at once.
type Box struct {
	Sizes   []int64
	Threads int64 // a power of two
	Vector  int64 // at most so many elements that follow each other
}

// contiguous is how many elements follow each other in an order.
func (b Box) contiguous(order []int) int64 {
	if d := FastestDim(b.Sizes, order); d >= 0 {
		return b.Sizes[d]
	}
	return 1
}

func (b Box) elements() int64 {
	n, _ := index.Product(b.Sizes)
	return n
}

// VectorWidth is how many elements a thread takes at most at once where fast of them
// follow each other: no thread goes without for it.
func (b Box) VectorWidth(fast int64) int64 {
	v := max(1, b.Vector)
	for v > 1 &&
		(fast%v != 0 || b.elements()/v < b.Threads) {
		v /= 2
	}
	return v
}

// ElementwiseLayouts lists the spreads of the box along one side: for every order of its
// dimensions, those that are like the order given first, the widest vectors and
// then less wide ones.
func (b Box) ElementwiseLayouts(order []int) (all []*ThreadLayout) {
	for _, o := range orders(b.Sizes, order) {
		for v := b.VectorWidth(b.contiguous(o)); v >= 1; v /= 2 {
			all = append(
				all,
				NewThreadLayout(b.Sizes, nil, o, b.Threads, b.Threads, v),
			)
		}
	}
	return all
}

// A Reduction is a reduction of a box along some of its dimensions.
type Reduction struct {
	Reduced    []int64
	Ordered    bool  // elements are folded in the order of their indices
	MaxResults int64 // that a thread keeps at most
	// Too are arrays that are gone over by the same spread if the inner side is
	// the reduced one, Else what going over them otherwise moves.
	InnerAccesses []ArrayAccess
	OuterCount    Count
}

// ReductionLayouts lists the spreads of a reduction: one side is reduced, either the inner
// or the outer one. Where the order of elements counts, the threads of a result
// have pieces of it one after the other. Spreads in which a thread keeps too
// many results are left out, unless all are such.
func (b Box) ReductionLayouts(order []int, f Reduction) (all []*ThreadLayout) {
	var gone, kept []int
	for _, d := range order {
		if slices.Contains(f.Reduced, int64(d)) {
			gone = append(gone, d)
		} else {
			kept = append(kept, d)
		}
	}
	inside := len(kept) == 0 ||
		slices.Contains(gone, FastestDim(b.Sizes, order))
	var tooMany []*ThreadLayout
	for _, inside := range []bool{inside, !inside} {
		if inside && len(gone) == 0 && len(kept) > 0 ||
			!inside && len(kept) == 0 {
			continue
		}
		for _, s := range b.reductionLayoutsAlong(gone, kept, f, inside) {
			if s.results(inside) <= f.MaxResults {
				all = append(all, s)
			} else {
				tooMany = append(tooMany, s)
			}
		}
	}
	if len(all) == 0 {
		return tooMany
	}
	return all
}

// results is how many results of a reduction a thread keeps.
func (s *ThreadLayout) results(inside bool) int64 {
	if inside {
		return s.OuterRounds
	}
	return s.InnerRounds * s.Vector
}

// ReducesInner says whether the inner side of a reduction's spread is the reduced one.
func (f Reduction) ReducesInner(s *ThreadLayout) bool {
	if len(s.Inner) == 0 {
		return len(s.Outer) == 0
	}
	return slices.Contains(
		f.Reduced, int64(s.Inner[0]),
	)
}

func (b Box) reductionLayoutsAlong(
	gone, kept []int, f Reduction, inside bool,
) (all []*ThreadLayout) {
	goneOrders := orders(b.Sizes, gone)
	if f.Ordered {
		goneOrders = [][]int{
			slices.Sorted(slices.Values(gone)),
		}
	}
	outers := goneOrders
	inners := orders(b.Sizes, kept)
	if inside {
		outers, inners = inners, outers
	}
	for _, outer := range outers {
		for _, inner := range inners {
			for v := b.VectorWidth(b.contiguous(inner)); v >= 1; v /= 2 {
				s := NewThreadLayout(
					b.Sizes, outer, inner, b.Threads,
					b.reductionInnerThreads(outer, inner, v, inside), v,
				)
				s.OuterBlocked = f.Ordered && !inside
				s.InnerBlocked = f.Ordered && inside
				all = append(all, s)
			}
		}
	}
	return all
}

// reductionInnerThreads is how many threads stand along the inner side of a reduction.
func (b Box) reductionInnerThreads(outer, inner []int, v int64, inside bool) int64 {
	s := NewThreadLayout(
		b.Sizes, outer, inner, b.Threads, b.Threads, v,
	)
	if inside && len(outer) == 0 { // the result is one that all threads may ask for
		return b.Threads
	}
	lanes := min(
		b.Threads, powerOver(index.CeilDiv(s.InnerElements, v)),
	)
	if inside { // rows first get a warp each, then what is left
		lanes = min(
			lanes, max(warpThreads, b.Threads/powerOver(s.OuterElements)),
		)
	}
	return lanes
}

// warpThreads access memory together, where nothing else is said.
const warpThreads = 32

// powerOver is the least power of two that is not under n.
func powerOver(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}

// maxOrdered is of how many dimensions all orders are looked at; of more it is
// all choices of the two fastest.
const maxOrdered = 4

// orders lists orders of dims, the one given first. Dimensions of one element
// come last, where they cost nothing.
func orders(sizes []int64, dims []int) (all [][]int) {
	var long, short []int
	for _, d := range dims {
		if sizes[d] > 1 {
			long = append(long, d)
		} else {
			short = append(short, d)
		}
	}
	permute(
		long, len(long),
		min(len(long), max(maxOrdered, 2)),
		func(o []int) {
			all = append(all, slices.Concat(o, short))
		},
	)
	return all
}

// permute visits the orders of the first n of dims, with what comes after them
// as it is: at first as they are. Only the fastest places are filled by others
// than the next.
func permute(dims []int, n, places int, visit func([]int)) {
	if len(dims) > maxOrdered && places == maxOrdered {
		places = 2
	}
	if n <= 1 || places == 0 {
		visit(dims)
		return
	}
	for k := n - 1; k >= 0; k-- {
		next := slices.Insert(
			slices.Delete(slices.Clone(dims[:n]), k, k+1),
			n-1,
			dims[k],
		)
		permute(
			append(next, dims[n:]...),
			n-1, places-1, visit,
		)
	}
}
