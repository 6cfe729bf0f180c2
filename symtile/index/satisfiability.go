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

// The exact engine decides whether a conjunction of bounds has an integer
// solution, where intervals cannot. It is the Omega test cut short: quotients
// become integer variables with two linear bounds, alternatives and mins are
// split into cases, variables are eliminated after Fourier and Motzkin with the
// constants tightened to integers. The real shadow decides "no", the dark
// shadow "yes"; between the two, and past the work limit, it is unknown.
// (W. Pugh, The Omega test, 1991.)

// An effort limits one decision.
type effort struct {
	points int64 // of a box that are simply tried
	cases  int   // leaves of the case split
}

var (
	fullEffort  = effort{1 << 14, 64} // when a caller asks
	smallEffort = effort{256, 4}      // on the way of a simplification
)

const (
	exactRows = 160 // inequalities at one time
	exactVars = 24  // variables, quotients included
)

// A row is Σ k·x + c ≥ 0 over numbered variables, k dense.
type row struct {
	k []int64
	c int64
}

// A system is rows over the atoms it has met. opaque tells that some atom is
// only bounded, so that a solution found proves nothing.
type system struct {
	r          *Ring
	atoms      []int32 // by variable
	rows       []row
	opaque     bool
	overflowed bool // past a limit, or int64 overflow
	mins       []int32
}

// Satisfiable decides whether some values of c's variables, in their ranges,
// satisfy c.
func (c Constraint) Satisfiable() Verdict {
	return c.Simplify().satisfiable(fullEffort)
}

func (c Constraint) satisfiable(e effort) Verdict {
	switch {
	case c.False():
		return No
	case c.True():
		return Yes
	}
	cases := e.cases
	if v := c.split(nil, &cases); v != Unknown {
		return v
	}
	return c.enumerate(e.points)
}

// enumerate walks the box of c's variables when it is small.
func (c Constraint) enumerate(limit int64) Verdict {
	vars := c.Vars()
	if checkBox(vars, limit) != nil {
		return Unknown
	}
	check, err := CompileConstraint(vars, c)
	if err != nil {
		return Unknown
	}
	scratch := make([]int64, check.ScratchLen())
	found := No
	walkBox(vars, func(v []int64) bool {
		if check.Holds(v, scratch) {
			found = Yes
		}
		return found == No
	})
	return found
}

// split picks one bound of every clause in turn and decides the conjunctions.
func (c Constraint) split(picked []Bound, cases *int) Verdict {
	if len(c) == 0 {
		return decide(picked, cases)
	}
	out := No
	for _, b := range c[0] {
		switch c[1:].split(append(slices.Clip(picked), b), cases) {
		case Yes:
			return Yes
		case Unknown:
			out = Unknown
		}
	}
	return out
}

func decide(bounds []Bound, cases *int) Verdict {
	if *cases--; *cases < 0 || len(bounds) == 0 {
		return Unknown
	}
	s := &system{r: bounds[0].Expr.r}
	for _, b := range bounds {
		s.bound(b.Expr.lin(), b.In)
	}
	return s.splitMins(0, cases)
}

// bound adds x in in.
func (s *system) bound(x lin, in Interval) {
	if in.Lo != minusInf {
		s.add(s.row(x), 1, satNeg(in.Lo))
	}
	if in.Hi != plusInf {
		s.add(s.row(x), -1, in.Hi)
	}
}

// row is x as a row; its atoms become variables.
func (s *system) row(x lin) row {
	w := row{c: x.c}
	for _, t := range x.t {
		i := s.variable(t.a)
		for len(w.k) <= i {
			w.k = append(w.k, 0)
		}
		w.k[i] += t.k
	}
	return w
}

// add adds sign·w + c ≥ 0.
func (s *system) add(w row, sign, c int64) {
	k := make([]int64, len(w.k))
	for i := range k {
		k[i] = sign * w.k[i]
	}
	sum, ok := addInt(sign*w.c, c)
	s.overflowed = s.overflowed || !ok ||
		len(s.rows) >= exactRows
	if !s.overflowed {
		s.rows = append(s.rows, row{k, sum})
	}
}

// variable numbers atom id and adds what defines it: for q = ⌊y/d⌋ that
// 0 ≤ y − d·q ≤ d−1, for m = min(y, 0) that m ≤ y, and its range.
func (s *system) variable(id int32) int {
	if i := slices.Index(s.atoms, id); i >= 0 {
		return i
	}
	s.atoms = append(s.atoms, id)
	if len(s.atoms) > exactVars {
		s.overflowed = true
		return 0
	}
	at := len(s.atoms) - 1
	a := s.r.atoms[id]
	self := s.r.atomForm(id)
	s.bound(self, a.in)
	switch a.kind {
	case atomVar:
	case atomDiv:
		s.bound(
			s.r.addmul(
				s.r.forms[a.y].lin, -a.d, self,
			),
			Interval{0, a.d - 1},
		)
	case atomMinZero:
		s.bound(
			s.r.addmul(s.r.forms[a.y].lin, -1, self),
			Interval{0, plusInf},
		)
		s.mins = append(s.mins, id)
	default:
		s.opaque = true
	}
	return at
}

