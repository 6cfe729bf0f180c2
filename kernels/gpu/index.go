package gpu

import (
	"math"
	"math/bits"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/index"
)

// Index arithmetic: expressions of the tile program, with a variable for the
// thread and one for every loop of the kernel, become 32-bit instructions.
// Expressions are in normal form, so what two elements of a thread share is
// found by comparing, and what they differ by is a constant that goes into the
// offset of an address.

const (
	// The range of 32-bit index arithmetic.
	lowest  = math.MinInt32
	highest = math.MaxInt32
)

// narrow reports whether a range fits in 32 bits.
func narrow(in index.Interval) bool {
	return in.Lo >= lowest && in.Hi <= highest
}

// bind records the register that holds the value of a variable.
func (e *emitter) bind(v index.Expr, r operand) {
	e.asm.scope.sums[sumKey{v, false}] = r
}

// num is the value of an expression in 32 bits; expressions whose range needs more are
// rejected.
func (e *emitter) num(x index.Expr) operand {
	if v, ok := x.Value(); ok {
		return integer(v)
	}
	key := sumKey{x, false}
	if r, ok := e.asm.sumOf(key); ok {
		return r
	}
	if !narrow(x.Range()) {
		e.reject("an index needs more than 32 bits: %s", x)
	}
	r := e.sum(x)
	e.asm.scope.sums[key] = r
	return r
}

// sum adds the terms of x modulo 2³².
func (e *emitter) sum(x index.Expr) operand {
	terms, c := x.Terms()
	// Remainders modulo a power of two are one instruction, and so are found first.
	if r, ok := e.remainder(x, terms); ok {
		return r
	}
	if len(terms) == 1 && c == 0 &&
		terms[0].Factor == 1 {
		return e.atom(x)
	}
	var total operand
	for _, t := range terms {
		total = e.addTerm(
			total, e.num(t.Of), t.Factor,
		)
	}
	if c != 0 {
		total = e.asm.get(kindB32, "add.s32", total, c)
	}
	return total
}

// addTerm adds k·atom to total, by a shift or a multiply-add; "" is the empty sum.
func (e *emitter) addTerm(total, atom operand, k int64) operand {
	// Multiplications by powers of two are shifts, and further terms are fused
	// multiply-adds.
	power := k > 0 && k&(k-1) == 0
	switch {
	case total == "" && k == 1:
		return atom
	case total == "" && power:
		return e.asm.get(
			kindB32, "shl.b32", atom, bits.TrailingZeros64(uint64(k)),
		)
	case total == "":
		return e.asm.get(
			kindB32, "mul.lo.s32", atom, int32(k),
		)
	case k == 1:
		return e.asm.get(kindB32, "add.s32", total, atom)
	case k == -1:
		return e.asm.get(kindB32, "sub.s32", total, atom)
	}
	return e.asm.get(
		kindB32, "mad.lo.s32", atom, int32(k), total,
	)
}

// remainder rewrites a part k·y − k·d·⌊y/d⌋ of a sum, for d a power of two, to k·(y
// and d−1).
func (e *emitter) remainder(
	x index.Expr, terms []index.Term,
) (operand, bool) {
	for _, t := range terms {
		kind, args := t.Of.Atom()
		if kind != index.QuotientAtom {
			continue
		}
		d, ok := args[1].Value()
		if !ok || d&(d-1) != 0 || t.Factor%d != 0 {
			continue
		}
		k := -t.Factor / d
		y := args[0]
		rest := x.Sub(t.Of.Scale(t.Factor)).Sub(y.Scale(k))
		others, _ := rest.Terms()
		quotientTerms, _ := y.Terms()
		// All terms of k·y have to cancel, or the rewriting would add terms.
		if len(others) != len(terms)-1-len(quotientTerms) ||
			!narrow(y.Range()) ||
			!narrow(rest.Range()) {
			continue
		}
		mod := e.asm.get(
			kindB32, "and.b32", e.num(y), d-1,
		)
		if len(others) == 0 {
			if c, _ := rest.Value(); c != 0 {
				return e.asm.get(
					kindB32, "add.s32", e.addTerm("", mod, k), c,
				), true
			}
			return e.addTerm("", mod, k), true
		}
		return e.addTerm(e.num(rest), mod, k), true
	}
	return "", false
}

