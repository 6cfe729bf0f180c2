package index

import "slices"

// A Verdict is an answer that may be missing.
type Verdict uint8

const (
	Unknown Verdict = iota // not decided within the work limit
	Yes
	No
)

// String names v.
func (v Verdict) String() string {
	return [...]string{"unknown", "yes", "no"}[v]
}

// Implies decides whether every point that satisfies c satisfies d: for each
// clause of d, c and its negation have no common point.
func (c Constraint) Implies(d Constraint) Verdict {
	out := Yes
	for _, x := range d {
		switch And(c, x.negation()).Satisfiable() {
		case Yes:
			return No
		case Unknown:
			out = Unknown
		}
	}
	return out
}

// contradicts and implies are the answers of a small effort.
func (c Constraint) contradicts() bool {
	return c.satisfiable(smallEffort) == No
}

func (c Constraint) implies(x Clause) bool {
	return And(c, x.negation()).Simplify().satisfiable(smallEffort) == No
}

// withoutImplied drops clauses that the others imply, the last first.
func (c Constraint) withoutImplied() Constraint {
	for i := len(c) - 1; i >= 0 &&
		len(c) > 1 && len(c) <= maxImplied; i-- {
		others := slices.Delete(slices.Clone(c), i, i+1)
		if others.implies(c[i]) {
			c = others
		}
	}
	return c
}

// maxImplied is how many clauses are compared with each other.
const maxImplied = 6

// negation is ¬(b₁ ∨ b₂ …): each bound is missed, below or above.
func (x Clause) negation() (c Constraint) {
	for _, b := range x {
		out := Clause{}
		if b.In.Lo != minusInf {
			out = append(out, Bound{
				b.Expr, Interval{minusInf, b.In.Lo - 1},
			})
		}
		if b.In.Hi != plusInf {
			out = append(out, Bound{
				b.Expr, Interval{b.In.Hi + 1, plusInf},
			})
		}
		if b.In.Empty() {
			continue
		}
		c = append(c, out)
	}
	return c
}
