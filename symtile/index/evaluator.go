package index

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// An Evaluator is a list of expressions compiled to flat code, for evaluation many
// times. It holds no reference to the ring and is safe for concurrent use.
//
// Values live in slots: the variables first, then one slot a step. A step makes
// its operands, which are sums of slots, and stores one value; so atoms that
// several expressions share are computed once, and sums are never stored. The
// results d0·4 + ⌊d1/32⌋ and d1 mod 4 of d0 and d1 are two steps,
//
//	slot 2 = ⌊slot 1/32⌋
//	slot 3 = ⌊slot 1/4⌋
//
// and the sums 4·slot 0 + slot 2 and slot 1 − 4·slot 3.
type Evaluator struct {
	vars  int
	steps []step
	terms []codeTerm // of all sums
	outs  []span     // the results
	slots int        // variables and steps
}

// A codeOp is what a step computes.
type codeOp uint8

// The operations of steps; sum and sum2 are the operands x and y. A shift is a
// division whose divisor is a power of two; the others divide by k, with a
// multiplication where the dividend allows it.

const (
	codeDiv   codeOp = iota // slot = ⌊sum/k⌋
	codeShift               // slot = ⌊sum/2ᵏ⌋
	codeQuot                // slot = ⌊sum/sum2⌋
	codeMin                 // slot = min(sum, 0)
	codeMul                 // slot = slot a · slot b
	codeSum                 // slot = sum
)

// A step computes the next slot from earlier ones.
type step struct {
	op   codeOp
	k    int64
	inv  uint64 // codeDiv: ⌈2⁶⁴/k⌉ for k < 2³²
	x, y span   // codeMul: x.at and y.at are slots
}

// A span is a sum: terms[at:end] + c.
type span struct {
	at, end int32
	c       int64
}

// A codeTerm is k times the value of a slot.
type codeTerm struct {
	k    int64
	slot int32
}

