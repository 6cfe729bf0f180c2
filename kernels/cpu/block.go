package cpu

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/internal/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A residence says where the elements of a value are while they are live.
type residence uint8

const (
	inTile  residence = iota // All elements are in scratch.
	inStrip                  // The strip being computed is in scratch.
	// All are equal: a strip of copies is in scratch.
	inSplat
	inMemory // The elements are in an array of the caller.
	inRow    // The row being computed is in scratch.
	// The elements are in registers of machine code.
	inRegister
)

// residenceNames are the names of residences in listings.
var residenceNames = [...]string{
	inTile:     "tile",
	inStrip:    "strip",
	inSplat:    "splat",
	inMemory:   "in place",
	inRow:      "row",
	inRegister: "register",
}

// A value is the result of a tile instruction: the elements of a tile, or of a
// part of it at a time.
type value struct {
	// The number of the value, which indexes worker.addresses.
	id    int
	name  string         // The name in listings.
	class portable.Class // The class of the elements.
	// The op of the program whose tile the value holds, or noTile. The size of
	// the value follows the size of that tile.
	tile int
	// The number of elements for which there is room.
	n     int64
	where residence // Where the elements are.
	// If set, the value is never made: machine code reads it where it comes
	// from, or writes it where it goes.
	view *memoryView
	// The strides of the tile's dimensions where the value is part of an array,
	// or nil for a dense value. Only dots read and write such values.
	strides []int64
	// The bytes of an element where elements lie as in an array that has shorter ones than
	// the class, or 0. Only dots and reductions read such values.
	short int64
	// The elements are bf16 that only a dot reads, which reads them as they lie: a row kernel
	// that makes them stores them so, and they are short then.
	narrow bool
	// The bits of the element that all elements are, for constants of four
	// bytes, else nil.
	constant *uint32
	// The bits of that element for constants of any class, else nil: strip functions have
	// these in their code.
	number *uint64
	// The array is too large to stay in the caches.
	nonTemporal bool
	// The elements that are read of the value, nil where all are.
	needed *tileBox
	at     int64 // The offset in the arena of a worker.
	// The live range: the first and last position in the program at which the
	// value is needed.
	liveFrom, liveTo int
}

// noTile stands in place of an op for values whose size does not depend on a
// tile, such as strips of copies.
const noTile = -1

// bytes is the size of the value.
func (v *value) bytes() int64 {
	return v.n * v.elementBytes()
}

// elementBytes is the size of an element.
func (v *value) elementBytes() int64 {
	return cmp.Or(v.short, v.class.Bytes())
}

// stripLength is the number of elements that elementwise instructions compute
// at a time unless the plan says otherwise. Half a dozen values of it stay in a first-level
// cache of 32 KiB. With 512 a norm of f64, pads, masks, a slice with rotations and a chain of bytes
// take 1.03 to 1.1 times as long, most of it calls, and nothing of BenchmarkOverhead less; with
// 2048 the norm takes longer (Zen 4, one thread, least of 60 in turns).
const stripLength = 1024

// whole is all elements of a value.
func whole[T portable.Number](w *worker, v *value) []T {
	return unsafe.Slice((*T)(w.addresses[v.id]), v.n)
}

// part is elements lo … hi−1 of a value. Of values that exist a strip at a
// time, these are the first elements of the strip.
func part[T portable.Number](
	w *worker, v *value, lo, hi int64,
) []T {
	if v.where == inStrip || v.where == inSplat {
		lo, hi = 0, hi-lo
	}
	return unsafe.Slice((*T)(
		w.addresses[v.id],
	), v.n)[lo:hi:hi]
}

// first is the only element of a scalar.
func first[T portable.Number](w *worker, v *value) T {
	return *(*T)(w.addresses[v.id])
}

// A strip computes elements lo … hi−1 of a value.
type strip func(w *worker, lo, hi int64)

// A step runs one instruction, or a group of them.
type step func(w *worker)

