// Package rowkernel turns fused row kernels into machine code.
//
// A row kernel is a group of elementwise operations and reductions over the rows
// of one iteration space, as a single function: a softmax, a layer normalization,
// the sum of the columns of an expression. Kernel is its intermediate
// representation, which says what is loaded, computed, reduced and stored, and
// nothing of how. The lowering of package cpu builds it from tile instructions,
// and this package goes on in four steps:
//
//	Kernel.Plan      divides the work of a row into sweeps (sweeps.go) and
//	                 recognizes softmaxes (softmax.go)
//	the lowering     gives the values that Plan keeps between sweeps scratch
//	Kernel.Compile   emits the loops over rows (emit.go), the sweeps of a row
//	                 (sweep_code.go) and the vector operations of a sweep (chain.go)
//	Code.Run         calls the function over the iteration space (run.go)
//
// A value of a kernel is wide, with one element for every element of the rows, or
// a row scalar, with one element for every row. A sweep is a loop over the
// elements of a row. It ends where the reduction of the row has to be known, so
// that a softmax takes three sweeps: the maximum, the sum, the quotients. What a
// later sweep needs of an earlier one is computed again where that is cheap, and
// kept in scratch of the length of a row where it is not.
package rowkernel

import (
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// MaxRank is the largest rank of a tile, which bounds the dimensions of a kernel
// to two more: rows and columns can be parts of one dimension.
const MaxRank = 16

// MaxAccesses is the number of accesses of a kernel that can have an address
// register each.
const MaxAccesses = 10

// A Kernel is a fused row kernel. Its fields are filled in before Plan and are
// not changed afterwards. Where values lie may be known only later, since the
// result of a loop can be bound to an output after its body was lowered: Offset of
// values, and InScratch and External of accesses, are set before Compile.
type Kernel struct {
	// Extents are those of the iteration space, outermost first. The last two are
	// the rows and the elements of a row, called columns.
	Extents []int64
	// Items are the operations and reductions in an order in which each comes
	// after what it reads.
	Items []Item
	// Accesses are all loads and stores, in the order in which they are given
	// address registers.
	Accesses []*Access
	// Loads are the accesses of values that the kernel reads.
	Loads map[*Value]*Access
	// Stores are the accesses of values that the kernel writes.
	Stores map[*Value]*Access
	// StoreOrder lists the stored values that are no results of reductions.
	StoreOrder []*Value
	// Scalars are the row scalars that the kernel computes.
	Scalars map[*Value]bool
	// Broadcasts maps wide values to the row scalars that they repeat.
	Broadcasts map[*Value]*Value

	ops          map[*Value]*Op // The operation that computes a value.
	reductions   []*Reduction
	reciprocals  map[*Value]*Value // Row scalars and their reciprocals.
	reciprocalOf map[*Value]*Value // The inverse of reciprocals.
	scaledExps   map[*Value]bool   // Powers of e that are computed times 2^32.
	schedule     sweepPlan
	places       int64 // Where rows of several arrays are read in turn, see Options.
	sumPlaces    int64 // Where rows that are only reduced are.
	vanishes     bool  // Exponentials too small for a denormal number are made 0, see Options.
}

// An Item is an operation or a reduction: one field is set.
type Item struct {
	Op        *Op
	Reduction *Reduction
}

// A Value is what an item of a kernel computes, or what it loads.
type Value struct {
	// ID numbers the value for the owner of the kernel. Values that the kernel
	// introduces have −1.
	ID int
	// Constant is the bits of the element that all elements are, or nil.
	Constant *uint32
	// Offset is where the value begins in the scratch of a worker, in bytes. It is
	// set before Compile, for values that lie in scratch at a fixed place.
	Offset int64
}

// An Op is an elementwise operation. Its operands are all wide or repeat row
// scalars, or, where Out is a row scalar, all row scalars.
type Op struct {
	Instr *hlo.Instr
	Out   *Value
	Args  []*Value
	// Below says of an exponential that its operand is at most 60, or NaN.
	Below bool
}

// A Reduction is a reduction of f32 by one operation, over the elements of each
// row or, across rows, of elements at the same column.
type Reduction struct {
	Monoid   hlo.Opcode
	Arg, Out *Value
	// Init is the value to begin with. Where it is nil, or PerRow is false, the
	// array of Out holds it.
	Init *Value
	// AcrossRows says that rows are combined into one row.
	AcrossRows bool
	// PerRow says that Out is a row scalar, complete at the end of its row.
	PerRow bool
	// Relaxed says that the signs of zeros and NaN elements do not matter: Plan finds where
	// that is so in the kernel (see softmax.go).
	Relaxed bool
}

// vectorReduction is the vector code of the reduction.
func (f *Reduction) vectorReduction() vector.Reduction {
	if f.Relaxed {
		return vector.Reductions[f.Monoid].WithoutSigns()
	}
	return vector.Reductions[f.Monoid]
}

// An Access is where a kernel reads or writes a value.
type Access struct {
	Value *Value
	// Strides are in elements of the array, one for every dimension of the
	// kernel. That of columns is 0 or 1, or 2 for one of a pair.
	Strides []int64
	// Pair is the access at the next elements of the same array, where both have every
	// second one; Odd says that this is the second of a pair. Vectors of both are loaded
	// or stored at once. Rows are whole vectors then.
	Pair *Access
	Odd  bool
	// Start is the element of the array that index 0 of all dimensions is.
	Start int64
	// Half is the type of the array, of elements of two bytes, or 0 where
	// elements have four bytes.
	Half hlo.DType
	// Flushes says that denormal elements of a store of bf16 may as well be zeros, and that
	// nothing else reads the value.
	Flushes bool
	// InScratch says that the elements are the value's own in scratch. It is set
	// before Compile.
	InScratch bool
	// External says that the array belongs to the caller of the program. It is set
	// before Compile.
	External bool
	// NonTemporal says that stores need not leave the elements in the caches.
	NonTemporal bool
	// NextTile is the distance to the same elements of the next tile, where a
	// loop over tiles asks for it to be prefetched, else 0.
	NextTile int64
}

func (s *Access) col() int64 { return s.Strides[len(s.Strides)-1] }
func (s *Access) row() int64 { return s.Strides[len(s.Strides)-2] }

// isFixed reports whether the access is one place of the scratch, for which no
// register is needed.
func (s *Access) isFixed() bool {
	return s.InScratch && !slices.ContainsFunc(s.Strides, func(x int64) bool {
		return x != 0
	})
}

// bytes is the size of an element.
func (s *Access) bytes() int64 {
	if s.Half != 0 {
		return 2
	}
	return 4
}

// vectorBytes is the size of a vector of elements.
func (s *Access) vectorBytes() uintptr { return uintptr(vector.Lanes * s.bytes()) }

// skip moves a pointer by elements of the array.
func (s *Access) skip(p unsafe.Pointer, elements int64) unsafe.Pointer {
	return unsafe.Add(p, s.bytes()*elements)
}

func (n *Kernel) cols() int64 { return n.Extents[len(n.Extents)-1] }
func (n *Kernel) rows() int64 { return n.Extents[len(n.Extents)-2] }

// ReducesColumns reports whether reductions combine rows. All reductions of a
// kernel have the same direction.
func (n *Kernel) ReducesColumns() bool {
	return len(n.reductions) > 0 && n.reductions[0].AcrossRows
}

// eachMoving yields the accesses that need an address register each: of a pair one does.
func (n *Kernel) eachMoving(yield func(*Access) bool) {
	for _, s := range n.Accesses {
		if !s.isFixed() && !s.Odd && !yield(s) {
			return
		}
	}
}

// moving lists these accesses.
func (n *Kernel) moving() []*Access { return slices.Collect(n.eachMoving) }

// anyMoves reports whether one of these accesses is as f says.
func (n *Kernel) anyMoves(f func(*Access) bool) bool {
	for s := range n.eachMoving {
		if f(s) {
			return true
		}
	}
	return false
}

// defines reports whether the kernel computes v.
func (n *Kernel) defines(v *Value) bool {
	return n.ops[v] != nil || n.Scalars[v] || n.Broadcasts[v] != nil ||
		slices.ContainsFunc(n.reductions, func(f *Reduction) bool { return f.Out == v })
}

// Plan divides the kernel into sweeps. Afterwards Saved and SlabLength say what
// scratch it needs.
func (n *Kernel) Plan() {
	n.ops = map[*Value]*Op{}
	for _, i := range n.Items {
		if i.Op != nil {
			n.ops[i.Op.Out] = i.Op
		} else {
			n.reductions = append(n.reductions, i.Reduction)
		}
	}
	n.reciprocals = map[*Value]*Value{}
	n.reciprocalOf = map[*Value]*Value{}
	n.scaledExps = map[*Value]bool{}
	n.planSweeps()
	n.markSoftmaxes()
}

// Sweeps is the number of sweeps over a row.
func (n *Kernel) Sweeps() int { return n.schedule.sweeps }

// Saved lists the wide values that are kept from one sweep of a row to a later
// one. Each needs f32 scratch for the elements of a row.
func (n *Kernel) Saved() []*Value { return n.schedule.saved }

// SlabLength is the number of f32 elements of scratch that Slab needs.
func (n *Kernel) SlabLength() int64 {
	return 8*int64(len(n.schedule.kept)+maxSpills) + 2*MaxRank
}

// Slab is the scratch of row scalars, of vectors that registers do not hold, and
// of loop counters. Its Offset is set before Compile.
func (n *Kernel) Slab() *Value { return &n.schedule.slab }
