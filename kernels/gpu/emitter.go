package gpu

import (
	"fmt"
	"github.com/tilewright/tilewright/kernels"
	"maps"
	"slices"

	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// An emitter generates the kernels of one plan for a concrete program, one kernel
// after the other: a block of threads runs one tile program. It walks the program's
// steps and computes every element that a step needs from elements of its arguments,
// down to loads (see elements).
//
// The emitter is emitted again from the start whenever its hints have changed, so
// nothing in it survives a kernel but hints and what kernels share: the builder and
// the constants.
type emitter struct {
	// The concrete program, and the ring of its index expressions.
	p    *symtile.Program
	ring *index.Ring
	// The device that code is generated for, and the plan's knobs.
	spec  device.Spec
	knobs knobs
	// Builder is the module that the kernels belong to; asm is the body of the current
	// one.
	builder *ptx.Builder
	asm     *asm
	// Hints are what earlier emissions of the same plan found out.
	hints *hints
	// Phase and name identify the kernel among those of the plan.
	phase phase
	name  string
	// Smem is the address of dynamic shared memory; tid is %tid.x.
	smem operand
	tid  operand
	// Shared is the bytes of shared memory that are allocated so far.
	shared int64

	// Threads is the number of threads of a tile program; thread is the number of this
	// one, from 0.
	threads int64
	thread  index.Expr
	// VectorBytes bounds the bytes of one access of a thread (knob vector).
	vectorBytes int64
	// Loops counts the loop variables that have been named.
	loops int
	// Noted are the ops that a comment has been emitted for in the current stage.
	noted map[int]bool
	// Freed is shared memory of an earlier loop, which may be used again.
	freed memoryRange
	// LoopDepth is the number of loops of the program around the current step.
	loopDepth int
	// Stream is how blocks share tiles (knob streamk); nil where they do not.
	stream *stream
	// TileLoop is the loop over the tiles of a persistent block; nil for others.
	tileLoop *tileLoop
	// Sums is the number of accumulators of products that a thread holds.
	sums int64
	// GroupDots are the products of the last ring, and boxed the results that tensor
	// copies store.
	groupDots []*groupDot
	boxed     []*boxStore
	// Promoted reports whether a product has sums that are promoted.
	promoted bool
	// ExitArrived reports whether the block has arrived at the barrier at which its
	// cluster ends.
	exitArrived bool
	// Extra is the number of threads beyond those of one tile program: a producer, or
	// a second math group.
	extra int
	// MathGroup is the group of this thread, nil where a block has one only; common is
	// the bytes of shared memory that the groups share.
	mathGroup *mathGroup
	common    int64
	// Root is the op that is being stored, −1 where none is.
	root int
	// Narrowed are the ops whose results are rounded to 16 bits before anything else can
	// lose digits of them, and rough is set while one of them is computed.
	narrowed []bool
	rough    bool
	// Bases are how rough exponentials of a row's elements are computed, by the running
	// maximum of the row.
	bases map[operand]weightBase
	// Decided are comparisons whose result is known in the code that is emitted.
	decided map[int]operand
	// Policy is the cache policy of arrays that pass through the L2 cache once (knob l2),
	// and hintedSome reports whether there is one.
	policy     operand
	hintedSome bool
	// Awaited reports whether the kernel has waited for the one before it (knob pdl).
	awaited bool
	// Fresh reports whether shared memory was written since the last barrier, and
	// async whether cp.async did so.
	fresh bool
	async bool

	// Links number lists of expressions: see number.
	links map[link]int
	// Buffers are the results of ops that are in shared memory.
	buffers map[bufferKey]*buffer
	// Choices are the thread layouts that were chosen for tiles; folds are those of
	// reductions, by what they depend on.
	choices map[choiceKey]chosenLayout
	folds   map[string]chosenLayout
	// ThreadLayout is the layout by which threads go over the current tile, if it was
	// chosen for the arrays that are read; nil where the fragments of a product
	// decide.
	threadLayout *coalesce.ThreadLayout
	// Layouts are those by which a reduction has left its results in registers, by the
	// sizes of the tile.
	layouts map[string]*coalesce.ThreadLayout
	// Fragments visit the elements of a product that a thread holds in registers, by
	// the sizes of the tile.
	fragments map[string]func(body func(points []point))
	// Params and outputs are the addresses of the fusion's arrays; maps are the tensor
	// maps among the parameters.
	params  []operand
	outputs []operand
	maps    []tensorMap
	// Args are the arguments of the launch, one a parameter of the kernel.
	args []device.Operand
	// Scratch is the bytes of each array between the kernels of the plan.
	scratch []int64
	// Block is the number of the tile program among those of the grid, and piece the
	// number of the part of its loops (grid y) where blocks share a tile.
	block index.Expr
	piece index.Expr
	// Constants are the symbols of the arrays that the module declares, by their
	// bytes.
	constants map[string]operand
	// Pairs are variables that stand for an exclusive or, by its operands; xors is the
	// inverse.
	pairs map[pair]index.Expr
	xors  map[index.Expr]pair

	// The log of accesses of global memory.
	accessLog
}

// newEmitter returns the emitter of one kernel of a plan.
func newEmitter(p *symtile.Program, sheet device.Spec, k knobs, h *hints) *emitter {
	return &emitter{
		p: p, ring: p.Space.Ring, spec: sheet,
		knobs: k, hints: h,
		threads:     int64(k.warps) * device.WarpThreads,
		vectorBytes: int64(k.vector),
		narrowed:    narrowedOps(p, k),
		root:        -1, links: map[link]int{},
		buffers:   map[bufferKey]*buffer{},
		folds:     map[string]chosenLayout{},
		layouts:   map[string]*coalesce.ThreadLayout{},
		choices:   map[choiceKey]chosenLayout{},
		decided:   map[int]operand{},
		noted:     map[int]bool{},
		fragments: map[string]func(body func(points []point)){},
		pairs:     map[pair]index.Expr{},
		xors:      map[index.Expr]pair{},
	}
}

// Hints are facts about a plan that are known only after its code was emitted, such as
// values that other threads need than those that compute them. The emission of the
// kernel adds to them, and is repeated until it adds nothing.
type hints struct {
	// SharedResults are results of accumulators that have to be in shared memory.
	sharedResults map[bufferKey]bool
	// Staged are the ops whose tiles are copied to shared memory.
	staged map[int]bool
	// SeparateStores are roots that are not stored from the registers that a product
	// left them in.
	separateStores map[int]bool
	// NarrowMMA is set where mma.sync multiplies elements of 8 bits.
	narrowMMA bool
	// GroupBytes is the bytes of shared memory that each math group has for itself.
	groupBytes int64
	// Changed reports whether this emission added something.
	changed bool
}

// shareResult records that a result has to be in shared memory.
func (h *hints) shareResult(k bufferKey) {
	h.changed, h.sharedResults[k] = h.changed ||
		!h.sharedResults[k], true
}

// stage records that the tile of op n has to be copied to shared memory.
func (h *hints) stage(n int) {
	h.changed, h.staged[n] = h.changed ||
		!h.staged[n], true
}

// multiplies records that warps multiply elements of d.
func (h *hints) multiplies(d hlo.DType) {
	narrow := h.narrowMMA || d.Size() == 1
	h.changed, h.narrowMMA = h.changed || narrow != h.narrowMMA, narrow
}

// stagedOps are the ops that are brought to shared memory, in order.
func (h *hints) stagedOps() []int {
	return slices.Sorted(maps.Keys(h.staged))
}

// Unsupported is the reason why a plan cannot run. It is thrown by reject and caught
// by emit, so that the code generator has no error results.
type unsupported string

func (r unsupported) Error() string { return string(r) }

// reject ends the emission.
func (e *emitter) reject(format string, args ...any) {
	panic(unsupported(fmt.Sprintf(format, args...)))
}

// refuse ends the emission of a program that there is no code for, whatever the plan:
// an operation, or a type of elements.
func (e *emitter) refuse(i *hlo.Instr, format string, args ...any) {
	panic(&kernels.Uncomputed{Instr: i, Reason: fmt.Sprintf(format, args...)})
}

// A phase is one of the kernels of a plan. A plan with splitk > 1 has two, so that
// several blocks share one tile: the first has a grid of tile programs × pieces,
// and each block runs its part of the loops' iterations and stores its partial
// results to scratch memory. The second adds the partial results in the order of
// the pieces and computes what follows the loops, so that the bits of a result
// depend on the plan only (Osama et al., Stream-K, PPoPP 2023, §2, "fixed split").
type phase uint8

const (
	// phaseWhole is the only kernel of a plan.
	phaseWhole phase = iota
	// phasePartials computes pieces of the loops and stores partial results.
	phasePartials
	// phaseCombine adds the partial results and computes the rest.
	phaseCombine
)

// suffix ends the name of the phase's kernel.
func (ph phase) suffix() string {
	return [...]string{"", "_pieces", "_rest"}[ph]
}

// A point is an element of a tile: its index in the tile, and the conditions under
// which it is valid. Where they do not hold its value is unspecified, and its memory
// is not accessed.
type point struct {
	at   []index.Expr
	when conditions
}

// A link is a node of a linked list of expressions that are numbered: the list before
// it, and its last expression.
type link struct {
	before int
	x      index.Expr
}

// A bufferKey names a result of an op.
type bufferKey struct{ op, part int }

// A buffer is a tile in shared memory.
type buffer struct {
	// The type that elements are held in, which may be wider than the op's.
	d     hlo.DType
	sizes []int64
	// Strides are in elements, 0 for the two dimensions of a transposed tile.
	strides []int64
	// At is the offset in bytes from base, a slot of a ring; "" is the start of shared
	// memory.
	at int64
	// Base is the address of a slot; "" for the start of shared memory.
	base operand
	// Transposed is the layout of two of the dimensions; nil where all have strides.
	transposed *transposedTile
}

// A memoryRange is the shared memory from offset at to end, in bytes.
type memoryRange struct{ at, end int64 }

// Memory is an array that elements are loaded from or stored to.
type memory struct {
	space space
	base  operand
	// First is the offset of the array from base, in bytes.
	first int64
}

// plus is the memory the given number of bytes further.
func (m memory) plus(bytes int64) memory {
	m.first += bytes
	return m
}

// A transposedTile is a tile in shared memory that is written row by row, as it is
// loaded, and read across the rows, as it is stored. A thread reads the vector
// neighbouring rows r = vector·q + i, and neighbouring threads have neighbouring q.
// Row r is therefore number i·step + q in shared memory, and its units are swizzled by
// q. Step is odd where several rows share a line of the banks, so that rows that are
// written at the same time are in different banks, too.
type transposedTile struct {
	// Along is the dimension of a row; across is the dimension that numbers the rows.
	along, across int
	vector        int64
	step          int64
	// Pitch is the distance of rows, in elements.
	pitch   int64
	swizzle swizzle
}

// A swizzle permutes the rows of a tile in shared memory, so that one unit of each of
// several neighbouring rows, which threads read at the same time, is in different
// banks without padding between the rows. Unit u of row r is stored at unit u xor
// (r/span mod group) of its row.
//
// A line of the 32 banks has L = lineBytes/unit units. Rows of n units, n = group·odd,
// begin at multiples of group in a line, and span = L/group of them begin at different
// ones. The xor acts on the bits below group and separates the spans of L rows. So L
// neighbouring rows have each unit in L different places of a line.
type swizzle struct {
	// Unit is in bytes, a power of two.
	unit int64
	// Group is a power of two; 1 is no permutation.
	group int64
	// Span is the number of neighbouring rows with the same permutation.
	span int64
}

// A pair is the operands of an exclusive or.
type pair struct{ x, y index.Expr }

// A choiceKey identifies a choice of a thread layout: the op whose tile it is for, the
// bytes of an element, and whether the tile is stored.
type choiceKey struct {
	op     int
	size   int64
	stored bool
}

// A chosenLayout is a thread layout of a tile and the accesses that it was chosen for.
type chosenLayout struct {
	coalesce.Choice
	box      coalesce.Box
	fold     *coalesce.Reduction
	accesses []arrayAccess
}

// An arrayAccess is an array that a tile is computed from, and the op that reads it;
// −1 where it is an output.
type arrayAccess struct {
	op int
	coalesce.ArrayAccess
}

// A tileLoop is the loop of a persistent block over its tiles, whose numbers are the
// number of blocks apart.
type tileLoop struct {
	// Tile is the register with the number of the current tile; label is the start of
	// the loop.
	tile  operand
	label operand
	// Waits is the number of barriers that were emitted before the loop.
	waits     int
	mathGroup *mathGroup
	// Done is the label behind the loop, for math groups that have no tile.
	done operand
	// Piece is the part of the tile that the block has; nil where it has all of it.
	piece *tilePiece
}

// loopsOverTiles reports whether blocks are persistent.
func (e *emitter) loopsOverTiles() bool {
	return e.knobs.persistent > 0 || e.stream != nil
}

// A mathGroup is one of the two groups of warpgroups that take the tiles of a
// persistent block in turns (knob persistent=2), as seen by one of its threads: while
// one group stores a tile, the other uses the tensor cores for the next (CUTLASS,
// KernelTmaWarpSpecializedPingpong). One producer fills one ring for both groups, tile
// after tile, so that each slot is read by one group.
type mathGroup struct {
	// Number is 0 or 1, in a register that is uniform in a warp.
	number operand
	// The numbers of named barriers: of the group itself, of its turn and of the
	// other's turn.
	barrier, turn, nextTurn operand
	// Private is the bytes of shared memory that each group has for itself.
	private int64
}

// mathGroups is the number of groups that take the tiles of a block in turns.
func (k knobs) mathGroups() int {
	if k.persistent == pingpong {
		return 2
	}
	return 1
}

// A tensorMap is a parameter of the kernel that describes an array of the fusion for
// tensor copies. The base of the spec is 0: the launch adds it.
type tensorMap struct {
	of   device.Operand
	spec device.TensorMapSpec
}

// Conditions is a conjunction: each expression is required to be ≥ 0. Expressions are
// in a canonical form (coalesce.NonNegative), so that equal conditions compare equal.
type conditions []index.Expr

// never is a condition that does not hold.
func never(r *index.Ring) conditions { return conditions{r.Const(-1)} }

// and adds x ≥ 0, or nothing where the range of x implies it.
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

// all adds the conditions of d.
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

// parameter is the address of the fusion's parameter n.
func (e *emitter) parameter(n int) operand { return e.params[n] }

// output is the address of output n.
func (e *emitter) output(n int) operand { return e.outputs[n] }

// pointer declares a kernel parameter that is the address of an array.
func (e *emitter) pointer(name string, o device.Operand) operand {
	a := e.asm
	e.args = append(e.args, o)
	a.code.Param(ptx.U64, name)
	p := a.get(
		kindB64, "ld.param.u64", address{base: operand(name)},
	)
	return a.get(kindB64, "cvta.to.global.u64", p)
}

// typeOf is the element type of a result of op n.
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
		"%%%d = %s (%s) %s", n, op.Code, op.Instr.Name,
		op.Tile,
	)
}

// comment emits a comment for an op where the first of its elements in a stage is
// computed.
func (e *emitter) comment(n int) {
	if !e.noted[n] {
		e.noted[n] = true
		e.asm.note("%s", e.describe(n))
	}
}

// A place is an element in memory: its position in elements, and the conditions under
// which it is accessed.
type place struct {
	at   index.Expr
	when conditions
}

// An accumulator is the code of a reduce or dot around a loop. Where several blocks
// share the iterations of the loop (knob splitk), storePartial takes the place of
// finish in the first kernel, and addPartials that of the loop in the second. With the
// knob streamk a kernel has both.
type accumulator interface {
	// begin emits what comes before the loop.
	begin()
	// accumulate emits what comes at the end of each iteration.
	accumulate()
	// finish makes the result available to the steps after the loop.
	finish()
	// storePartial stores what this block has accumulated to scratch memory.
	storePartial()
	// addPartials accumulates what all blocks have stored, or the one that the stream names.
	addPartials()
}