// An instr is one tile instruction. Exactly one of strip, run, loop, group and
// rows is set.
type instr struct {
	name string // The name in listings.
	// The results, and temporaries of the instruction.
	outs []*value
	// Values that are read at the elements being computed.
	stripArgs []*value
	tileArgs  []*value // Values that are read at any element.

	pointwise *pointwiseOp // The operation of an elementwise instruction.
	// The memory that a rearrangement or load shows, where machine code can
	// read it in place.
	source *memoryView
	// The memory that a store writes, where machine code can write it in place.
	sink      *memoryView
	reduction *rowReduction // The reduction, where row kernels can do it.
	copied    *value        // The scalar of which outs[0] holds copies.
	// The array written is too large to stay in the caches.
	nonTemporal bool
	rows        *rowGroup // The instructions of a row kernel.
	// The number of the machine function of its group that the instruction is
	// part of; 0 for none.
	routine int
	n       int64 // The number of elements, for strip and group.
	strip   strip // What computes a strip.
	run     step  // What runs at once.
	loop    *loop // The loop.
	// Elementwise instructions that run strip by strip.
	group []*instr
}

// members yields the instructions of a group, and then the instruction itself.
func (i *instr) members(yield func(*instr) bool) {
	for _, x := range i.group {
		if !yield(x) {
			return
		}
	}
	yield(i)
}

// args yields the values that an instruction reads.
func (i *instr) args(yield func(*value) bool) {
	for _, list := range [...][]*value{i.stripArgs, i.tileArgs} {
		for _, v := range list {
			if !yield(v) {
				return
			}
		}
	}
}

// A block is the instructions of the program, or of the body of a loop, and the
// slots (offsets and bounds of tiles) that are computed where it begins.
type block struct {
	l *lowering // The lowering that the block belongs to.
	// The block around this one, nil for the program.
	outer *block
	// The tile ids that vary in the block and not in outer.
	ids     []index.Expr
	exprs   []index.Expr       // The expressions to compute at the beginning.
	targets []int              // The slot of each expression.
	slots   map[index.Expr]int // The slots that expressions have.
	binds   []bind             // The values that point to arrays.
	// The instructions, in the order of the program.
	list   []*instr
	splats map[splatKey]*value // The copies of scalars that were made.
	// Values that the next instruction must come after.
	waitFor []*value
	// The run-time offsets, of the outermost block only.
	runtimeOffsets []*runtimeOffset
	// The operand that the block makes and keeps; nil of all others.
	keeps *keptOperand
}

// A bind points a value at an array of the caller, at the beginning of a block.
type bind struct {
	text string // The text in listings.
	v    *value
	id   int // That of the value.
	base int // The slot of the first element, in elements of the array.
	// The bytes of an element, and of all.
	size, bytes int64
	array       int  // The number of the parameter or output.
	output      bool // The array is an output.
	// Parameters of which the value is a part of one, nil where it is of one array, and the
	// slot of the number of that one.
	joined []int
	which  int
}

// A splatKey identifies a number of copies of a scalar.
type splatKey struct {
	v *value
	n int64
}

// block makes an empty block for the body of a loop over the dimensions, or for
// the program where outer is nil.
func (l *lowering) block(outer *block, dims []int) *block {
	b := &block{
		l:      l,
		outer:  outer,
		slots:  map[index.Expr]int{},
		splats: map[splatKey]*value{},
	}
	for _, d := range dims {
		if id := l.p.Space.Dims[d].Tid; !constant(id) {
			b.ids = append(b.ids, id)
		}
	}
	return b
}

// constant reports whether an expression is a number.
func constant(e index.Expr) bool { _, ok := e.Value(); return ok }

// add appends an instruction.
func (b *block) add(i *instr) {
	i.tileArgs = append(i.tileArgs, b.waitFor...)
	b.waitFor = nil
	b.list = append(b.list, i)
}

// slot is the slot that will hold the value of e. It is computed at the
// beginning of the outermost block in which e is known, or, where e has
// run-time variables, by the instruction that reads them.
func (b *block) slot(e index.Expr) int {
	var x *runtimeOffset
	if vars := b.l.runtimeVars(e); len(vars) > 0 {
		x = b.awaitRuntime(vars)
	}
	for b.outer != nil && !b.varies(e) {
		b = b.outer
	}
	if n, ok := b.slots[e]; ok {
		return n
	}
	n := b.l.slotCount
	b.l.slotCount++
	b.slots[e] = n
	if x != nil && b.outer == nil {
		x.exprs = append(x.exprs, e)
		x.targets = append(x.targets, n)
	} else if v, ok := e.Value(); ok {
		b.l.constantSlots = append(
			b.l.constantSlots, constantSlot{n, v},
		)
	} else {
		b.exprs = append(b.exprs, e)
		b.targets = append(b.targets, n)
	}
	return n
}

