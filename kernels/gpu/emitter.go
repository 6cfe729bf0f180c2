package gpu

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// An emitter turns a concrete program into a kernel: one block of threads runs
// one tile program.
type emitter struct {
	p       *symtile.Program
	ring    *index.Ring
	sheet   device.Spec
	knobs   knobs
	builder *ptx.Builder
	asm     *asm
	hints   *hints
	phase   phase
	name    string
	smem    operand
	tid     operand // number of the thread in the block
	shared  int64   // bytes of shared memory so far

	threads     int64
	thread      index.Expr // number of the thread in its block
	vectorBytes int64
	loops       int          // named so far
	noted       map[int]bool // ops that were commented on in this stage
	freed       memoryRange  // shared memory that is free again
	loopDepth   int          // loops around
	tileLoop    *tileLoop    // of the tiles of a block, where it has several
	sums        int64        // that a thread keeps of products
	exitArrived bool         // the block has said that it leaves the cluster
	extra       int          // threads beside those that share the work: a producer, another team
	mathGroup   *mathGroup   // of this thread, where there are several
	common      int64        // bytes of shared memory that teams share
	root        int          // the op that is being stored, −1: none
	fresh       bool         // shared memory was written since the last barrier
	async       bool         // by copies that have to be waited for

	links        map[link]int
	buffers      map[bufferKey]*buffer
	choices      map[choiceKey]chosenLayout
	folds        map[string]chosenLayout
	threadLayout *coalesce.ThreadLayout                     // over a tile, chosen for it; nil: as a product lies
	layouts      map[string]*coalesce.ThreadLayout          // of tiles of a size, where a reduction has spread them
	fragments    map[string]func(body func(points []point)) // of tiles of a size, where a product has
	params       []operand
	outputs      []operand
	maps         []tensorMap
	args         []device.Operand    // of the parameters
	scratch      []int64             // bytes of the arrays between the kernels of a plan
	block        index.Expr          // number of the block among those of the grid's x
	piece        index.Expr          // and of its y
	constants    map[string]operand  // names of what is declared, by its bytes
	pairs        map[pair]index.Expr // variables that are an exclusive or
	xors         map[index.Expr]pair // and what of

	watch // over accesses of global memory
}

func newEmitter(p *symtile.Program, sheet device.Spec, k knobs, h *hints) *emitter {
	return &emitter{
		p: p, ring: p.Space.Ring, sheet: sheet,
		knobs: k, hints: h,
		threads:     int64(k.warps) * device.WarpThreads,
		vectorBytes: int64(k.vector),
		root:        -1, links: map[link]int{},
		buffers:   map[bufferKey]*buffer{},
		folds:     map[string]chosenLayout{},
		layouts:   map[string]*coalesce.ThreadLayout{},
		choices:   map[choiceKey]chosenLayout{},
		noted:     map[int]bool{},
		fragments: map[string]func(body func(points []point)){},
		pairs:     map[pair]index.Expr{},
		xors:      map[index.Expr]pair{},
	}
}

// hints are what was found out by emitting: which values are asked for by other
// threads than those that have them. The kernel is emitted again with them.
type hints struct {
	sharedResults  map[bufferKey]bool // results of closers that have to be in shared memory
	staged         map[int]bool       // ops that are brought to shared memory
	separateStores map[int]bool       // roots that are not stored as the product before them is spread
	groupBytes     int64              // bytes of shared memory that each team has for itself
	changed        bool               // this time something was found out
}

func (h *hints) shareResult(k bufferKey) {
	h.changed, h.sharedResults[k] = h.changed ||
		!h.sharedResults[k], true
}

func (h *hints) stage(n int) {
	h.changed, h.staged[n] = h.changed ||
		!h.staged[n], true
}

// stagedOps are the ops that are brought to shared memory, in order.
func (h *hints) stagedOps() []int {
	return slices.Sorted(maps.Keys(h.staged))
}

// A unsupported ends the emission of a plan that cannot run.
type unsupported string

func (r unsupported) Error() string { return string(r) }

func (e *emitter) reject(format string, args ...any) {
	panic(unsupported(fmt.Sprintf(format, args...)))
}

// A phase is one of the kernels of a plan. A plan with splitk > 1 has two, so that
// several blocks share one tile: the first has a grid of tile programs × pieces,
// and each block runs its part of the loops' iterations and stores its partial
// results to scratch memory. The second adds the partial results in the order of
// the pieces and computes what follows the loops, so that the bits of a result
// depend on the plan only (Osama et al., Stream-K, PPoPP 2023, §2, "fixed split").
type phase uint8

const (
	phaseWhole    phase = iota // the only one
	phasePartials              // blocks do pieces of loops
	phaseCombine               // what pieces have left is joined
)

func (ph phase) suffix() string {
	return [...]string{"", "_pieces", "_rest"}[ph]
}

// A point is an element of a tile: its index there, and the conditions under
// which it is needed. Where they do not hold its value is anything, and memory
// is not touched for it.
type point struct {
	at   []index.Expr
	when conditions
}

type link struct {
	before int
	x      index.Expr
}

// A bufferKey names a result of an op.
type bufferKey struct{ op, part int }

// A buffer is a tile in shared memory.
type buffer struct {
	d       hlo.DType
	sizes   []int64
	strides []int64 // in elements
	at      int64   // bytes from the base
	base    operand // of a slot; "": the start of shared memory
	// crossing is how two dimensions lie, whose strides are 0; nil: by strides
	transposed *transposedTile
}

// A memoryRange is shared memory from at to end.
type memoryRange struct{ at, end int64 }

// memory is where elements are loaded from and stored to.
type memory struct {
	space space
	base  operand
	first int64 // bytes from the base
}

