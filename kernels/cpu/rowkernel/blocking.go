package rowkernel

import (
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/vector"
)

const prefetchRows = 2

const (
	FoldRows         = 8  // rows joined at a time
	maxReductionRegs = 10 // registers of the folds of a pass
	spacedRows       = 3  // rows read at a time at places far from each other
	SpacedColumnRows = 4  // the same where they are joined
)

// A Blocking says how the rows of a kernel are divided.
type Blocking struct {
	// Rows is the number of rows that are done at a time, and Spacing the number
	// of rows from one of them to the next.
	Rows, Spacing int64
	// RowsPerCall is the number of rows that a call of the function does, where
	// the rows of one index of the dimensions before are not done in fewer calls.
	RowsPerCall int64
	// Concurrent is the number of places at which the array is read in turn.
	Concurrent int64
}

// Blocking is how the rows of a planned kernel are divided.
func (n *Kernel) Blocking() Blocking {
	b := Blocking{
		RowsPerCall: n.rowsPerCall(),
		Concurrent:  n.concurrentRows(),
	}
	b.Rows, b.Spacing = n.rowBatch()
	return b
}

// defaultUnroll is how many vectors are computed in turn: two where a row takes three
// passes or more, which measures up to a sixth faster for a layernorm and about the
// same for a softmax. With two passes four are faster for an rmsnorm; with one
// pass measurements differ from run to run.
func (n *Kernel) defaultUnroll() int64 {
	if n.schedule.sweeps > 2 {
		return vector.RoundVectors / 2
	}
	return vector.RoundVectors
}

// defaultPrefetch is how many rows ahead are fetched: what only reads is faster when
// the machine does that by itself.
func (n *Kernel) defaultPrefetch() int64 {
	if slices.ContainsFunc(n.StoreOrder, func(v *Value) bool {
		return !n.Scalars[v]
	}) {
		return prefetchRows
	}
	return 0
}

// concurrentRows is how many places a nest reads rows at in turn: several where it only reads,
// since the machine fetches ahead at each. Where rows are joined into one that changes
// the order of them.
func (n *Kernel) concurrentRows() int64 {
	switch {
	case len(n.moving()) >= MaxAccesses ||
		n.defaultPrefetch() > 0:
		return 1
	case n.ReducesColumns():
		return SpacedColumnRows
	case n.onlyReduces():
		return spacedRows
	}
	return 1
}

// rowBatch is how many rows are done at a time, and how far apart those are.
func (n *Kernel) rowBatch() (rows, apart int64) {
	rows = n.concurrentRows()
	if rows > 1 && n.rows() >= 2*rows {
		apart = min(n.rowsPerCall(), n.rows()) / rows
	} else if rows, apart = 1, 1; n.ReducesColumns() {
		rows = min(FoldRows, n.rows())
	}
	for _, s := range n.moving() {
		far := s.bytes() * (s.row()*rows*apart + n.cols())
		if far != int64(int32(far)) {
			return 1, 1
		}
	}
	return rows, apart
}

// onlyReduces says whether a nest only folds rows, in one pass and few registers.
func (n *Kernel) onlyReduces() bool {
	if len(n.reductions) != 1 ||
		n.ReducesColumns() || n.schedule.sweeps != 1 ||
		len(n.schedule.after[0]) > 0 {
		return false
	}
	return n.reductions[0].vectorReduction().Registers() == vector.RoundVectors &&
		n.cols()%vector.Lanes == 0
}

// rowsPerCall is how many rows are done in one call.
func (n *Kernel) rowsPerCall() int64 {
	most := int64(MaxCallElements)
	unit := int64(1)
	if n.ReducesColumns() {
		unit = FoldRows
	}
	places := n.concurrentRows()
	if places > 1 &&
		!slices.ContainsFunc(n.reductions, func(f *Reduction) bool {
			return n.recomputeCost(f.Arg) > maxRecomputeCost
		}) {
		most, unit = MaxReadElements, places
	}
	return max(unit, most/n.cols()/unit*unit)
}

// callDim is the dimension of which a call does some indices, and all of those
// after it, and how many: where rows are short, a call for every few would take as
// long as they do.
func (n *Kernel) callDim() (dim int, most int64) {
	dim = len(n.Extents) - 2
	size := n.cols()
	for dim > 0 && size*n.Extents[dim] <= MaxCallElements {
		size *= n.Extents[dim]
		dim--
	}
	if dim == len(n.Extents)-2 {
		return dim, n.rowsPerCall()
	}
	return dim, max(1, MaxCallElements/size)
}

// prefetches reports whether the rows of an access are read from an array of the
// caller, one after another.
func (n *Kernel) prefetches(s *Access) bool {
	return s.External && n.Stores[s.Value] != s &&
		s.col() == 1 && s.row() != 0 && n.rows() > 1
}

// nextTileOffset is by how many bytes the next tile of a stream is further on, where it
// is worth to fetch that while the nest computes; else 0.
func (n *Kernel) nextTileOffset(s *Access) int64 {
	step := s.bytes() * s.NextTile
	dim, _ := n.callDim()
	if n.Stores[s.Value] == s ||
		dim < len(n.Extents)-2 ||
		s.col() != 1 ||
		len(n.ops) == 0 ||
		step != int64(int32(step)) {
		return 0
	}
	return step
}

// costliestSweep is the pass that computes most, in which the fetching does not show.
func (n *Kernel) costliestSweep() int {
	most, at := -1, 0
	for q := range n.schedule.sweeps {
		cost := 0
		for v, first := range n.schedule.firstSweep {
			if first == q {
				cost++
				if opCosts[n.ops[v].Instr.Op] == 0 {
					cost += expensiveOp
				}
			}
		}
		if cost > most {
			most, at = cost, q
		}
	}
	return at
}

// How many elements a nest does in one call, some 50 µs: where it reads at several
// places the more of them follow each other, the better they are fetched.
const (
	MaxCallElements = 1 << 16
	MaxReadElements = 1 << 18
)