// atom computes an expression that is not linear.
func (e *emitter) atom(x index.Expr) operand {
	kind, args := x.Atom()
	switch kind {
	case index.QuotientAtom:
		return e.quotient(args[0], args[1])
	case index.MinAtom:
		return e.asm.get(
			kindB32, "min.s32", e.num(args[0]), 0,
		)
	case index.ProductAtom:
		product := e.num(args[0])
		for _, f := range args[1:] {
			product = e.asm.get(
				kindB32, "mul.lo.s32", product, e.num(f),
			)
		}
		return product
	}
	if p, ok := e.xors[x]; ok {
		return e.asm.get(
			kindB32, "xor.b32", e.num(p.x),
			e.num(p.y),
		)
	}
	if e.loopsOverTiles() && e.tileLoop == nil {
		e.reject("persistent=1 is for products by warpgroups, which are the first thing that a block does")
	}
	e.reject("variable %s has no value here", x)
	return "0"
}

// quotient is ⌊x/y⌋. A constant divisor d of x < 2³¹ becomes a multiplication:
// with l = ⌈log₂ d⌉ and M = ⌊2^(31+l)/d⌋ + 1, x·M >> (31+l) is exact
// (Granlund and Montgomery, Division by Invariant Integers, theorem 4.2).
func (e *emitter) quotient(x, y index.Expr) operand {
	in := x.Range()
	d, ok := y.Value()
	switch {
	case !ok && in.Lo >= 0:
		return e.asm.get(
			kindB32, "div.u32", e.num(x), e.num(y),
		)
	case !ok:
		e.reject("a negative index is divided by what is known at run time: %s", x)
		return "0"
	case d&(d-1) == 0:
		return e.asm.get(
			kindB32, "shr.s32", e.num(x),
			bits.TrailingZeros64(uint64(d)),
		)
	case in.Lo < 0:
		whole := (-in.Lo + d - 1) / d
		q := e.quotient(x.AddConst(whole*d), y)
		return e.asm.get(kindB32, "sub.s32", q, whole)
	}
	// The magic number M has 32 bits, because d is no power of two and x is below 2³¹.
	l := bits.Len64(uint64(d - 1))
	m := uint64(1)<<(31+l)/uint64(d) + 1
	high := e.asm.get(
		kindB32, "mul.hi.u32", e.num(x), int64(m),
	)
	if l == 1 {
		return high
	}
	return e.asm.get(kindB32, "shr.u32", high, l-1)
}

// wide is an expression's value in 64 bits.
func (e *emitter) wide(x index.Expr) operand {
	key := sumKey{x, true}
	if r, ok := e.asm.sumOf(key); ok {
		return r
	}
	terms, c := x.Terms()
	total := e.asm.in(kindB64, integer(c))
	for _, t := range terms {
		// A factor of 64 bits needs a 64-bit multiplication.
		if !narrow(index.Interval{Lo: t.Factor, Hi: t.Factor}) {
			k := e.asm.in(kindB64, integer(t.Factor))
			total = e.asm.get(
				kindB64, "mad.lo.s64",
				e.asm.get(kindB64, "cvt.s64.s32", e.num(t.Of)),
				k, total,
			)
			continue
		}
		total = e.asm.get(
			kindB64, "mad.wide.s32",
			e.num(t.Of), t.Factor, total,
		)
	}
	e.asm.scope.sums[key] = total
	return total
}

