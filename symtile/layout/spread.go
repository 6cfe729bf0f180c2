package layout

import (
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/symtile"
)

// A Spread gives the elements of a box to the threads of a block. The box is
// seen as a matrix: outer dimensions, and inner ones, the last of which is the
// last fastest. Lanes threads stand along the inner side, each with Vector
// neighbouring elements; the others along the outer side.
type Spread struct {
	Sizes        []int64
	Outer, Inner []int // dimensions, the slowest first
	Lanes        int64 // a power of two
	Rows         int64 // threads along the outer side
	Vector       int64
	Outs, Ins    int64 // elements of either side
	OutRounds    int64
	InRounds     int64
	// Pieces say that what a thread has of a side in its rounds follows each
	// other; else threads take turns.
	OutPieces, InPieces bool
}

// NewSpread divides threads by lanes, which divide them.
func NewSpread(sizes []int64, outer, inner []int, threads, lanes, vector int64) *Spread {
	s := &Spread{Sizes: sizes, Outer: outer, Inner: inner, Lanes: lanes, Rows: threads / lanes, Vector: vector}
	s.Outs, s.Ins = s.side(outer), s.side(inner)
	s.OutRounds, s.InRounds = symtile.CeilDiv(s.Outs, s.Rows), symtile.CeilDiv(s.Ins, lanes*vector)
	return s
}

func (s *Spread) side(dims []int) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= s.Sizes[d]
	}
	return n
}

// PerThread is the elements of a thread.
func (s *Spread) PerThread() int64 { return s.OutRounds * s.InRounds * s.Vector }

// Order is all dimensions, the slowest first.
func (s *Spread) Order() []int { return slices.Concat(s.Outer, s.Inner) }

