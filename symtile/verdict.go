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

// Satisfiable decides whether some values of c's variables satisfy c.
func (c Constraint) Satisfiable() Verdict {
	c = c.Simplify()
	switch {
	case c.False():
		return No
	case c.True():
		return Yes
	}
	return c.search(exactWork)
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

// exactWork bounds how many points and combinations a decision may look at.
const exactWork = 1 << 16

// search walks the box of c's variables when it is small.
func (c Constraint) search(work int64) Verdict {
	m := Map{Dims: c.Vars(), Where: c}
	if m.checkBox(work) != nil {
		return Unknown
	}
	check, err := CompileConstraint(m.Dims, c)
	if err != nil {
		return Unknown
	}
	scratch, found := make([]int64, check.ScratchLen()), No
	m.walk(func(v []int64) {
		if found == No && check.Holds(v, scratch) {
			found = Yes
		}
	})
	return found
}
