package rowkernel

import (
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
)

// Options are choices of the plan about the code of a kernel.
type Options struct {
	// Unroll is the number of vectors that are computed in turn, 0 for what suits
	// the kernel.
	Unroll int64
	// Prefetch is the number of rows ahead that are prefetched, −1 where Ahead says
	// how far.
	Prefetch int64
	// Ahead is the number of bytes ahead that are prefetched, −1 for what suits the
	// kernel.
	Ahead int64
	// Fetch is the number of bytes ahead of what is read that suits the processor, 0
	// where nobody has measured it.
	Fetch int64
	// FetchPastRow is the same beyond the row at hand where there are several sweeps, 0
	// where it is Fetch.
	FetchPastRow int64
	// FetchSecond is how many bytes beyond what is fetched to the first cache rows are best
	// fetched to the second one, 0 for none.
	FetchSecond int64
	// FetchPass is which of three sweeps best fetches rows of a few KiB, from 1; 0 where
	// nobody has measured it.
	FetchPass int64
	// Places is the number of places at which rows of several arrays are best read in turn
	// where a result is written past the caches, where no distance is chosen; 0 where nobody
	// has measured it.
	Places int64
	// Vanishes says that numbers too small for a denormal one take the processor long, so that
	// exponentials are made 0 before they are.
	Vanishes bool
	// SumPlaces is the number of places at which rows from memory that are only reduced are
	// best read in turn, without prefetches of rows or columns; 0 where nobody has measured it.
	SumPlaces int64
	// SumBits is the bits of the vectors in which such rows of f32 are best read, 256; 0: of the
	// widest there are.
	SumBits int64
	// FromMemory says that some array that is read does not stay in the last cache.
	FromMemory bool
	// First is the bytes of the first cache.
	First int64
	// Wide computes whole rounds of vectors in vectors of 64 bytes, where all
	// instructions have such a form. The results are the same, to the bit. The code
	// needs AVX-512F, DQ and BW.
	Wide bool
	// RoundsHalves says that the processor rounds f32 to bf16 by an instruction
	// (AVX512_BF16).
	RoundsHalves bool
	// Memory is what assembling uses again, nil for memory of its own.
	Memory *Memory

	record bool // The assembler records its instructions, for tests.
}

// Args is the argument block of the function of a kernel. Its layout is known to
// emitPrologue.
type Args struct {
	count   int64          // The rows to do, or indices of a dimension before them.
	scratch unsafe.Pointer // The scratch of the worker.
	at      [MaxAccesses]unsafe.Pointer
}

// Addresses are where the arrays of the accesses of a kernel begin: element k is
// that of access k of Code.Accesses.
type Addresses [MaxAccesses]unsafe.Pointer

// Code is the machine code of a kernel and how it is called.
type Code struct {
	// Text is the code of the function.
	Text []byte
	// CachedText is the same with stores that leave what they write in the caches,
	// for arrays that are not aligned to vectors; nil where Text is that.
	CachedText []byte
	// Func and CachedFunc are the two after loading. The owner of the code sets
	// them before Run.
	Func, CachedFunc *amd64.Func
	// Accesses are the accesses of which Run is told the addresses.
	Accesses []*Access
	// Wide says that the code has vectors of 64 bytes.
	Wide bool

	extents  []int64
	dim      int   // The dimension of which a call does some indices, and all of those after it.
	maxCount int64 // The number of these indices.
}

// Compile emits the code of a kernel. It fails where the values of a sweep do not
// fit in the registers.
func (n *Kernel) Compile(o Options) (*Code, error) {
	if o.Ahead < 0 && o.Prefetch < 0 {
		n.places = o.Places
	}
	n.vanishes = o.Vanishes
	if o.FromMemory {
		n.sumPlaces = o.SumPlaces
	}
	nonTemporal := false
	for s := range n.eachMoving {
		nonTemporal = n.storesAligned(s) || nonTemporal
	}
	o.Wide = o.Wide && n.suitsWide() &&
		!n.readsNarrow(o)
	a, err := n.emit(o, nonTemporal)
	if o.Wide && (amd64.NeedsNarrow(err) || amd64.NeedsRegisters(err)) {
		o.Wide = false
		a, err = n.emit(o, nonTemporal)
	}
	if err != nil {
		return nil, err
	}
	text, err := a.Assemble()
	if err != nil {
		return nil, err
	}
	c := &Code{Text: text, Accesses: n.moving(), Wide: o.Wide, extents: n.Extents}
	if nonTemporal {
		c.CachedText = a.WithoutNonTemporal(text)
	}
	c.dim, c.maxCount = n.callDim()
	return c, nil
}