// splitMins decides both cases of every min from number i on: it is y, or 0.
func (s *system) splitMins(i int, cases *int) Verdict {
	if i == len(s.mins) {
		if *cases--; *cases < 0 {
			return Unknown
		}
		return s.solve()
	}
	id := s.mins[i]
	y := s.r.forms[s.r.atoms[id].y].lin
	rows := len(s.rows)
	s.bound(
		s.r.addAtom(y, -1, id),
		Interval{0, 0},
	)
	first := s.splitMins(i+1, cases)
	s.rows = s.rows[:rows]
	if first == Yes {
		return Yes
	}
	s.bound(s.r.atomForm(id), Interval{0, 0})
	second := s.splitMins(i+1, cases)
	s.rows = s.rows[:rows]
	if second == No {
		return first
	}
	return second
}

// solve decides the rows as they stand.
func (s *system) solve() Verdict {
	if s.overflowed {
		return Unknown
	}
	n := len(s.atoms)
	rows := make([]row, len(s.rows))
	for i, w := range s.rows {
		rows[i] = row{
			append(
				slices.Clone(w.k),
				make([]int64, n-len(w.k))...,
			),
			w.c,
		}
	}
	e := elimination{vars: n}
	switch {
	case e.run(rows, false) == No:
		return No
	case !s.opaque && e.run(rows, true) == Yes:
		return Yes
	}
	return Unknown
}

// An elimination removes one variable after the other.
type elimination struct{ vars int }

// run decides the real shadow (no is certain) or the dark one (yes is).
func (e elimination) run(rows []row, dark bool) Verdict {
	rows = slices.Clone(rows)
	done := make([]bool, e.vars)
	for {
		rows = tighten(rows)
		if rows == nil {
			return No
		}
		x := e.next(rows, done)
		if x < 0 {
			return Yes
		}
		done[x] = true
		var ok bool
		if rows, ok = eliminate(rows, x, dark); !ok {
			return Unknown
		}
	}
}

// tighten divides rows by their content, rounding the constant down, and keeps
// the strongest of equal rows; nil when one cannot hold.
func tighten(rows []row) []row {
	out := rows[:0:0]
next:
	for _, w := range rows {
		var g int64
		for _, k := range w.k {
			g = GCD(g, k)
		}
		if g == 0 {
			if w.c < 0 {
				return nil
			}
			continue
		}
		k := make([]int64, len(w.k))
		for i := range k {
			k[i] = w.k[i] / g
		}
		w = row{k, FloorDiv(w.c, g)}
		for i := range out {
			if slices.Equal(out[i].k, w.k) {
				out[i].c = min(out[i].c, w.c)
				continue next
			}
		}
		out = append(out, w)
	}
	if out == nil {
		return []row{}
	}
	return out
}

// next is the variable whose elimination makes the fewest rows, exact ones
// first; −1 when none is left.
func (e elimination) next(rows []row, done []bool) int {
	best, bestCost := -1, 0
	for x := range e.vars {
		lower := 0
		upper := 0
		unitLower := true
		unitUpper := true
		for _, w := range rows {
			switch k := w.k[x]; {
			case k > 0:
				lower++
				unitLower = unitLower && k == 1
			case k < 0:
				upper++
				unitUpper = unitUpper && k == -1
			}
		}
		if done[x] || lower+upper == 0 {
			continue
		}
		cost := lower * upper
		if !unitLower && !unitUpper {
			cost += exactRows
		}
		if best < 0 || cost < bestCost {
			best, bestCost = x, cost
		}
	}
	return best
}

// eliminate combines every lower bound a·x + L ≥ 0 with every upper bound
// −b·x + U ≥ 0 to a·U + b·L ≥ 0; in the dark shadow to ≥ (a−1)(b−1), which
// leaves room for an integer x.
func eliminate(rows []row, x int, dark bool) ([]row, bool) {
	var out []row
	for _, w := range rows {
		if w.k[x] == 0 {
			out = append(out, w)
		}
	}
	for _, low := range rows {
		if low.k[x] <= 0 {
			continue
		}
		for _, up := range rows {
			if up.k[x] >= 0 {
				continue
			}
			w, ok := combine(low, up, x, dark)
			if !ok || len(out) >= exactRows {
				return nil, false
			}
			out = append(out, w)
		}
	}
	return out, true
}

func combine(low, up row, x int, dark bool) (row, bool) {
	a := low.k[x]
	b := -up.k[x]
	out := row{k: make([]int64, len(low.k))}
	fine := true
	mix := func(l, u int64) int64 {
		p, ok1 := mulInt(b, l)
		q, ok2 := mulInt(a, u)
		s, ok3 := addInt(p, q)
		fine = fine && ok1 && ok2 && ok3
		return s
	}
	for i := range out.k {
		out.k[i] = mix(low.k[i], up.k[i])
	}
	out.c = mix(low.c, up.c)
	if dark {
		gap, ok1 := mulInt(a-1, b-1)
		c, ok2 := addInt(out.c, -gap)
		out.c = c
		fine = fine && ok1 && ok2
	}
	return out, fine
}
