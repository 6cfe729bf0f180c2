package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/tilewright/tilewright/kernels/cpu/portable"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// A residence says where the elements of a value are while they are needed.
type residence uint8

const (
	inTile     residence = iota // all of them in scratch
	inStrip                     // those of the strip being computed, in scratch
	inSplat                     // all are equal: a strip of copies, in scratch
	inMemory                    // in an array of the caller
	inRow                       // those of the row being computed, in scratch
	inRegister                  // in a register of machine code
)

var residenceNames = [...]string{
	inTile:     "tile",
	inStrip:    "strip",
	inSplat:    "splat",
	inMemory:   "in place",
	inRow:      "row",
	inRegister: "register",
}

// A value is what a tile instruction makes.
type value struct {
	id               int    // its pointer is worker.base[id]
	name             string // for the listing
	class            portable.Class
	tile             int   // the op whose tile, or a strip of it, it holds; or splats
	n                int64 // elements there is room for
	where            residence
	view             *memoryView // set: it is never made, but read where it comes from
	strides          []int64     // of the tile's dimensions where it is part of an array; nil: it is dense
	constant         *uint32     // the element that all are, of a constant of four bytes
	nonTemporal      bool        // in an array that does not stay in the caches
	at               int64       // bytes into the arena of a worker
	liveFrom, liveTo int         // first and last position in the program it is needed at
}

const noTile = -1 // in place of an op: copies of one element

func (v *value) bytes() int64 { return v.n * v.class.Bytes() }

// stripLength is how many elements pointwise instructions compute at a time,
// where the plan does not say: a
// dozen values of it stay in a first cache of 32 KiB.
const stripLength = 512

// whole is all elements of a value.
func whole[T portable.Number](w *worker, v *value) []T {
	return unsafe.Slice((*T)(w.addresses[v.id]), v.n)
}

// part is elements lo … hi−1, at most a strip where only a strip is there.
func part[T portable.Number](w *worker, v *value, lo, hi int64) []T {
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

// An instr is one tile instruction: exactly one of strip, run, loop, group and
// nest is set.
type instr struct {
	name      string
	outs      []*value // made by it, and its own temporary ones
	stripArgs []*value // read at the elements it computes
	tileArgs  []*value // read anywhere

	pointwise   *pointwiseOp  // what a pointwise instruction computes
	source      *memoryView   // what a rearrangement or load shows, where machine code can read that itself
	sink        *memoryView   // what a store writes, where machine code can do that itself
	reduction   *rowReduction // of a reduction that machine code does
	copied      *value        // of which outs[0] is copies
	nonTemporal bool          // it writes an array that does not stay in the caches
	rows        *rowGroup     // what it stands for
	routine     int           // the machine function of its group that it is part of, 0: none
	n           int64         // elements, of strip and group
	strip       strip
	run         step
	loop        *loop
	group       []*instr // pointwise instructions run strip by strip
}

// A block is the instructions of the program or of the body of a loop, with
// the places (offsets and bounds) that have to be computed where it begins.
type block struct {
	l              *lowering
	outer          *block
	ids            []index.Expr // tile ids that vary in here and not in outer
	exprs          []index.Expr // computed at the beginning
	targets        []int        // the place of each
	slots          map[index.Expr]int
	binds          []bind
	list           []*instr
	splats         map[splatKey]*value
	waitFor        []*value         // what the next instruction has to wait for
	runtimeOffsets []*runtimeOffset // of the outermost block
}

// A bind points a value at an array of the caller, at the beginning of a block.
type bind struct {
	text string
	v    *value
	run  step
}

type splatKey struct {
	v *value
	n int64
}

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

func constant(e index.Expr) bool { _, ok := e.Value(); return ok }

func (b *block) add(i *instr) {
	i.tileArgs = append(i.tileArgs, b.waitFor...)
	b.waitFor = nil
	b.list = append(b.list, i)
}

// slot says where the value of e will be: it is computed at the beginning of
// the outermost block in which it is known, or where the run-time variables are
// read that are in it.
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

// slotStep makes the step that computes the places of the block; nil when there
// are none.
func (b *block) slotStep() step {
	return b.l.slotStep(b.exprs, b.targets)
}

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

// A loop runs its body once per combination of its tile ids, the last fastest.
type loop struct {
	dims               []int
	trips              []int64
	split              *splitK // nil: a tile program does all iterations
	prologue, epilogue []step
	steps              []step // locate, then the body
	iterationEnds      []step // of an iteration
	body               *schedule
}

func (lp *loop) run(w *worker) {
	for _, s := range lp.prologue {
		s(w)
	}
	begin := int64(0)
	end := hlo.Elements(lp.trips)
	if lp.split != nil {
		begin, end = lp.split.rangeOf(w, end, 1)
	}
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
	lp.seek(w, 0)
	for _, s := range lp.epilogue {
		s(w)
	}
}

// seek sets the tile ids of iteration n.
func (lp *loop) seek(w *worker, n int64) {
	for k := len(lp.dims) - 1; k >= 0; k-- {
		w.tids[lp.dims[k]] = n % lp.trips[k]
		n /= lp.trips[k]
	}
}

// advance steps the tile ids, after the last to the first.
func (lp *loop) advance(w *worker) {
	for k := len(lp.dims) - 1; k >= 0; k-- {
		if w.tids[lp.dims[k]]++; w.tids[lp.dims[k]] < lp.trips[k] {
			return
		}
		w.tids[lp.dims[k]] = 0
	}
}

// A runtimeOffset step reads the run-time variables of some tiles and computes the
// places that depend on them and on parallel tile ids only. What reads such a
// place comes after it, because it reads the late step's value.
type runtimeOffset struct {
	vars    []int // indices into Program.Runtime
	ready   *value
	exprs   []index.Expr
	targets []int
	run     step
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

// awaitRuntime makes the next instruction of b wait for the run-time variables; the
// step that reads them is in the outermost block.
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

// clampedStartStep reads a scalar, clamped to [0, most], into a slot of the tile ids.
func clampedStartStep(v *value, d hlo.DType, slot int, most int64) step {
	switch v.class {
	case portable.Int32:
		return func(w *worker) {
			w.tids[slot] = max(
				0,
				min(int64(first[int32](w, v)), most),
			)
		}
	case portable.Int64:
		unsigned := d == hlo.U64
		return func(w *worker) {
			x := first[int64](w, v)
			if unsigned && x < 0 {
				x = most
			}
			w.tids[slot] = max(0, min(x, most))
		}
	}
	panic(fmt.Sprintf("cpu: a start index of class %s", v.class.String()))
}

// settle compiles the places of late steps.
func (b *block) compileRuntimeOffsets() {
	for _, x := range b.runtimeOffsets {
		x.run = b.l.slotStep(x.exprs, x.targets)
	}
}

// slotVariables lists the variables that expressions of places can have, and where
// their values are in a worker's tile ids.
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