// varies reports whether e has tile ids that vary in the block and not in
// outer.
func (b *block) varies(e index.Expr) bool {
	for _, v := range e.Vars() {
		for _, id := range b.ids {
			if v == id {
				return true
			}
		}
	}
	return false
}

// slotStep makes the step that computes the slots of the block, nil where there
// are none.
func (b *block) slotStep() step {
	return b.l.slotStep(b.exprs, b.targets)
}

// slotStep makes the step that evaluates expressions into slots.
func (l *lowering) slotStep(exprs []index.Expr, targets []int) step {
	if len(exprs) == 0 || l.err != nil {
		return nil
	}
	vars, at := l.slotVariables()
	code, err := index.Compile(vars, exprs)
	if err != nil {
		l.err = err
		return nil
	}
	n := len(at)
	m := len(exprs)
	l.evalLength = max(
		l.evalLength, n+m+code.ScratchLen(),
	)
	return func(w *worker) {
		vals := w.evalScratch[:n]
		out := w.evalScratch[n : n+m]
		for k, d := range at {
			vals[k] = w.tids[d]
		}
		code.Eval(vals, out, w.evalScratch[n+m:])
		for k, t := range targets {
			w.slots[t] = out[k]
		}
	}
}

// A loop runs its body once for each combination of its tile ids, the last of
// which varies fastest. Loops are sequential: iterations accumulate into values
// that live through all of them.
type loop struct {
	dims  []int   // The dimensions of the space that it walks.
	trips []int64 // The number of tiles along each.
	split *splitK // The parts that share the iterations, or nil.
	// The iterations that a mask hides wholly, nil where none are known.
	hidden *hiddenTiles
	// What the only iteration makes, unless it was made in a run before; nil where it
	// makes something else.
	kept *keptOperand
	// What runs before the first iteration and after the last.
	prologue, epilogue []step
	steps              []step    // The slots, then the body.
	iterationEnds      []step    // The steps at the end of an iteration.
	body               *schedule // The instructions of an iteration.
}

// run runs the iterations of the loop, or those of the worker's part of it.
func (lp *loop) run(w *worker) {
	if lp.kept != nil {
		lp.kept.provide(w, lp.steps)
		return
	}
	for _, s := range lp.prologue {
		s(w)
	}
	begin := int64(0)
	end := hlo.Elements(lp.trips)
	switch all := end; {
	case lp.split != nil:
		begin, end = lp.split.rangeOf(w, end, 1)
		lp.iterate(w, begin, end)
	case lp.hidden != nil:
		begin, end = lp.hidden.visible(w, all)
		lp.iterate(w, begin, end)
		if end < all && lp.hidden.counts(w) {
			lp.iterate(w, end, all)
		}
	default:
		lp.iterate(w, begin, end)
	}
	lp.seek(w, 0)
	for _, s := range lp.epilogue {
		s(w)
	}
}

// iterate runs iterations begin … end−1, or fewer where the run is cancelled.
func (lp *loop) iterate(w *worker, begin, end int64) {
	lp.seek(w, begin)
	for ; begin < end; begin++ {
		if w.stopped() {
			return
		}
		for _, s := range lp.steps {
			s(w)
		}
		for _, s := range lp.iterationEnds {
			s(w)
		}
		lp.advance(w)
	}
}

// seek sets the tile ids of iteration n.
func (lp *loop) seek(w *worker, n int64) {
	for k := len(lp.dims) - 1; k >= 0; k-- {
		w.tids[lp.dims[k]] = n % lp.trips[k]
		n /= lp.trips[k]
	}
}

// advance sets the tile ids of the next iteration, after the last those of the
// first.
func (lp *loop) advance(w *worker) {
	for k := len(lp.dims) - 1; k >= 0; k-- {
		if w.tids[lp.dims[k]]++; w.tids[lp.dims[k]] < lp.trips[k] {
			return
		}
		w.tids[lp.dims[k]] = 0
	}
}

