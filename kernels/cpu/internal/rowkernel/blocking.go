package rowkernel

import (
	"cmp"
	"slices"

	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Distances of prefetches in bytes. Rows of 4 KiB from memory take 0.92 of the time they
// take with two rows ahead in a softmax, 0.94 in a layer normalization, 0.88 in an
// rmsnorm and 0.90 in a sum of two arrays (Zen 4); a Xeon takes 0.75 to 0.9.
const (
	nearAhead = 1 << 10   // in the only sweep
	farAhead  = 4 << 10   // at least, in one of several
	longRow   = 128 << 10 // from which on each sweep reads from beyond the second cache
	// Rows that are fetched in the last of three sweeps, see fetchingSweeps.
	leastLastFetched, mostLastFetched = 2 << 10, 12 << 10
	// nearFetch bounds what is near of a distance that suits a processor: a page.
	nearFetch = 4 << 10
	// fetched bounds what is fetched ahead of all arrays together, where the processor says
	// how far: half of its first cache.
	fetched = 24 << 10
	// Bytes fetched ahead at several places: of short rows that are written, after which each
	// place jumps; and into the second cache, of rows that are combined. On one thread of a
	// Zen 4 sums of two arrays of 64 columns take 0.80 of the time then, and of 1024 columns
	// 1.03 to 1.1; sums of columns 0.89, and 1.1 where as much is fetched into the first cache,
	// but 1.2 to 1.3 from the second or the third cache.
	shortFetch  = 256
	columnFetch = 512
)

const (
	// FoldRows is the number of rows that are combined at a time.
	FoldRows = 8
	// maxReductionRegs bounds the registers of the accumulators of a sweep.
	maxReductionRegs = 10
	// spacedRows is the number of distant places at which short rows are read in
	// turn, so that the ends of their sums overlap. Longer ones are read in the order of
	// memory, which the hardware prefetches best: rows of 1 to 4 KiB take 0.85 to 0.93 of
	// the time from memory then, and as long from the second cache, where rows of 256 bytes
	// take 1.14 times as long (BenchmarkSums of package cpu, one thread of a Zen 4). From
	// the memory of an Emerald Rapids rows of 4 KiB take 0.87 of the time at three places, and
	// 0.84 on two threads, so that its sheet says sum_places. Prefetches gain nothing there:
	// with them sums of columns take 1.01 to 1.06 times as long on one thread.
	spacedRows   = 3
	orderedBytes = 1 << 10 // of a row, from which on rows are read in order
	// SpacedColumnRows is spacedRows where rows are combined.
	SpacedColumnRows = 4
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

// defaultUnroll is the number of vectors that are computed in turn: two where a
// row takes three sweeps or more, which measures up to a sixth faster for a
// layer normalization and about the same for a softmax. With two sweeps four
// are faster for an rmsnorm. With one sweep measurements differ from run to
// run.
func (n *Kernel) defaultUnroll() int64 {
	if n.schedule.sweeps > 2 {
		return vector.RoundVectors / 2
	}
	return vector.RoundVectors
}

// defaultAhead is the number of bytes ahead that are prefetched: within the row of a
// single sweep, and a row where there are several, at least 4 KiB, since what is less
// than a row ahead is in the caches from the first sweep. A kernel that writes no rows
// is faster when the hardware prefetches on its own.
//
// Where it is known how far ahead suits the processor, it is that far ahead of what is read:
// of the row in a single sweep, of the end of the row where there are several. Rows of 4 KiB
// take 0.71 to 0.78 of the time in softmax, norms and chains on one thread of a Zen 5 then.
// Where that is near, it is no further than a row if the first cache does not hold more: layer
// normalizations of rows of 8 KiB, with as much of each parameter, take 1.3 times as long then.
//
// An Emerald Rapids is told less beyond a row than within one: rows of 4 KiB from memory take
// 0.83 to 0.84 of the time with 4 KiB ahead in one sweep instead of 1 KiB (bias_gelu, chain, one
// thread and two; 0.88 to 0.97 with 2 KiB), and with 4 KiB beyond the row in several 1.09 to 1.7
// times as long as with 2 (layernorm, rmsnorm).
func (n *Kernel) defaultAhead(o Options) int64 {
	length, arrays := n.fetchedRow()
	switch places := n.concurrentRows() > 1; {
	case n.ReducesColumns() && places && o.FromMemory && o.fetchesNear() && o.SumPlaces == 0:
		return columnFetch
	case n.writesRows() && places && length < orderedBytes:
		return shortFetch
	case !n.writesRows() || places:
		return 0
	}
	once := n.schedule.sweeps == 1 || length > longRow
	fetch := fetched / max(1, arrays)
	fetch = min(o.Fetch, fetch)
	if once {
		return cmp.Or(fetch, nearAhead)
	}
	fetch = min(fetch, cmp.Or(o.FetchPastRow, fetch))
	held := n.heldBytes() + arrays*(length+fetch)
	if o.fetchesNear() && held > o.First {
		fetch = 0
	}
	return max(length+fetch, farAhead)
}

// secondAhead is the distance of what is prefetched to the second cache, beyond a distance to
// the first one, or 0. The first cache waits for few lines at a time, and the hardware fetches
// nothing ahead while sweeps find a row in that cache. With 12 KiB more, rows of 4 and 8 KiB
// from memory take 0.85 and 0.69 of the time in layer normalizations, 0.94 and 0.91 in softmaxes,
// 0.95 and 0.92 in rmsnorms, and those of 64 KiB 0.70 to 0.87 in softmaxes, norms and chains (one
// thread of a Zen 4). With the second cache alone layer normalizations take 1.05 times as long as with
// both, softmaxes 1.15. Sums of two arrays take 1.1 to 1.2 times as long, so that one is read.
func (n *Kernel) secondAhead(o Options, distance int64) int64 {
	_, arrays := n.fetchedRow()
	switch {
	case o.FetchSecond == 0,
		distance == 0,
		arrays != 1,
		!n.writesRows():
		return 0
	}
	return distance + o.FetchSecond
}

// fetchedRow is the bytes of the longest row that is prefetched, and the number of arrays.
func (n *Kernel) fetchedRow() (length, arrays int64) {
	for s := range n.eachMoving {
		if n.prefetches(s) {
			length = max(length, s.bytes()*n.cols())
			arrays++
		}
	}
	return length, arrays
}

// heldBytes are those that the sweeps of a row read again: the rows of all arrays that are
// read, and of values that are kept.
func (n *Kernel) heldBytes() int64 {
	bytes := 4 * n.cols() * int64(len(n.schedule.saved))
	for s := range n.eachMoving {
		reads := n.Stores[s.Value] != s
		if reads && s.col() == 1 {
			bytes += s.bytes() * n.cols()
		}
	}
	return bytes
}

// fetchesNear reports whether what suits the processor is known and within a page, and
// so less than a row in most cases.
func (o Options) fetchesNear() bool {
	return 0 < o.Fetch && o.Fetch <= nearFetch
}

// elementBytes is the bytes of the widest elements of rows that are read.
func (n *Kernel) elementBytes() int64 {
	widest := int64(2)
	for s := range n.eachMoving {
		if n.Stores[s.Value] != s && s.col() == 1 {
			widest = max(widest, s.bytes())
		}
	}
	return widest
}

// lineVectors is the vectors of 32 bytes of f32 that a cache line of such a row makes.
func (n *Kernel) lineVectors() int {
	return int(vector.LineBytes / (vector.Lanes * n.elementBytes()))
}

// writesRows reports whether the kernel stores elements of rows.
func (n *Kernel) writesRows() bool {
	return slices.ContainsFunc(n.StoreOrder, func(v *Value) bool {
		return !n.Scalars[v]
	})
}

// concurrentRows is the number of places at which a kernel reads rows in turn:
// several where it only reads and combines rows, or where rows are short. Where
// rows are combined this changes the order in which they are.
func (n *Kernel) concurrentRows() int64 {
	switch {
	case len(n.Accesses) >= MaxAccesses && len(n.moving()) >= MaxAccesses:
		return 1
	case n.writesRows():
		if n.joinsArrays() {
			return max(1, n.places)
		}
		return 1
	case n.ReducesColumns():
		return SpacedColumnRows
	case n.onlyReduces() && n.cols()*n.elementBytes() < orderedBytes:
		return spacedRows
	case n.onlyReduces():
		return max(1, min(n.sumPlaces, spacedRows))
	}
	return 1
}

// joinsArrays reports whether a kernel reads several arrays in one sweep, does little with
// them and writes past the caches: the memory sends more lines than are written. Read at two
// places without prefetches, what the hardware fetches ahead suffices: on one thread and two
// of a Zen 4 the sum of two arrays takes 0.87 to 0.99 of the time, x·y+w of three 0.86 to 0.97. What reads one array, computes functions or has elements of two bytes
// takes up to 1.25 times as long.
func (n *Kernel) joinsArrays() bool {
	_, arrays := n.fetchedRow()
	return arrays > 1 &&
		n.schedule.sweeps == 1 &&
		len(n.reductions) == 0 &&
		!n.anyMoves(func(s *Access) bool {
			return s.Half != 0 || n.Stores[s.Value] == s && !s.NonTemporal
		}) &&
		!slices.ContainsFunc(n.Items, func(i Item) bool { return !isCheap(i.Op) })
}

// isCheap reports whether an operation takes a few instructions.
func isCheap(p *Op) bool {
	switch p.Instr.Op {
	case hlo.OpMaximum, hlo.OpMinimum, hlo.OpClamp:
		return true
	}
	return opCosts[p.Instr.Op] != 0
}

// rowBatch is the number of rows that are done at a time, and their distance.
// Displacements of instructions have 32 bits, which the last row of a batch
// must not exceed. What one sweep keeps for another has the scratch of one row.
func (n *Kernel) rowBatch() (rows, apart int64) {
	if len(n.schedule.saved) > 0 {
		return 1, 1
	}
	rows = n.concurrentRows()
	if perCall := n.rowsPerCall(); rows > 1 && n.rows() >= 2*rows && perCall >= rows {
		apart = min(perCall, n.rows()) / rows
	} else if rows, apart = 1, 1; n.ReducesColumns() {
		rows = min(FoldRows, n.rows())
	}
	for s := range n.eachMoving {
		far := s.bytes() * (s.row()*rows*apart + n.cols())
		if far != int64(int32(far)) {
			return 1, 1
		}
	}
	return rows, apart
}

// onlyReduces reports whether a kernel only reduces rows, in one sweep and with
// few registers.
func (n *Kernel) onlyReduces() bool {
	if len(n.reductions) != 1 ||
		n.ReducesColumns() || n.schedule.sweeps != 1 ||
		len(n.schedule.after[0]) > 0 {
		return false
	}
	return n.reductions[0].vectorReduction().Registers() == vector.RoundVectors &&
		n.cols()%vector.Lanes == 0
}

// rowsPerCall is the number of rows that a call does.
func (n *Kernel) rowsPerCall() int64 {
	limit := int64(MaxCallElements)
	unit := int64(1)
	if n.ReducesColumns() {
		unit = FoldRows
	}
	if places := n.concurrentRows(); places > 1 {
		costly := slices.ContainsFunc(n.reductions, func(f *Reduction) bool {
			return n.recomputeCost(f.Arg) > maxRecomputeCost
		})
		switch {
		case n.writesRows():
			unit = places
		case !costly:
			limit, unit = MaxReadElements, places
		}
	}
	return max(unit, limit/n.cols()/unit*unit)
}

// callDim is the dimension of which a call does a number of indices, with all
// of the dimensions after it. Where rows are short, calls for every few rows
// would take as long as the rows do.
func (n *Kernel) callDim() (dim int, maxCount int64) {
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

// nextTileOffset is the distance in bytes to the next tile of an access, where
// it is worth to prefetch that while the kernel computes, else 0.
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

// fetchingSweeps are the sweeps in which prefetches are done: the one that computes most, but
// the last of three where rows of a few KiB are written, since the memory has nothing else
// to read while they are. On one thread and two of a Zen 5 layer normalizations take 0.87 to
// 0.95 of the time then for rows of 2 to 8 KiB, softmaxes 0.90 to 0.98 for 3 to 12 KiB and
// 1.04 for 2; both lose 2 to 4 % for 16 KiB, and what has two sweeps up to 11 %.
//
// Stores past the caches delay prefetches on an Intel core (by times, not by counters). Rows of
// 4 KiB take 0.71 to 0.83 of the time of the last sweep in softmaxes on one thread and two of an
// Emerald Rapids where the middle one fetches, 0.79 to 0.82 in layer normalizations; where the last
// two share it, as much on one thread and 1.4 to 1.9 times that on two.
//
// Where the distance is near, the last two of three share them, so that a row's lines are asked
// for at the rate at which they come: half of those of a round of f32 in each. Rows of 4 KiB take
// 0.83 to 0.94 of the time of 4 KiB ahead in the last sweep in layer normalizations on one thread
// and two of a Zen 4, 0.86 to 0.92 in softmaxes; those of 1 and 3 KiB up to 1.05.
func (n *Kernel) fetchingSweeps(o Options) []int {
	last := n.schedule.sweeps - 1
	length, _ := n.fetchedRow()
	few := leastLastFetched <= length &&
		length <= mostLastFetched
	if last < 2 || !few || !n.writesRows() {
		return []int{n.costliestSweep()}
	}
	if o.FetchPass > 0 {
		return []int{last - 3 + int(min(o.FetchPass, 3))}
	}
	if !o.fetchesNear() || n.readsHalves() {
		return []int{last}
	}
	return []int{last - 1, last}
}

// readsHalves reports whether elements of two bytes are read, of which a round has one line.
func (n *Kernel) readsHalves() bool {
	return n.anyMoves(func(s *Access) bool {
		return s.Half != 0 && n.Stores[s.Value] != s
	})
}

// costliestSweep is the sweep that computes most, in which prefetches take no
// time of their own.
func (n *Kernel) costliestSweep() int {
	highest, at := -1, 0
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
		if cost > highest {
			highest, at = cost, q
		}
	}
	return at
}

// The function of a kernel should take some 50 µs a call, since the goroutine
// cannot be preempted in it. Where it reads rows at several places, prefetching
// is better the more rows follow each other.
const (
	// MaxCallElements bounds the elements of a call.
	MaxCallElements = 1 << 16
	// MaxReadElements bounds the elements of a call that reads rows at several
	// places.
	MaxReadElements = 1 << 18
)
