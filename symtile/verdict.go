package symtile

// A Verdict is an answer that may be missing.
type Verdict uint8

const (
	Unknown Verdict = iota // not decided within the work limit
	Yes
	No
)

// String names v.
func (v Verdict) String() string { return [...]string{"unknown", "yes", "no"}[v] }

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

// negation is ¬(b₁ ∨ b₂ …): each bound is missed, below or above.
func (x Clause) negation() (c Constraint) {
	for _, b := range x {
		out := Clause{}
		if b.In.Lo != minusInf {
			out = append(out, Bound{b.Expr, Interval{minusInf, b.In.Lo - 1}})
		}
		if b.In.Hi != plusInf {
			out = append(out, Bound{b.Expr, Interval{b.In.Hi + 1, plusInf}})
		}
		if b.In.Empty() {
			continue
		}
		c = append(c, out)
	}
	return c
}