// Fastest is the last dimension of an order that has more than one element, or
// the last; −1 where there is none.
func Fastest(sizes []int64, order []int) int {
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

// outOf and inOf are the numbers of the row and of the first element of the
// vector that a thread has in a round.
func outOf[T symtile.Number[T]](s *Spread, thread, round T) T {
	if s.OutPieces {
		return thread.Div(s.Lanes).Scale(s.OutRounds).Add(round)
	}
	return round.Scale(s.Rows).Add(thread.Div(s.Lanes))
}

func inOf[T symtile.Number[T]](s *Spread, thread, round T) T {
	if s.InPieces {
		return thread.Mod(s.Lanes).Scale(s.InRounds).Add(round).Scale(s.Vector)
	}
	return round.Scale(s.Lanes).Add(thread.Mod(s.Lanes)).Scale(s.Vector)
}

// Out is the number of the row that a thread has in a round.
func (s *Spread) Out(thread, round symtile.Expr) symtile.Expr { return outOf(s, thread, round) }

// In is the number of the first element of a row of the vector that a thread has
// in a round.
func (s *Spread) In(thread, round symtile.Expr) symtile.Expr { return inOf(s, thread, round) }

// Place sets the indices of the dimensions of a side to those of number n of it.
func (s *Spread) Place(at []symtile.Expr, side []int, n symtile.Expr) {
	if len(side) == 0 {
		return
	}
	for k, x := range symtile.Delinearize(n, s.extents(side)) {
		at[side[k]] = x
	}
}

func (s *Spread) extents(side []int) []int64 {
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

// fast is how many elements follow each other in an order.
func (b Box) fast(order []int) int64 {
	if d := Fastest(b.Sizes, order); d >= 0 {
		return b.Sizes[d]
	}
	return 1
}

func (b Box) elements() int64 { n, _ := symtile.Product(b.Sizes); return n }

// Width is how many elements a thread takes at most at once where fast of them
// follow each other: no thread goes without for it.
func (b Box) Width(fast int64) int64 {
	v := max(1, b.Vector)
	for v > 1 && (fast%v != 0 || b.elements()/v < b.Threads) {
		v /= 2
	}
	return v
}

// Flats lists the spreads of the box along one side: for every order of its
// dimensions, those that are like the order given first, the widest vectors and
// then less wide ones.
func (b Box) Flats(order []int) (all []*Spread) {
	for _, o := range orders(b.Sizes, order) {
		for v := b.Width(b.fast(o)); v >= 1; v /= 2 {
			all = append(all, NewSpread(b.Sizes, nil, o, b.Threads, b.Threads, v))
		}
	}
	return all
}

// A Fold is a reduction of a box along some of its dimensions.
type Fold struct {
	Reduced []int64
	Ordered bool  // elements are folded in the order of their indices
	Results int64 // that a thread keeps at most
	// Too are arrays that are gone over by the same spread if the inner side is
	// the reduced one, Else what going over them otherwise moves.
	Too  []Reach
	Else Count
}

// Folds lists the spreads of a reduction: one side is reduced, either the inner
// or the outer one. Where the order of elements counts, the threads of a result
// have pieces of it one after the other. Spreads in which a thread keeps too
// many results are left out, unless all are such.
func (b Box) Folds(order []int, f Fold) (all []*Spread) {
	var gone, kept []int
	for _, d := range order {
		if slices.Contains(f.Reduced, int64(d)) {
			gone = append(gone, d)
		} else {
			kept = append(kept, d)
		}
	}
	inside := len(kept) == 0 || slices.Contains(gone, Fastest(b.Sizes, order))
	var tooMany []*Spread
	for _, inside := range []bool{inside, !inside} {
		if inside && len(gone) == 0 && len(kept) > 0 || !inside && len(kept) == 0 {
			continue
		}
		for _, s := range b.foldsAlong(gone, kept, f, inside) {
			if s.results(inside) <= f.Results {
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
func (s *Spread) results(inside bool) int64 {
	if inside {
		return s.OutRounds
	}
	return s.InRounds * s.Vector
}

// Inside says whether the inner side of a reduction's spread is the reduced one.
func (f Fold) Inside(s *Spread) bool {
	if len(s.Inner) == 0 {
		return len(s.Outer) == 0
	}
	return slices.Contains(f.Reduced, int64(s.Inner[0]))
}

func (b Box) foldsAlong(gone, kept []int, f Fold, inside bool) (all []*Spread) {
	goneOrders := orders(b.Sizes, gone)
	if f.Ordered {
		goneOrders = [][]int{slices.Sorted(slices.Values(gone))}
	}
	outers, inners := goneOrders, orders(b.Sizes, kept)
	if inside {
		outers, inners = inners, outers
	}
	for _, outer := range outers {
		for _, inner := range inners {
			for v := b.Width(b.fast(inner)); v >= 1; v /= 2 {
				s := NewSpread(b.Sizes, outer, inner, b.Threads, b.foldLanes(outer, inner, v, inside), v)
				s.OutPieces, s.InPieces = f.Ordered && !inside, f.Ordered && inside
				all = append(all, s)
			}
		}
	}
	return all
}

// foldLanes is how many threads stand along the inner side of a reduction.
func (b Box) foldLanes(outer, inner []int, v int64, inside bool) int64 {
	s := NewSpread(b.Sizes, outer, inner, b.Threads, b.Threads, v)
	if inside && len(outer) == 0 { // the result is one that all threads may ask for
		return b.Threads
	}
	lanes := min(b.Threads, powerOver(symtile.CeilDiv(s.Ins, v)))
	if inside { // rows first get a warp each, then what is left
		lanes = min(lanes, max(warpThreads, b.Threads/powerOver(s.Outs)))
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
	permute(long, len(long), min(len(long), max(maxOrdered, 2)), func(o []int) { all = append(all, slices.Concat(o, short)) })
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
		next := slices.Insert(slices.Delete(slices.Clone(dims[:n]), k, k+1), n-1, dims[k])
		permute(append(next, dims[n:]...), n-1, places-1, visit)
	}
}