// at is the address of element x of an array; the constant part of x goes to the
// offset of the instruction. Addresses of shared memory have 32 bits, and their
// register must not be negative.
func (e *emitter) at(m memory, x index.Expr, size int64) address {
	terms, c := x.Terms()
	rest := x.AddConst(-c)
	offset := m.first + c*size
	switch {
	case len(terms) == 0:
		return address{m.base, offset}
	case m.space == shared:
		// The smallest value of rest moves to the offset, so that the register is not
		// negative.
		below := min(0, rest.Range().Lo)
		return address{
			e.asm.get(
				kindB32, "mad.lo.s32",
				e.num(rest.AddConst(-below)),
				size, m.base,
			),
			offset + below*size,
		}
	case narrow(rest.Range()):
		return address{
			e.asm.get(kindB64, "mad.wide.s32", e.num(rest), size, m.base),
			offset,
		}
	}
	return address{
		e.asm.get(
			kindB64, "add.s64", m.base,
			e.wide(rest.Scale(size)),
		),
		offset,
	}
}

// guard is the predicate of a conjunction.
func (e *emitter) guard(c conditions) operand {
	p := yes
	for _, x := range c {
		if x.Range().Hi < 0 {
			return no
		}
		terms, k := x.Terms()
		// k − x ≥ 0 is compared directly as x ≤ k.
		if len(terms) == 1 && terms[0].Factor == -1 {
			p = e.asm.and(
				p,
				e.asm.get(kindPred, "setp.le.s32", e.num(terms[0].Of), k),
			)
			continue
		}
		p = e.asm.and(
			p,
			e.asm.get(
				kindPred, "setp.ge.s32",
				e.num(x.AddConst(-k)), -k,
			),
		)
	}
	return p
}

// constantOf is the value of a constant expression.
func constantOf(x index.Expr) int64 { v, _ := x.Value(); return v }

// digitsOf splits a row-major index of an array of the given sizes into its
// coordinates.
func digitsOf(i index.Expr, sizes []int64) []index.Expr {
	parts := make([]index.Expr, len(sizes))
	for k := len(sizes) - 1; k >= 0; k-- {
		if k == 0 {
			parts[k] = i
			break
		}
		parts[k], i = i.Mod(sizes[k]),
			i.Div(sizes[k])
	}
	return parts
}

// number identifies a list of expressions by a small integer: equal lists have equal
// numbers. Lists are stored as a trie, whose edges are links.
func (e *emitter) number(list []index.Expr) int {
	n := 0
	for _, x := range list {
		k := link{n, x}
		next, ok := e.links[k]
		if !ok {
			next = len(e.links) + 1
			e.links[k] = next
		}
		n = next
	}
	return n
}

// keyOf is the key of a result of an op at a point.
func (e *emitter) keyOf(op, part int, p point) valueKey {
	return valueKey{
		op:   op,
		part: part,
		at:   e.number(p.at),
		when: e.number(p.when),
	}
}

// dotted is the inner product of an index with strides.
func (e *emitter) dotted(index []index.Expr, strides []int64) index.Expr {
	sum := e.ring.Const(0)
	for k, x := range index {
		sum = sum.Add(x.Scale(strides[k]))
	}
	return sum
}

// identity is the permutation 0 … n−1.
func identity(n int) []int {
	all := make([]int, n)
	for k := range all {
		all[k] = k
	}
	return all
}

// majorToMinor lists the dimensions of an array, slowest in memory first. It is a
// property of the array; the order in which threads go over a tile is chosen (see
// chosenFor).
func majorToMinor(s hlo.Shape) []int {
	order := identity(s.Rank())
	strides := s.Strides()
	slices.SortStableFunc(order, func(x, y int) int {
		return int(min(1, max(-1, strides[y]-strides[x])))
	})
	return order
}

// rowMajor is the row-major index of an element.
func (e *emitter) rowMajor(at []index.Expr, sizes []int64) index.Expr {
	n := e.ring.Const(0)
	for k, x := range at {
		n = n.Scale(sizes[k]).Add(x)
	}
	return n
}

// powerIn is the largest power of two that divides n.
func powerIn(n int64) int64 { return n & -n }

// powerOver is the smallest power of two ≥ n.
func powerOver(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}