// A runtimeOffset is an instruction that reads run-time variables, such as the
// start of a dynamic slice, and computes the slots that depend on them and on
// parallel tile ids only. Readers of these slots come after it, because they
// read its value ready.
type runtimeOffset struct {
	vars    []int        // Indices into Program.Runtime.
	ready   *value       // The value that readers of the slots read.
	exprs   []index.Expr // The expressions of the slots.
	targets []int        // The slot of each expression.
	run     step         // What evaluates the expressions.
}

// runtimeVars lists the run-time variables of an expression.
func (l *lowering) runtimeVars(e index.Expr) []int {
	var vars []int
	for k, r := range l.p.Runtime {
		if slices.Contains(e.Vars(), r.Var) {
			vars = append(vars, k)
		}
	}
	return vars
}

// awaitRuntime makes the next instruction of b come after the one that reads
// the run-time variables, which is in the outermost block.
func (b *block) awaitRuntime(vars []int) *runtimeOffset {
	top := b
	for top.outer != nil {
		top = top.outer
	}
	k := slices.IndexFunc(top.runtimeOffsets, func(x *runtimeOffset) bool {
		return slices.Equal(x.vars, vars)
	})
	if k < 0 {
		k = len(top.runtimeOffsets)
		top.runtimeOffsets = append(top.runtimeOffsets, top.newRuntimeOffset(vars))
	}
	if !slices.Contains(b.waitFor, top.runtimeOffsets[k].ready) {
		b.waitFor = append(
			b.waitFor, top.runtimeOffsets[k].ready,
		)
	}
	return top.runtimeOffsets[k]
}

// newRuntimeOffset adds an instruction that reads run-time variables.
func (b *block) newRuntimeOffset(vars []int) *runtimeOffset {
	x := &runtimeOffset{
		vars:  vars,
		ready: b.l.value("starts", portable.Int64, -1, 1),
	}
	in := &instr{
		name: "starts",
		outs: []*value{x.ready},
	}
	var reads []step
	for _, k := range vars {
		r := b.l.p.Runtime[k]
		v := b.l.results[r.Op][0]
		in.tileArgs = append(in.tileArgs, v)
		reads = append(
			reads,
			clampedStartStep(
				v,
				b.l.p.Ops[r.Op].Instr.Shape.DType,
				len(b.l.p.Space.Dims)+k,
				r.Var.Range().Hi,
			),
		)
	}
	in.run = func(w *worker) {
		for _, f := range reads {
			f(w)
		}
		if x.run != nil {
			x.run(w)
		}
	}
	b.list = append(b.list, in)
	return x
}

// clampedStartStep reads a scalar, clamped to [0, limit], into an element of
// the tile ids.
func clampedStartStep(v *value, d hlo.DType, slot int, limit int64) step {
	switch v.class {
	case portable.Int32:
		return func(w *worker) {
			w.tids[slot] = max(
				0,
				min(int64(first[int32](w, v)), limit),
			)
		}
	case portable.Int64:
		unsigned := d == hlo.U64
		return func(w *worker) {
			x := first[int64](w, v)
			if unsigned && x < 0 {
				x = limit
			}
			w.tids[slot] = max(0, min(x, limit))
		}
	}
	panic(fmt.Sprintf("cpu: a start index of class %s", v.class.String()))
}

// compileRuntimeOffsets makes the steps that compute the slots of run-time
// offsets, which are all known at the end of lowering.
func (b *block) compileRuntimeOffsets() {
	for _, x := range b.runtimeOffsets {
		x.run = b.l.slotStep(x.exprs, x.targets)
	}
}

// slotVariables lists the variables that expressions of slots can have, and
// where the tile ids of a worker hold their values.
func (l *lowering) slotVariables() (vars []index.Expr, at []int) {
	for k, d := range l.p.Space.Dims {
		if !constant(d.Tid) {
			vars = append(vars, d.Tid)
			at = append(at, k)
		}
	}
	for k, r := range l.p.Runtime {
		vars = append(vars, r.Var)
		at = append(at, len(l.p.Space.Dims)+k)
	}
	return vars, at
}
