package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// written counts the operations of e as it stands. A sum of n summands takes n − 1,
// in whatever order, so that −x + y is one subtraction; a sign takes one more only
// where all summands have one and none is a multiple, which takes the sign.
func (e *expression) written() int { return e.count((*expression).written) }

// least counts the operations of e in the shortest of its ways to be written: as it
// stands, with like terms collected, and with remainders made of quotients.
func (e *expression) least() int {
	if e.op == opConst || e.op == opVar {
		return 0
	}
	return min(
		e.count((*expression).least),
		e.collected().cost(),
	)
}

// count counts the operations of e, those of what it is made of by inside.
func (e *expression) count(inside func(*expression) int) int {
	switch e.op {
	case opConst, opVar:
		return 0
	case opDiv, opCeil, opMod:
		return 1 + inside(e.x)
	}
	var s signedSum
	s.gather(e, false)
	if len(s.terms) == 0 {
		return 0
	}
	// A summand without a sign, a factor or a constant makes the other signs free.
	n, free := 0, s.c > 0
	for _, t := range s.terms {
		free = free ||
			!t.negative || t.x.op == opMul
		if t.x.op == opMul {
			n += 1 + inside(t.x.x) + inside(t.x.y)
		} else {
			n += inside(t.x)
		}
	}
	if s.c != 0 {
		n++
		free = true
	}
	if !free {
		n++
	}
	return n + len(s.terms) - 1
}

// A signedSum is a sum as it is written: summands with their signs, and the
// constants added up.
type signedSum struct {
	// Sum of the constants.
	c int64
	// The other summands, in the order of the text.
	terms []signedTerm
}

// A signedTerm is x or −x; x is no sum.
type signedTerm struct {
	// The summand is subtracted.
	negative bool
	// What is added or subtracted.
	x *expression
}

// gather adds e, or −e, to s.
func (s *signedSum) gather(e *expression, negative bool) {
	switch e.op {
	case opAdd, opSub:
		s.gather(e.x, negative)
		s.gather(
			e.y,
			negative != (e.op == opSub),
		)
		return
	case opNeg:
		s.gather(e.x, !negative)
		return
	case opConst:
		if negative {
			s.c -= e.c
		} else {
			s.c += e.c
		}
		return
	case opMul:
		// ±1·x has no operation of its own.
		for _, factors := range [...][2]*expression{{e.x, e.y}, {e.y, e.x}} {
			if f := factors[0]; f.op == opConst &&
				(f.c == 1 || f.c == -1) {
				s.gather(
					factors[1],
					negative != (f.c < 0),
				)
				return
			}
		}
	}
	s.terms = append(s.terms, signedTerm{negative, e})
}

// A sum is c + Σ k·atom, ascending by the keys of its atoms, each once.
type sum struct {
	// Sum of the constants.
	c int64
	// No two have the same atom, and none the coefficient 0.
	terms []summand
}

// A summand is k·atom.
type summand struct {
	k int64
	a *atom
}

// An atom is a variable, or a quotient or remainder of a sum.
type atom struct {
	// opVar, opDiv or opMod.
	op operator
	// Number of the variable, of opVar.
	v int64
	// Dividend of the others.
	x *sum
	// Divisor of the others.
	d int64
	// Equal for equal atoms, and for no others.
	key string
}

// newAtom is the quotient or remainder of x by d.
func newAtom(op operator, x *sum, d int64) *atom {
	return &atom{op: op, x: x, d: d, key: fmt.Sprint(op, "(", x.key(), ")", d)}
}

// key is equal for equal sums.
func (s *sum) key() string {
	var b strings.Builder
	fmt.Fprint(&b, s.c)
	for _, t := range s.terms {
		fmt.Fprint(&b, "+", t.k, "*", t.a.key)
	}
	return b.String()
}

// collected is e with like terms collected.
func (e *expression) collected() *sum {
	switch e.op {
	case opConst: // no terms
		return &sum{c: e.c}
	case opVar:
		a := &atom{op: opVar, v: e.c, key: fmt.Sprint("v", e.c)}
		return &sum{terms: []summand{{1, a}}}
	case opNeg:
		return (&sum{}).plus(-1, e.x.collected())
	}
	x, y := e.x.collected(), e.y.collected()
	switch e.op {
	case opAdd:
		return x.plus(1, y)
	case opSub:
		return x.plus(-1, y)
	case opMul:
		if len(x.terms) == 0 {
			x, y = y, x
		}
		if len(y.terms) > 0 {
			panic("a product of variables")
		}
		return (&sum{}).plus(y.c, x)
	case opCeil: // −⌊−x/y⌋
		minus := (&sum{}).plus(-1, x)
		return (&sum{}).plus(-1, single(newAtom(opDiv, minus, y.c)))
	}
	return single(newAtom(e.op, x, y.c))
}

