package cpu

import "github.com/tilewright/tilewright/symtile"

// A strip computes elements lo … hi−1 of a value.
type strip func(w *worker, lo, hi int64)

// A step runs one instruction, or a group of them.
type step func(w *worker)

// An instr is one tile instruction: exactly one of strip, run, loop, group and
// nest is set.
type instr struct {
	name string
	outs []*value // made by it, and its own temporary ones
	same []*value // read at the elements it computes
	full []*value // read anywhere

	pure   *pure      // what a pointwise instruction computes
	view   *view      // what a rearrangement or load shows, where machine code can read that itself
	sink   *view      // what a store writes, where machine code can do that itself
	fold   *reduction // of a reduction that machine code does
	copied *value     // of which outs[0] is copies
	large  bool       // it writes an array that does not stay in the caches
	nest   *nest      // what it stands for
	part   int        // the machine function of its group that it is part of, 0: none
	n      int64      // elements, of strip and group
	strip  strip
	run    step
	loop   *loop
	group  []*instr // pointwise instructions run strip by strip
}

// A block is the instructions of the program or of the body of a loop, with
// the places (offsets and bounds) that have to be computed where it begins.
type block struct {
	l       *lowering
	outer   *block
	ids     []symtile.Expr // tile ids that vary in here and not in outer
	exprs   []symtile.Expr // computed at the beginning
	targets []int          // the place of each
	known   map[symtile.Expr]int
	binds   []bind
	list    []*instr
	full    map[spreadKey]*value
	pending []*value // what the next instruction has to wait for
	lates   []*late  // of the outermost block
}

// A bind points a value at an array of the caller, at the beginning of a block.
type bind struct {
	text string
	v    *value
	run  step
}

type spreadKey struct {
	v *value
	n int64
}

func (l *lowering) block(outer *block, dims []int) *block {
	b := &block{l: l, outer: outer, known: map[symtile.Expr]int{}, full: map[spreadKey]*value{}}
	for _, d := range dims {
		if id := l.p.Space.Dims[d].Tid; !constant(id) {
			b.ids = append(b.ids, id)
		}
	}
	return b
}

func constant(e symtile.Expr) bool { _, ok := e.Value(); return ok }

func (b *block) add(i *instr) {
	i.full = append(i.full, b.pending...)
	b.pending = nil
	b.list = append(b.list, i)
}

// place says where the value of e will be: it is computed at the beginning of
// the outermost block in which it is known, or where the run-time variables are
// read that are in it.
func (b *block) place(e symtile.Expr) int {
	var x *late
	if vars := b.l.runtimeIn(e); len(vars) > 0 {
		x = b.after(vars)
	}
	for b.outer != nil && !b.varies(e) {
		b = b.outer
	}
	if n, ok := b.known[e]; ok {
		return n
	}
	n := b.l.places
	b.l.places++
	b.known[e] = n
	if x != nil && b.outer == nil {
		x.exprs, x.targets = append(x.exprs, e), append(x.targets, n)
	} else if v, ok := e.Value(); ok {
		b.l.fixed = append(b.l.fixed, fixedPlace{n, v})
	} else {
		b.exprs, b.targets = append(b.exprs, e), append(b.targets, n)
	}
	return n
}

func (b *block) varies(e symtile.Expr) bool {
	for _, v := range e.Vars() {
		for _, id := range b.ids {
			if v == id {
				return true
			}
		}
	}
	return false
}

// locate makes the step that computes the places of the block; nil when there
// are none.
func (b *block) locate() step { return b.l.locate(b.exprs, b.targets) }

func (l *lowering) locate(exprs []symtile.Expr, targets []int) step {
	if len(exprs) == 0 || l.err != nil {
		return nil
	}
	vars, at := l.slots()
	code, err := symtile.Compile(vars, exprs)
	if err != nil {
		l.err = err
		return nil
	}
	n, m := len(at), len(exprs)
	l.eval = max(l.eval, n+m+code.ScratchLen())
	return func(w *worker) {
		vals, out := w.eval[:n], w.eval[n:n+m]
		for k, d := range at {
			vals[k] = w.tids[d]
		}
		code.Eval(vals, out, w.eval[n+m:])
		for k, t := range targets {
			w.places[t] = out[k]
		}
	}
}

// A loop runs its body once per combination of its tile ids, the last fastest.
type loop struct {
	dims          []int
	trips         []int64
	split         *split // nil: a tile program does all iterations
	before, after []step
	steps         []step // locate, then the body
	ends          []step // of an iteration
	body          *sequence
}

func (lp *loop) run(w *worker) {
	for _, s := range lp.before {
		s(w)
	}
	begin, end := int64(0), product(lp.trips)
	if lp.split != nil {
		begin, end = lp.split.share(w, end, 1)
	}
	lp.seek(w, begin)
	for ; begin < end; begin++ {
		if w.stopped() {
			return
		}
		for _, s := range lp.steps {
			s(w)
		}
		for _, s := range lp.ends {
			s(w)
		}
		lp.next(w)
	}
	lp.seek(w, 0)
	for _, s := range lp.after {
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

// next steps the tile ids, after the last to the first.
func (lp *loop) next(w *worker) {
	for k := len(lp.dims) - 1; k >= 0; k-- {
		if w.tids[lp.dims[k]]++; w.tids[lp.dims[k]] < lp.trips[k] {
			return
		}
		w.tids[lp.dims[k]] = 0
	}
}
