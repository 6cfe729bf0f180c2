package coalesce

import (
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// A ThreadLayout assigns the elements of a box to the threads of a block, as a
// blocked layout of Triton or a thread-value layout of CuTe does. The box is
// seen as a matrix of rows: the outer dimensions number the rows, the inner
// ones the elements of a row, the last dimension fastest. InnerThreads threads
// share a row, each with Vector neighbouring elements at a time; OuterThreads
// is the rows at a time. Threads repeat that for the rounds that it takes.
type ThreadLayout struct {
	// Sizes are the extents of the box.
	Sizes []int64
	// Outer and Inner are dimensions of the box, the slowest first.
	Outer, Inner []int
	// InnerThreads is a power of two.
	InnerThreads int64
	// OuterThreads is the threads of a block over InnerThreads.
	OuterThreads int64
	// Vector is the elements of a thread in a round, neighbours in a row.
	Vector int64
	// OuterElements is the number of rows, InnerElements that of the elements
	// in a row.
	OuterElements, InnerElements int64
	// OuterRounds and InnerRounds are how often the threads advance along each
	// side.
	OuterRounds int64
	InnerRounds int64
	// OuterBlocked and InnerBlocked report that the elements of a thread along
	// a side are contiguous; else threads are interleaved.
	OuterBlocked, InnerBlocked bool
	// OuterRun is the number of neighbouring rows of a thread, in as many rounds, where
	// rows are interleaved by runs; 0 is 1. It divides OuterRounds.
	OuterRun int64
}

// NewThreadLayout divides threads, a power of two, into lanes along the inner
// side and the others along the outer side.
func NewThreadLayout(sizes []int64, outer, inner []int, threads, lanes, vector int64) *ThreadLayout {
	s := &ThreadLayout{
		Sizes:        sizes,
		Outer:        outer,
		Inner:        inner,
		InnerThreads: lanes,
		OuterThreads: threads / lanes,
		Vector:       vector,
	}
	s.OuterElements = s.side(outer)
	s.InnerElements = s.side(inner)
	s.OuterRounds = index.CeilDiv(s.OuterElements, s.OuterThreads)
	s.InnerRounds = index.CeilDiv(s.InnerElements, lanes*vector)
	return s
}

// side is the number of elements of one side.
func (s *ThreadLayout) side(dims []int) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= s.Sizes[d]
	}
	return n
}

// PerThread is the number of elements of a thread.
func (s *ThreadLayout) PerThread() int64 {
	return s.OuterRounds * s.InnerRounds * s.Vector
}

// Order is all dimensions, the slowest first.
func (s *ThreadLayout) Order() []int {
	return slices.Concat(s.Outer, s.Inner)
}

// FastestDim is the last dimension of an order that has more than one element,
// or the last; −1 where there is none.
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

// outerIndex is the number of the row that a thread has in a round. Numbers and
// expressions share the formula.
func outerIndex[T index.Number[T]](s *ThreadLayout, thread, round T) T {
	if s.OuterBlocked {
		return thread.Div(s.InnerThreads).Scale(s.OuterRounds).Add(round)
	}
	if run := s.OuterRun; run > 1 {
		first := round.Div(run).Scale(s.OuterThreads).Add(thread.Div(s.InnerThreads))
		return first.Scale(run).Add(round.Mod(run))
	}
	return round.Scale(s.OuterThreads).Add(thread.Div(s.InnerThreads))
}

// innerIndex is the number, within a row, of the first element of the vector
// that a thread has in a round.
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

// InnerIndex is the number, within a row, of the first element of the vector
// that a thread has in a round.
func (s *ThreadLayout) InnerIndex(thread, round index.Expr) index.Expr {
	return innerIndex(s, thread, round)
}

// SetIndices sets the indices of the dimensions of a side to those of its
// element number n.
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

// extents are those of the dimensions of a side.
func (s *ThreadLayout) extents(side []int) []int64 {
	sizes := make([]int64, len(side))
	for k, d := range side {
		sizes[k] = s.Sizes[d]
	}
	return sizes
}

// A Box is the elements of a tile that the threads of a block process together.
type Box struct {
	Sizes []int64
	// Threads is the threads of a block, a power of two.
	Threads int64
	// Vector is the most neighbouring elements that a thread processes at once;
	// 0 is 1.
	Vector int64
}

// contiguous is the number of neighbouring elements in an order.
func (b Box) contiguous(order []int) int64 {
	if d := FastestDim(b.Sizes, order); d >= 0 {
		return b.Sizes[d]
	}
	return 1
}

// elements is the number of elements of the box.
func (b Box) elements() int64 {
	n, _ := index.Product(b.Sizes)
	return n
}

// VectorWidth is the elements that a thread processes at once where contiguous
// of them are neighbours: as many as divide these and leave no thread without
// elements.
func (b Box) VectorWidth(fast int64) int64 {
	v := max(1, b.Vector)
	for v > 1 &&
		(fast%v != 0 || b.elements()/v < b.Threads) {
		v /= 2
	}
	return v
}