// single is 1·a.
func single(a *atom) *sum { return &sum{terms: []summand{{1, a}}} }

// plus is s + k·y.
func (s *sum) plus(k int64, y *sum) *sum {
	out := &sum{c: s.c + k*y.c}
	ts := slices.Clone(s.terms)
	for _, t := range y.terms {
		ts = append(ts, summand{k * t.k, t.a})
	}
	slices.SortStableFunc(ts, func(a, b summand) int { return cmp.Compare(a.a.key, b.a.key) })
	for _, t := range ts {
		last := len(out.terms) - 1
		if last >= 0 &&
			out.terms[last].a.key == t.a.key {
			out.terms[last].k += t.k
		} else {
			out.terms = append(out.terms, t)
		}
	}
	out.terms = slices.DeleteFunc(out.terms, func(t summand) bool { return t.k == 0 })
	return out
}

// cost counts the operations of s, with or without remainders made of quotients.
func (s *sum) cost() int {
	n := s.plainCost()
	if folded, any := s.folded(); any {
		n = min(n, folded.plainCost())
	}
	return n
}

// plainCost counts the operations of s as it is, a common factor perhaps outside of
// a parenthesis. Signs cost nothing where a summand is positive or has a factor.
func (s *sum) plainCost() int {
	if len(s.terms) == 0 {
		return 0
	}
	inside, factors, summands := 0, 0, len(s.terms)
	// g divides everything; free says that a sign costs nothing.
	g, free := s.c, s.c != 0
	for _, t := range s.terms {
		inside += t.a.cost()
		if t.k != 1 && t.k != -1 {
			factors++
		}
		g = gcd(g, t.k)
		free = free || t.k != -1
	}
	if s.c != 0 {
		summands++
	}
	n := summands - 1 + factors
	if !free {
		n++
	}
	if g > 1 && summands > 1 {
		n = min(n, s.factoredCost(g, summands))
	}
	return inside + n
}

// factoredCost is plainCost of g·(s/g).
func (s *sum) factoredCost(g int64, summands int) int {
	n := summands
	for _, t := range s.terms {
		if t.k != g && t.k != -g {
			n++
		}
	}
	return n
}

// cost counts the operations of a and what it is made of.
func (a *atom) cost() int {
	if a.op == opVar {
		return 0
	}
	return 1 + a.x.cost()
}

// gcd is the greatest common divisor of |a| and |b|.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// folded is s with k·x − k·m·⌊x/m⌋ written as k·(x mod m), as often as there is one.
func (s *sum) folded() (out *sum, any bool) {
	out = s
	for again := true; again; {
		again = false
		for _, t := range out.terms {
			if y, ok := out.foldedAt(t); ok {
				out, again, any = y, true, true
				break
			}
		}
	}
	return out, any
}

// foldedAt is folded once, through the quotient t: x is its dividend, or, where
// that is y/(n·m), the quotient ⌊y/n⌋.
func (s *sum) foldedAt(t summand) (*sum, bool) {
	if t.a.op != opDiv {
		return nil, false
	}
	if k := -t.k / t.a.d; k*t.a.d == -t.k {
		if s.has(k, t.a.x) {
			return s.withMod(t, k, t.a.x, t.a.d), true
		}
	}
	// A quotient of the same dividend by a part of the divisor.
	for _, u := range s.terms {
		if u.a.op != opDiv ||
			u.a.d >= t.a.d || t.a.d%u.a.d != 0 {
			continue
		}
		m := t.a.d / u.a.d
		if u.k*m == -t.k &&
			u.a.x.key() == t.a.x.key() {
			return s.withMod(t, u.k, single(u.a), m), true
		}
	}
	return nil, false
}

// has reports whether the terms of k·x are terms of s.
func (s *sum) has(k int64, x *sum) bool {
	for _, t := range x.terms {
		same := func(u summand) bool {
			return u.k == k*t.k &&
				u.a.key == t.a.key
		}
		if !slices.ContainsFunc(s.terms, same) {
			return false
		}
	}
	return len(x.terms) > 0
}

// withMod is s with k·(x mod m) for k·x and the quotient t.
func (s *sum) withMod(t summand, k int64, x *sum, m int64) *sum {
	y := s.plus(-t.k, single(t.a)).plus(
		-k,
		x,
	)
	return y.plus(
		k,
		single(newAtom(opMod, x, m)),
	)
}