// Compile compiles results as functions of vars, each a variable or, for a
// variable of one value, a constant. A result with a variable that is not in vars
// is an error.
func Compile(vars, results []Expr) (*Evaluator, error) {
	c := &compiler{
		code: &Evaluator{vars: len(vars), slots: len(vars)},
		slot: map[int32]int32{},
	}
	for i, v := range vars {
		if x := v.lin(); len(x.t) == 1 { // a constant needs no slot of its own
			c.slot[x.t[0].a] = int32(i)
		}
	}
	for _, e := range results {
		c.r = e.r
		c.r.mu.Lock()
		err := c.atoms(e.lin())
		if err == nil {
			c.code.outs = append(
				c.code.outs, c.sum(e.lin()),
			)
		}
		c.r.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return c.code, nil
}

// Overflows reports whether int64 may not hold what some expressions of r divide, or
// compare with 0, which is then evaluated wrongly. Other sums and products are right modulo
// 2⁶⁴, and so right wherever their values fit. Without expressions, all of r are meant.
func (r *Ring) Overflows(exprs ...Expr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.atoms {
		if !r.isWide(id) {
			continue
		}
		if len(exprs) == 0 {
			return true
		}
		for _, e := range exprs {
			// Atoms are shared, and most of them belong to other expressions, some
			// of which were only tried.
			x := e.lin()
			all := r.atomsUnder(x, nil)
			atom := int32(id)
			if slices.Contains(all, atom) {
				return true
			}
		}
	}
	return false
}

// isWide reports whether an operand of an atom that is not modulo 2⁶⁴ may be no int64.
// Ranges saturate at the ends of int64, so that one that reaches an end may go beyond.
// Variables without bounds have such ranges, too: programs of tiles have none.
func (r *Ring) isWide(id int) bool {
	a := r.atoms[id]
	wide := func(form int32) bool {
		x := r.lin(form)
		in := r.sharpRange(x)
		return !in.Bounded()
	}
	switch a.kind {
	case atomDiv, atomMinZero,
		atomMod, atomFloorDiv:
		return wide(a.y)
	case atomQuot:
		return wide(a.y) ||
			wide(a.z)
	}
	return false
}

// A compiler emits the steps of an Evaluator.
type compiler struct {
	r    *Ring
	code *Evaluator
	slot map[int32]int32 // by atom
}

// atoms emits the steps for every atom under x that has no slot yet.
func (c *compiler) atoms(x lin) error {
	for _, id := range c.r.atomsUnder(x, nil) {
		if _, ok := c.slot[id]; ok {
			continue
		}
		if err := c.atom(id); err != nil {
			return err
		}
	}
	return nil
}

// atom emits the steps for one atom, whose operands have slots.
func (c *compiler) atom(id int32) error {
	a := c.r.atoms[id]
	switch a.kind {
	case atomVar:
		const format = "variable %s is not among the variables compiled for"
		return fmt.Errorf(format, c.r.vars[a.y].Name)
	case atomDiv, atomFloorDiv:
		x := c.sum(c.r.lin(a.y))
		c.emit(division(a.d, x))
	case atomMod:
		c.remainder(a)
	case atomQuot:
		c.emit(step{
			op: codeQuot,
			x:  c.sum(c.r.lin(a.y)),
			y:  c.sum(c.r.lin(a.z)),
		})
	case atomMinZero:
		x := c.sum(c.r.lin(a.y))
		c.emit(step{op: codeMin, x: x})
	case atomProduct:
		fs := c.r.factors(&a)
		at := c.slot[fs[0]]
		for _, f := range fs[1:] {
			x := span{at: at}
			y := span{at: c.slot[f]}
			c.emit(step{op: codeMul, x: x, y: y})
			at = int32(c.code.slots - 1)
		}
	}
	c.slot[id] = int32(c.code.slots - 1)
	return nil
}

// remainder emits the steps for y mod d, as y − d·⌊y/d⌋.
func (c *compiler) remainder(a atom) {
	y := c.r.lin(a.y)
	dividend := c.sum(y)
	c.emit(division(a.d, dividend))
	slot := int32(c.code.slots - 1)
	quotient := codeTerm{-a.d, slot}
	x := c.sum(y)
	c.code.terms = append(c.code.terms, quotient)
	x.end++
	c.emit(step{op: codeSum, x: x})
}

// division is the step ⌊x/d⌋, d > 1, without a division where that can be:
// for 0 ≤ x < 2³² it is the high word of x·⌈2⁶⁴/d⌉, as x·(⌈2⁶⁴/d⌉·d − 2⁶⁴) < 2⁶⁴.
func division(d int64, x span) step {
	switch {
	case d&(d-1) == 0:
		shift := bits.TrailingZeros64(uint64(d))
		return step{
			op: codeShift,
			k:  int64(shift),
			x:  x,
		}
	case d < 1<<32:
		inv := math.MaxUint64/uint64(d) + 1
		return step{op: codeDiv, k: d, inv: inv, x: x}
	}
	return step{op: codeDiv, k: d, x: x}
}

// quotient is ⌊x/k⌋ of a codeDiv.
func (s *step) quotient(x int64) int64 {
	if uint64(x) < 1<<32 && s.inv != 0 {
		q, _ := bits.Mul64(uint64(x), s.inv)
		return int64(q)
	}
	return FloorDiv(x, s.k)
}

// emit appends a step; its value goes to the next slot.
func (c *compiler) emit(s step) {
	c.code.steps = append(c.code.steps, s)
	c.code.slots++
}

// sum is x as a sum of slots.
func (c *compiler) sum(x lin) span {
	at := int32(len(c.code.terms))
	for _, t := range x.t {
		u := codeTerm{t.k, c.slot[t.a]}
		c.code.terms = append(c.code.terms, u)
	}
	return span{at, int32(len(c.code.terms)), x.c}
}

// Results is the number of results.
func (c *Evaluator) Results() int { return len(c.outs) }

// ScratchLen is the least length of Eval's scratch.
func (c *Evaluator) ScratchLen() int { return c.slots }

// Eval writes the results for the values vals of the variables to out. It does
// not allocate. scratch must have at least ScratchLen elements and may be reused.
// Arithmetic wraps where a value, or a sum on the way to it, is not an int64.
func (c *Evaluator) Eval(vals, out, scratch []int64) {
	scratch = scratch[:c.slots]
	n := copy(scratch, vals[:c.vars])
	for i := range c.steps {
		s := &c.steps[i]
		var v int64
		switch s.op {
		case codeDiv:
			v = s.quotient(c.value(&s.x, scratch))
		case codeShift:
			v = c.value(&s.x, scratch) >> uint(s.k&63)
		case codeQuot:
			x := c.value(&s.x, scratch)
			v = FloorDiv(x, c.value(&s.y, scratch))
		case codeMin:
			v = min(c.value(&s.x, scratch), 0)
		case codeSum:
			v = c.value(&s.x, scratch)
		case codeMul:
			v = scratch[s.x.at] * scratch[s.y.at]
		}
		scratch[n] = v
		n++
	}
	for i := range c.outs {
		out[i] = c.value(&c.outs[i], scratch)
	}
}

// value is the sum s of slots.
func (c *Evaluator) value(s *span, slots []int64) int64 {
	v := s.c
	for _, t := range c.terms[s.at:s.end] {
		v += t.k * slots[t.slot]
	}
	return v
}

// Eval evaluates e; env must hold every variable of e, or it panics. It compiles
// e every time: for many points there is Compile.
func (e Expr) Eval(env map[Expr]int64) int64 {
	vars := e.Vars()
	vals := make([]int64, len(vars))
	for i, v := range vars {
		x, ok := env[v]
		if !ok {
			u, _ := v.Variable()
			panic("index: no value for " + u.Name)
		}
		vals[i] = x
	}
	c, err := Compile(vars, []Expr{e})
	if err != nil {
		panic(err) // every variable of e is compiled for
	}
	var out [1]int64
	c.Eval(vals, out[:], make([]int64, c.slots))
	return out[0]
}

// checkBox refuses boxes of vars that are too large to walk.
func checkBox(vars []Expr, limit int64) error {
	n := int64(1)
	for _, v := range vars {
		n = SatMul(n, v.Range().Len())
	}
	if n > limit {
		return fmt.Errorf("domain has %d points, more than %d", n, limit)
	}
	return nil
}

// walkBox calls f for every point of the box of vars, the last variable fastest,
// as long as f returns true. f may not keep v.
func walkBox(vars []Expr, f func(v []int64) bool) {
	v := make([]int64, len(vars))
	in := make([]Interval, len(vars))
	for i, e := range vars {
		in[i] = e.Range()
		v[i] = in[i].Lo
	}
	for {
		if !f(v) {
			return
		}
		i := len(v) - 1
		for ; i >= 0 && v[i] == in[i].Hi; i-- {
			v[i] = in[i].Lo
		}
		if i < 0 {
			return
		}
		v[i]++
	}
}
