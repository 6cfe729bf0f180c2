package cpu

import "github.com/tilewright/tilewright/symtile"

// A strip computes elements lo … hi−1 of a value.
type strip func(w *worker, lo, hi int64)

// A step runs one instruction, or a group of them.
type step func(w *worker)

// An instr is one tile instruction: exactly one of strip, run, loop and group
// is set.
type instr struct {
	name string
	outs []*value // made by it, and its own temporary ones
	same []*value // read at the elements it computes
	full []*value // read anywhere

	n     int64 // elements, of strip and group
	strip strip
	run   step
	loop  *loop
	group []*instr // pointwise instructions run strip by strip
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

func (b *block) add(i *instr) { b.list = append(b.list, i) }

// place says where the value of e will be: it is computed at the beginning of
// the outermost block in which it is known.
func (b *block) place(e symtile.Expr) int {
	for b.outer != nil && !b.varies(e) {
		b = b.outer
	}
	if n, ok := b.known[e]; ok {
		return n
	}
	n := b.l.places
	b.l.places++
	b.known[e] = n
	if v, ok := e.Value(); ok {
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
func (b *block) locate() step {
	if len(b.exprs) == 0 || b.l.err != nil {
		return nil
	}
	vars, dims := b.l.tids()
	code, err := symtile.Compile(vars, b.exprs)
	if err != nil {
		b.l.err = err
		return nil
	}
	n, m := len(dims), len(b.exprs)
	b.l.eval = max(b.l.eval, n+m+code.ScratchLen())
	targets := b.targets
	return func(w *worker) {
		vals, out := w.eval[:n], w.eval[n:n+m]
		for k, d := range dims {
			vals[k] = w.tids[d]
		}
		code.Eval(vals, out, w.eval[n+m:])
		for k, t := range targets {
			w.places[t] = out[k]
		}
	}
}

// tids lists the tile ids that vary, and their dimensions.
func (l *lowering) tids() (vars []symtile.Expr, dims []int) {
	for k, d := range l.p.Space.Dims {
		if !constant(d.Tid) {
			vars, dims = append(vars, d.Tid), append(dims, k)
		}
	}
	return vars, dims
}

// A loop runs its body once per combination of its tile ids, the last fastest.
type loop struct {
	dims          []int
	trips         []int64
	before, after []step
	steps         []step // locate, then the body
	body          *sequence
}

func (lp *loop) run(w *worker) {
	for _, s := range lp.before {
		s(w)
	}
	for _, d := range lp.dims {
		w.tids[d] = 0
	}
	for more := true; more; more = lp.next(w) {
		if w.stopped() {
			return
		}
		for _, s := range lp.steps {
			s(w)
		}
	}
	for _, s := range lp.after {
		s(w)
	}
}

// next steps the tile ids; false after the last.
func (lp *loop) next(w *worker) bool {
	for k := len(lp.dims) - 1; k >= 0; k-- {
		if w.tids[lp.dims[k]]++; w.tids[lp.dims[k]] < lp.trips[k] {
			return true
		}
		w.tids[lp.dims[k]] = 0
	}
	return false
}