// ElementwiseLayouts lists the layouts of the box along one side: every order
// of its dimensions, the order given first, with the widest vectors and then
// narrower ones.
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
	// Reduced are the reduced dimensions.
	Reduced []int64
	// Ordered reports that elements are combined in the order of their indices,
	// because the operation is not known to be associative and commutative.
	Ordered bool
	// MaxResults is the most results that a thread may hold.
	MaxResults int64
	// InnerAccesses are arrays that are accessed with the same layout if its
	// inner side is the reduced one; OuterCount is what accessing them moves
	// otherwise.
	InnerAccesses []ArrayAccess
	OuterCount    Count
}

// ReductionLayouts lists the layouts of a reduction, in which one side, the
// inner or the outer one, is reduced. Where the order of elements matters, the
// threads of a result have contiguous parts of it. Layouts in which a thread
// holds too many results are left out, unless all are such.
func (b Box) ReductionLayouts(order []int, f Reduction) (all []*ThreadLayout) {
	var reduced, kept []int
	for _, d := range order {
		if slices.Contains(f.Reduced, int64(d)) {
			reduced = append(reduced, d)
		} else {
			kept = append(kept, d)
		}
	}
	reducesInner := len(kept) == 0 ||
		slices.Contains(reduced, FastestDim(b.Sizes, order))
	var tooManyResults []*ThreadLayout
	for _, reducesInner := range []bool{reducesInner, !reducesInner} {
		if reducesInner && len(reduced) == 0 && len(kept) > 0 ||
			!reducesInner && len(kept) == 0 {
			continue
		}
		for _, s := range b.reductionLayoutsAlong(reduced, kept, f, reducesInner) {
			if s.results(reducesInner) <= f.MaxResults {
				all = append(all, s)
			} else {
				tooManyResults = append(tooManyResults, s)
			}
		}
	}
	if len(all) == 0 {
		return tooManyResults
	}
	return all
}

// results is the number of results of a reduction that a thread holds.
func (s *ThreadLayout) results(reducesInner bool) int64 {
	if reducesInner {
		return s.OuterRounds
	}
	return s.InnerRounds * s.Vector
}

// ReducesInner reports whether the inner side of a reduction's layout is the
// reduced one.
func (f Reduction) ReducesInner(s *ThreadLayout) bool {
	if len(s.Inner) == 0 {
		return len(s.Outer) == 0
	}
	return slices.Contains(
		f.Reduced, int64(s.Inner[0]),
	)
}

// reductionLayoutsAlong lists the layouts with the reduced dimensions on one
// side.
func (b Box) reductionLayoutsAlong(
	reduced, kept []int, f Reduction, reducesInner bool,
) (all []*ThreadLayout) {
	reducedOrders := orders(b.Sizes, reduced)
	if f.Ordered {
		reducedOrders = [][]int{
			slices.Sorted(slices.Values(reduced)),
		}
	}
	outers := reducedOrders
	inners := orders(b.Sizes, kept)
	if reducesInner {
		outers, inners = inners, outers
	}
	for _, outer := range outers {
		for _, inner := range inners {
			for v := b.VectorWidth(b.contiguous(inner)); v >= 1; v /= 2 {
				s := NewThreadLayout(
					b.Sizes, outer, inner, b.Threads,
					b.reductionInnerThreads(outer, inner, v, reducesInner), v,
				)
				s.OuterBlocked = f.Ordered && !reducesInner
				s.InnerBlocked = f.Ordered && reducesInner
				all = append(all, s)
			}
		}
	}
	return all
}

// reductionInnerThreads is the number of threads along the inner side. A row
// that is reduced gets a warp first, then the threads that rows do not need.
func (b Box) reductionInnerThreads(outer, inner []int, v int64, reducesInner bool) int64 {
	s := NewThreadLayout(
		b.Sizes, outer, inner, b.Threads, b.Threads, v,
	)
	if reducesInner && len(outer) == 0 { // a single row, which all threads reduce
		return b.Threads
	}
	lanes := min(
		b.Threads, powerOver(index.CeilDiv(s.InnerElements, v)),
	)
	if reducesInner { // each row gets a warp first, then the threads that remain
		lanes = min(
			lanes, max(warpThreads, b.Threads/powerOver(s.OuterElements)),
		)
	}
	return lanes
}

// warpThreads is the threads that access memory together, where nothing else is
// stated.
const warpThreads = 32

// powerOver is the smallest power of two that is not below n.
func powerOver(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}

// maxOrdered bounds the dimensions of which all orders are tried; of more, all
// choices of the two fastest are.
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

// permute visits the orders of the first n of dims, followed by the others as
// they are; the first visit is dims itself. Only places of the fastest
// dimensions are permuted.
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
