package cpu

import (
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

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