// A transposedTile is a tile in shared memory that is written row by row, as it comes
// from memory, and read across the rows, as it goes to memory. A thread reads
// vector neighbouring rows r = vector·q + i; threads next to each other have
// next q. Row r is therefore number i·step + q in shared memory, and its units
// are swizzled by q. step is odd where several rows make a line of the banks, so
// that those written together lie apart as well.
type transposedTile struct {
	along, across int // dimensions: of a row, and of the rows
	vector        int64
	step          int64
	pitch         int64 // elements
	swizzle       swizzle
}

// A swizzle says how the rows of a tile in shared memory are permuted, so that
// what threads read at once, a unit of each of some neighbouring rows, lies in
// different banks although rows are not further apart than they are long. Unit u
// of row r is kept at unit u xor (r/span mod group) of its row.
//
// The units of a line of 32 banks are lineBytes/unit = L. Rows of n units, n =
// group·odd, begin at multiples of group in a line, and L/group = span of them
// at different ones; the xor, of the bits below group, tells the spans of L rows
// apart. So L neighbouring rows have each unit in L different places of a line.
type swizzle struct {
	unit  int64 // bytes
	group int64 // a power of two; 1: rows are as they are
	span  int64 // rows that are permuted alike
}

// A pair is what a variable is the exclusive or of.
type pair struct{ x, y index.Expr }

// A choiceKey is what a choice is made for: an op whose elements have a size in
// bytes, and whether it is stored.
type choiceKey struct {
	op     int
	size   int64
	stored bool
}

// A chosenLayout spread, and what it was chosen for.
type chosenLayout struct {
	coalesce.Choice
	box      coalesce.Box
	fold     *coalesce.Reduction
	accesses []arrayAccess
}

// A arrayAccess is an array that a tile is computed from, and the op that reads it.
type arrayAccess struct {
	op int
	coalesce.ArrayAccess
}

// A tileLoop is a loop in which a block goes from tile to tile, the number of blocks
// further each time.
type tileLoop struct {
	tile      operand // its number
	label     operand
	waits     int // barriers before it
	mathGroup *mathGroup
	done      operand // where those go that have no tile
}

// loopsOverTiles says whether blocks go from tile to tile: a persistent schedule.
func (e *emitter) loopsOverTiles() bool { return e.knobs.persistent > 0 }

// A mathGroup is one of the two groups of warpgroups that take tiles of a
// persistent block in turns (knob persistent=2), as seen by a thread of it: while
// one group stores a tile, the other has the tensor cores for the next (CUTLASS,
// KernelTmaWarpSpecializedPingpong). One producer fills one ring for both, tile
// after tile, so that each slot is read by one group.
type mathGroup struct {
	number                  operand // the same register for all lanes: it is uniform
	barrier, turn, nextTurn operand // named barriers: for itself, for its turn, for that of the other
	private                 int64   // bytes of shared memory that each has of its own
}

// mathGroups is how many take tiles of a block in turns.
func (k knobs) mathGroups() int {
	if k.persistent == pingpong {
		return 2
	}
	return 1
}

// A tensorMap is a parameter of the kernel that describes another.
type tensorMap struct {
	param int
	spec  device.TensorMapSpec // without the base
}

// Conditions are all to hold: each says that an expression is not negative.
// They are kept in a form in which those that always agree are equal.
type conditions []index.Expr

// never is a condition that does not hold.
func never(r *index.Ring) conditions { return conditions{r.Const(-1)} }

// and adds x ≥ 0, in the form in which conditions that agree are equal.
func (c conditions) and(x index.Expr) conditions {
	in := x.Range()
	if in.Lo >= 0 {
		return c
	}
	if in.Hi < 0 {
		return never(x.Ring())
	}
	x = coalesce.NonNegative(x)
	if slices.Contains(c, x) {
		return c
	}
	return append(slices.Clone(c), x)
}

// all adds conditions.
func (c conditions) all(d conditions) conditions {
	for _, x := range d {
		c = c.and(x)
	}
	return c
}

// within adds lo ≤ x < hi.
func (c conditions) within(x, lo, hi index.Expr) conditions {
	return c.and(x.Sub(lo)).and(
		hi.Sub(x).AddConst(-1),
	)
}

func (e *emitter) parameter(n int) operand { return e.params[n] }

func (e *emitter) output(n int) operand { return e.outputs[n] }

// pointer declares a parameter that is the address of an array.
func (e *emitter) pointer(name string, o device.Operand) operand {
	a := e.asm
	e.args = append(e.args, o)
	a.code.Param(ptx.U64, name)
	p := a.get(
		kindB64, "ld.param.u64", address{base: operand(name)},
	)
	return a.get(kindB64, "cvta.to.global.u64", p)
}

func (e *emitter) typeOf(n, part int) hlo.DType {
	s := e.p.Ops[n].Instr.Shape
	if s.DType == hlo.Tuple {
		s = s.Tuple[part]
	}
	return s.DType
}

// describe names an op and its tile.
func (e *emitter) describe(n int) string {
	op := e.p.Ops[n]
	return fmt.Sprintf(
		"%%%d = %s (%s) %s", n, op.Code, op.Instr.Name, op.Tile,
	)
}

// comment comments on an op where the first of its elements in a stage is computed.
func (e *emitter) comment(n int) {
	if !e.noted[n] {
		e.noted[n] = true
		e.asm.note("%s", e.describe(n))
	}
}

// A place is an element in memory: its position in elements, and when it is there.
type place struct {
	at   index.Expr
	when conditions
}

// A accumulator is a reduce or dot: what comes before its loop, at the end of every
// iteration, and after it. Where blocks share the loop, leave stores what one of
// them has accumulated, and gather accumulates what all have left.
type accumulator interface {
	begin()
	accumulate()
	finish()
	storePartial()
	addPartials()
}