// storesAligned reports whether stores of an access can be non-temporal: all its
// rows are aligned to vectors if the first is. Otherwise it gives that up.
func (n *Kernel) storesAligned(s *Access) bool {
	if !s.NonTemporal {
		return false
	}
	for d, step := range s.Strides[:len(s.Strides)-1] {
		if n.Extents[d] > 1 && step%vector.Lanes != 0 {
			s.NonTemporal = false
		}
	}
	return s.NonTemporal
}

// suitsWide reports whether there are whole rounds, and all non-temporal stores of
// vectors of 64 bytes are aligned if the first is.
func (n *Kernel) suitsWide() bool {
	if n.cols() < vector.RoundVectors*vector.Lanes {
		return false
	}
	for s := range n.eachMoving {
		if s.Pair != nil {
			return false // Pairs are taken apart within 32 bytes.
		}
		for d, step := range s.Strides[:len(s.Strides)-1] {
			if s.NonTemporal && n.Extents[d] > 1 && step%(2*vector.Lanes) != 0 {
				return false
			}
		}
	}
	return true
}

// readsNarrow reports whether a kernel does little but read rows, which the processor does best in
// vectors of 32 bytes: sums of 8192 rows of 4 KiB take 0.93 to 0.95 of the time from the memory of a
// Zen 4 (BenchmarkSums of package cpu, one thread, width=256), sums of columns as long.
func (n *Kernel) readsNarrow(o Options) bool {
	const narrow = 256
	if !o.FromMemory || o.SumBits != narrow ||
		!n.onlyReduces() || n.readsHalves() {
		return false
	}
	cost := n.recomputeCost(n.reductions[0].Arg)
	return cost <= maxRecomputeCost
}

// storeUnit is the alignment that non-temporal stores of an access need, in bytes.
func (c *Code) storeUnit(s *Access) uintptr {
	if c.Wide {
		return 2 * s.vectorBytes()
	}
	return s.vectorBytes()
}

// callsBetweenStops is the number of calls, of a few microseconds for most kernels and a
// few milliseconds for the longest rows, after which Run asks whether it is to go on.
const callsBetweenStops = 64

// Run runs the kernel over its iteration space, in as many calls as blocking.go
// says. The argument block and the scratch belong to the worker. It returns early when
// stopped does.
func (c *Code) Run(
	args *Args, scratch unsafe.Pointer, addresses *Addresses, stopped func() bool,
) {
	at := *addresses
	for k, s := range c.Accesses {
		at[k] = s.skip(at[k], s.Start)
	}
	args.scratch = scratch
	var index [MaxRank + 2]int64
	left := callsBetweenStops
	for {
		if left = c.call(args, &at, left, stopped); left == 0 {
			return
		}
		d := c.dim - 1
		for ; d >= 0; d-- {
			// A pointer never moves past the last index, where it would not point into
			// its array.
			if index[d]++; index[d] < c.extents[d] {
				c.move(&at, d, 1)
				break
			}
			c.move(&at, d, 1-index[d])
			index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// move moves all accesses by indices of dimension d.
func (c *Code) move(at *Addresses, d int, by int64) {
	for k, s := range c.Accesses {
		at[k] = s.skip(at[k], by*s.Strides[d])
	}
}

// call does all indices of the dimension that calls divide. It returns how many calls
// are left until stopped is asked again, or 0 when that said so.
func (c *Code) call(args *Args, at *Addresses, left int, stopped func() bool) int {
	size := c.extents[c.dim]
	for first := int64(0); first < size; first += c.maxCount {
		args.count = min(c.maxCount, size-first)
		f := c.Func
		for k, s := range c.Accesses {
			args.at[k] = s.skip(at[k], first*s.Strides[c.dim])
			if s.NonTemporal && uintptr(args.at[k])%c.storeUnit(s) != 0 {
				f = c.CachedFunc
			}
		}
		f.Call(unsafe.Pointer(args))
		if left--; left > 0 {
			continue
		}
		if stopped() {
			return 0
		}
		left = callsBetweenStops
	}
	return left
}
