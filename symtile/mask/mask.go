// Package mask derives which elements of a tensor have one value whatever the operands
// are: the masks of attention, select(compare(row, column), scores, −∞), also with offsets,
// windows, transposes, and as a bias that is added.
//
//	m, err := mask.Of(program, op)  // err says why nothing is known
//	hidden := m.Bounds[0].At(index) < 0
//
// It decides from operations alone, not from tiles, so that it holds for all tilings. Its
// users skip tiles that are hidden.
//
// What is followed from the result to its operands:
//
//	select, and, or, not    conditions, and the side that has one value
//	compare                 linear forms of the index (form.go), of integers and floats
//	add, multiply, divide   −∞ stays, finite values are lost
//	convert                 values that the other type has
//	broadcast, transpose,   forms in other coordinates
//	reshape, slice
//
// Anything else ends the search: fewer elements are then known to be hidden, or none.
package mask

import (
	"errors"
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Mask says that elements of the result of an op have one value where any of its bounds
// is negative.
type Mask struct {
	Bounds []Bound
	// Value is −∞, or a finite number. −∞ that was added to others is the sum where these
	// are finite or −∞.
	Value float64
}

// A Bound is Σ Factors[d]·x[d] + Const for an index x of the result.
type Bound struct {
	Factors []int64
	Const   int64
	// Compare is the op of the comparison that has the result Holds exactly where the
	// bound is at least 0.
	Compare int
	Holds   bool
}

// At is the bound at an index.
func (b Bound) At(x []int64) int64 {
	sum := b.Const
	for d, f := range b.Factors {
		sum += f * x[d]
	}
	return sum
}

// ErrNone is returned where no element is known to be hidden.
var ErrNone = errors.New("no elements have one value by their index alone")

// Of is the mask of the floats that op n computes.
func Of(p *symtile.Program, n int) (Mask, error) {
	f := finder{p, map[int]int{}}
	m, ok := f.masked(n)
	if !ok || len(m.Bounds) == 0 {
		return Mask{}, ErrNone
	}
	return m, nil
}

// A finder follows the ops of a program; visits bounds how often it meets each of them.
type finder struct {
	p      *symtile.Program
	visits map[int]int
}

// maxVisits bounds the visits of an op, which several may depend on.
const maxVisits = 16

// met reports whether op n was met too often.
func (f finder) met(n int) bool {
	f.visits[n]++
	return f.visits[n] > maxVisits
}

// masked is the mask of an op's floats.
func (f finder) masked(n int) (Mask, bool) {
	op := &f.p.Ops[n]
	// Only floats have −∞.
	if f.met(n) || !op.Instr.Shape.DType.IsFloat() {
		return Mask{}, false
	}
	switch op.Code {
	case hlo.OpSelect:
		return f.selected(op)
	case hlo.OpConvert:
		return f.converted(op)
	case hlo.OpAdd:
		return f.added(op)
	case hlo.OpMultiply, hlo.OpDivide:
		return f.scaled(op)
	case hlo.OpSubtract:
		// −∞ less a number.
		m, ok := f.masked(op.Args[0])
		return m, ok && math.IsInf(m.Value, -1)
	}
	if len(op.Args) == 0 {
		return Mask{}, false
	}
	// What only moves elements moves the bounds.
	move, ok := movement(f.p, op)
	if !ok {
		return Mask{}, false
	}
	m, ok := f.masked(op.Args[0])
	for k, b := range m.Bounds {
		moved, fits := move(form{b.Factors, b.Const})
		m.Bounds[k].Factors = moved.factors
		m.Bounds[k].Const = moved.constant
		ok = ok && fits
	}
	return m, ok
}

// selected is the mask of a select. Where a bound of the predicate is negative, it is the
// constant on the other side; where the side that is taken is hidden with the same value,
// it is that, too.
func (f finder) selected(op *symtile.Op) (Mask, bool) {
	for _, side := range []int{2, 1} {
		v, ok := f.constant(op.Args[side])
		if !ok || !(v < 0) {
			continue
		}
		// The predicate decides on one side, and what the other side is on the rest:
		// where both have the value, their bounds are together those of the result.
		m := Mask{Value: v}
		m.Bounds = f.bounds(
			op.Args[0], side == 2,
		)
		other, ok := f.masked(op.Args[3-side])
		if ok && other.Value == v {
			m.Bounds = append(
				m.Bounds, other.Bounds...,
			)
		}
		return m, true
	}
	return Mask{}, false
}

// converted is the mask of a conversion of floats: −∞ stays, and finite values where the
// type holds them.
func (f finder) converted(op *symtile.Op) (Mask, bool) {
	m, ok := f.masked(op.Args[0])
	// A value that is rounded is another one, which could be another mask's.
	d := op.Instr.Shape.DType
	ok = ok && d.RoundFloat(m.Value) == m.Value
	return m, ok
}

// added is the mask of a sum, which is −∞ where one of both is.
func (f finder) added(op *symtile.Op) (Mask, bool) {
	all := Mask{Value: math.Inf(-1)}
	for _, a := range op.Args {
		m, ok := f.masked(a)
		if ok && math.IsInf(m.Value, -1) {
			all.Bounds = append(
				all.Bounds, m.Bounds...,
			)
		}
	}
	return all, len(all.Bounds) > 0
}

// scaled is the mask of a product with a positive constant, or of a quotient by one.
func (f finder) scaled(op *symtile.Op) (Mask, bool) {
	for k := range op.Args {
		// A factor of 0 makes NaN of −∞, a negative one ∞.
		c, ok := f.constant(op.Args[1-k])
		divisor := k == 1 &&
			op.Code == hlo.OpDivide
		if !ok || !(c > 0) ||
			math.IsInf(c, 1) || divisor {
			continue
		}
		m, ok := f.masked(op.Args[k])
		ok = ok && math.IsInf(m.Value, -1)
		return m, ok
	}
	return Mask{}, false
}

// constant is the value of all elements of an op, of any type.
func (f finder) constant(n int) (float64, bool) {
	op := &f.p.Ops[n]
	switch op.Code {
	case hlo.OpConstant:
		return uniform(op.Instr.Literal)
	case hlo.OpBroadcast, hlo.OpReshape, hlo.OpTranspose:
		return f.constant(op.Args[0])
	case hlo.OpConvert:
		v, ok := f.constant(op.Args[0])
		d := op.Instr.Shape.DType
		ok = ok && d.IsFloat()
		return d.RoundFloat(v), ok
	}
	return 0, false
}

// uniform is the value of all elements of a literal.
func uniform(l *hlo.Literal) (float64, bool) {
	if l == nil || l.Elided {
		return 0, false
	}
	all := slices.Clone(l.Floats)
	for _, v := range l.Ints {
		all = append(all, float64(v))
	}
	for _, v := range all {
		if v != all[0] {
			return 0, false
		}
	}
	return append(all, 0)[0], len(all) > 0
}

// bounds are linear forms of which any is negative only where the elements of predicate n
// are not holds.
func (f finder) bounds(n int, holds bool) []Bound {
	op := &f.p.Ops[n]
	if f.met(n) {
		return nil
	}
	switch op.Code {
	case hlo.OpCompare:
		return f.compared(n, holds)
	case hlo.OpNot:
		return f.bounds(op.Args[0], !holds)
	case hlo.OpAnd, hlo.OpOr:
		// Both have to hold, or none: that a or b holds excludes nothing by a bound of
		// one of them alone.
		if holds != (op.Code == hlo.OpAnd) {
			return nil
		}
		return append(
			f.bounds(op.Args[0], holds),
			f.bounds(op.Args[1], holds)...,
		)
	case hlo.OpSelect:
		return f.chosen(op, holds)
	}
	if len(op.Args) == 0 {
		return nil
	}
	move, ok := movement(f.p, op)
	if !ok {
		return nil
	}
	var all []Bound
	for _, b := range f.bounds(op.Args[0], holds) {
		to, ok := move(form{b.Factors, b.Const})
		if ok {
			all = append(all, Bound{
				to.factors, to.constant,
				b.Compare, b.Holds,
			})
		}
	}
	return all
}

// chosen are the bounds of a select of predicates, one side of which is the constant that
// is not wanted: the triangles that jnp.tril and torch.tril make.
func (f finder) chosen(op *symtile.Op, holds bool) []Bound {
	for _, side := range []int{2, 1} {
		// Where this side is taken the result is not what is wanted, so it is wanted of
		// the predicate to take the other one, and of that one to be so.
		v, ok := f.constant(op.Args[side])
		if !ok || (v != 0) == holds {
			continue
		}
		return append(
			f.bounds(op.Args[0], side == 2),
			f.bounds(
				op.Args[3-side], holds,
			)...,
		)
	}
	return nil
}

// opposite is the comparison that holds where another does not.
var opposite = map[string]string{
	"LE": "GT", "GT": "LE", "LT": "GE", "GE": "LT",
}

// compared is the bound of a comparison of two linear forms.
func (f finder) compared(n int, holds bool) []Bound {
	op := &f.p.Ops[n]
	x, okX := f.linear(op.Args[0])
	y, okY := f.linear(op.Args[1])
	if !okX || !okY {
		return nil
	}
	direction := op.Instr.Attrs.Direction
	if !holds {
		direction = opposite[direction]
	}
	// Numbers are whole, so x < y is y − x − 1 ≥ 0.
	var d form
	switch direction {
	case "LE":
		d = y.plus(x, -1)
	case "LT":
		d = y.plus(x, -1)
		d.constant--
	case "GE":
		d = x.plus(y, -1)
	case "GT":
		d = x.plus(y, -1)
		d.constant--
	default:
		return nil
	}
	return []Bound{{d.factors, d.constant, n, holds}}
}
