// Package selection recognises reductions of pairs that keep one of two pairs by the order of
// their values, with the place of each value in the array beside it: argmax and argmin, in
// whatever operations a front end spells them.
//
// A computation of comparisons, logic and selections alone depends on its operands by their
// order only. With numbers other than NaN there are three cases: the left value is less, equal
// or greater. The left place is always the smaller one, since a reduction keeps the order of
// its elements and an iota rises along it. So three evaluations decide what any tree of the
// computation gives: the greatest value, say, and the first place that has it. Where the
// greatest value is 0 its sign may be that of another zero, and NaN is for the computation to
// decide; both are left to it.
package selection

import (
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Of is maximum where an op of a program keeps the greatest value along one dimension and the
// first place that has it, and minimum where it keeps the least.
func Of(p *symtile.Program, op symtile.Op) (hlo.Opcode, bool) {
	attrs := op.Instr.Attrs
	if op.Code != hlo.OpReduce ||
		len(op.Args) != 4 ||
		len(attrs.Dimensions) != 1 {
		return "", false
	}
	// The operands are values and places, then the initial ones of both.
	values := p.Ops[op.Args[0]].Instr.Shape
	places := p.Ops[op.Args[1]]
	dim := attrs.Dimensions[0]
	if !isOrdered(values.DType) ||
		places.Code != hlo.OpIota ||
		places.Instr.Attrs.IotaDim != dim ||
		!rises(places.Instr.Shape, dim) {
		return "", false
	}
	return keeps(attrs.ToApply)
}

// isOrdered reports whether scratch holds elements of a type as numbers that a search
// compares, f32, f64 or s32: those of fewer bytes are widened, which changes the order of none.
func isOrdered(d hlo.DType) bool {
	switch d {
	case hlo.F32, hlo.BF16, hlo.F16, hlo.F64,
		hlo.S32, hlo.S16, hlo.S8, hlo.U16, hlo.U8:
		return true
	}
	return false
}

// rises reports whether places along a dimension rise: a type of few bits begins again.
func rises(s hlo.Shape, dim int64) bool {
	d := s.DType
	if d.IsFloat() || d.IsComplex() {
		return false
	}
	_, most := d.IntRange()
	return s.Dims[dim]-1 <= most
}

// ReadBy is the selection that alone reads op n, as its places; −1 without.
func ReadBy(p *symtile.Program, n int) int {
	if p.Ops[n].Code != hlo.OpIota {
		return -1
	}
	for _, r := range p.Roots {
		if r.Op == n {
			return -1
		}
	}
	// The only reader is a reduction that has it as its second operand.
	reader := -1
	for k, op := range p.Ops {
		for place, arg := range op.Args {
			if arg != n {
				continue
			}
			if reader >= 0 || place != 1 {
				return -1
			}
			reader = k
		}
	}
	if reader < 0 {
		return -1
	}
	if _, ok := Of(p, p.Ops[reader]); !ok {
		return -1
	}
	return reader
}

// An element is what a computation has in hand: one of its operands, or a truth.
type element struct {
	operand int // 0 and 1 are the left value and place, 2 and 3 the right ones; −1: a truth
	truth   bool
}

// keeps evaluates a computation for a left value that is less, equal and greater.
func keeps(c *hlo.Computation) (hlo.Opcode, bool) {
	if len(c.Params) != 4 ||
		c.Root.Op != hlo.OpTuple ||
		len(c.Root.Operands) != 2 {
		return "", false
	}
	var kept [3][2]int
	// Each evaluation says for the value and for the place which operand it is.
	for k := range kept {
		e := evaluation{
			order: k - 1,
			made:  map[*hlo.Instr]element{},
		}
		if !e.run(c) {
			return "", false
		}
		for m, i := range c.Root.Operands {
			x := e.made[i]
			if x.operand < 0 || x.operand%2 != m {
				return "", false // a truth, or a place among the values
			}
			kept[k][m] = x.operand
		}
	}
	// Either pair may be kept whole. Of equal values either is the value.
	left := [2]int{0, 1}
	right := [2]int{2, 3}
	less, equal, greater := kept[0], kept[1], kept[2]
	switch {
	case equal[1] != left[1]: // of equal values the first place is kept
	case less == right && greater == left:
		return hlo.OpMaximum, true
	case less == left && greater == right:
		return hlo.OpMinimum, true
	}
	return "", false
}

// An evaluation is one of a computation, for one order of the values.
type evaluation struct {
	order int // of the left value and the right one: −1, 0 or 1
	made  map[*hlo.Instr]element
}

// run evaluates all instructions, and reports false where one of them depends on more than
// the order.
func (e *evaluation) run(c *hlo.Computation) bool {
	for k, p := range c.Params {
		e.made[p] = element{operand: k}
	}
	// Operands come before what they are operands of. What is not made is of an operation
	// that is none of those below.
	for _, i := range c.Instrs {
		if i.Op == hlo.OpParameter || i == c.Root {
			continue
		}
		x := make([]element, len(i.Operands))
		for k, o := range i.Operands {
			made, ok := e.made[o]
			if !ok {
				return false
			}
			x[k] = made
		}
		made, ok := e.apply(i, x)
		if !ok {
			return false
		}
		e.made[i] = made
	}
	return true
}

// apply is an operation on elements, if it is one of those that depend on their order only.
func (e *evaluation) apply(i *hlo.Instr, x []element) (element, bool) {
	switch i.Op {
	case hlo.OpCompare:
		order, ok := e.compare(x[0], x[1])
		holds := holdsOf[i.Attrs.Direction]
		return truth(holds(order)), ok
	case hlo.OpMaximum, hlo.OpMinimum:
		order, ok := e.compare(x[0], x[1])
		// Of equal ones either does, to the bit.
		less := order < 0
		if less == (i.Op == hlo.OpMaximum) {
			return x[1], ok
		}
		return x[0], ok
	case hlo.OpSelect:
		known := x[0].operand < 0
		if x[0].truth {
			return x[1], known
		}
		return x[2], known
	}
	return logic(i.Op, x)
}

// logic is an operation on truths; integers, which have these operations, too, are none that
// a selection would combine.
func logic(op hlo.Opcode, x []element) (element, bool) {
	for _, y := range x {
		if y.operand >= 0 {
			return element{}, false
		}
	}
	switch op {
	case hlo.OpNot:
		return truth(!x[0].truth), true
	case hlo.OpAnd, hlo.OpOr, hlo.OpXor:
	default:
		return element{}, false
	}
	a, b := x[0].truth, x[1].truth
	switch op {
	case hlo.OpAnd:
		return truth(a && b), true
	case hlo.OpOr:
		return truth(a || b), true
	}
	return truth(a != b), true
}

// truth is an element of pred.
func truth(x bool) element {
	return element{operand: -1, truth: x}
}

// compare is the order of two values, or of two places, of which the left one is smaller.
func (e *evaluation) compare(x, y element) (int, bool) {
	a, b := x.operand, y.operand
	// Values have even numbers; of them the evaluation says the order.
	order := -1
	if a%2 == 0 {
		order = e.order
	}
	switch {
	case a < 0 || b < 0:
		return 0, false // truths
	case a%2 != b%2:
		return 0, false // a value and a place
	case a == b:
		return 0, true
	case a > b:
		return -order, true
	}
	return order, true
}

// holdsOf says of the directions of comparisons in which orders they hold. NaN, of which none
// holds but NE, is no operand here.
var holdsOf = map[string]func(order int) bool{
	"EQ": func(x int) bool { return x == 0 },
	"NE": func(x int) bool { return x != 0 },
	"LT": func(x int) bool { return x < 0 },
	"LE": func(x int) bool { return x <= 0 },
	"GT": func(x int) bool { return x > 0 },
	"GE": func(x int) bool { return x >= 0 },
}
