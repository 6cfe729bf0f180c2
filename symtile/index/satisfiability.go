package index

import "slices"

// The satisfiability of a conjunction of bounds over integers, where intervals do
// not decide it. It is the Omega test (W. Pugh, The Omega test, 1991) cut short:
// quotients become integer variables with two linear bounds, alternatives and
// minima are split into cases, and variables are eliminated after Fourier and
// Motzkin with the constants tightened to integers. The real shadow decides "no",
// the dark shadow "yes"; between the two, and past a limit, the answer is
// unknown.
//
// Elimination is exponential in the number of variables, so that every decision
// has an effort: small ones are part of simplification, the full one is what a
// caller of Satisfiable and Implies pays.

// A Verdict is an answer that may be missing. Yes and No are proved; Unknown is no
// hint at either.
type Verdict uint8

// The verdicts.
const (
	Unknown Verdict = iota // not decided within the limit of work
	Yes                    // it is so
	No                     // it is not so
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

// contradicts reports whether a small effort shows that no point satisfies c.
func (c Constraint) contradicts() bool {
	return c.satisfiable(smallEffort) == No
}

// implies reports whether a small effort shows that all points of c satisfy x.
func (c Constraint) implies(x Clause) bool {
	counterexample := And(c, x.negation()).Simplify()
	return counterexample.satisfiable(smallEffort) == No
}

// withoutImplied drops clauses that the others imply, the last first.
func (c Constraint) withoutImplied() Constraint {
	for i := len(c) - 1; i >= 0; i-- {
		if len(c) < 2 || len(c) > maxImplied {
			break
		}
		others := slices.Delete(
			slices.Clone(c), i, i+1,
		)
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
			below := Interval{minusInf, b.In.Lo - 1}
			out = append(out, Bound{b.Expr, below})
		}
		if b.In.Hi != plusInf {
			above := Interval{b.In.Hi + 1, plusInf}
			out = append(out, Bound{b.Expr, above})
		}
		if b.In.Empty() {
			continue
		}
		c = append(c, out)
	}
	return c
}

// An effort limits one decision.
type effort struct {
	points int64 // of a box that are simply tried
	cases  int   // leaves of the case split
}

// The efforts of decisions.
var (
	fullEffort  = effort{1 << 14, 64} // when a caller asks
	smallEffort = effort{256, 4}      // as part of a simplification
)

// Limits of one elimination.
const (
	exactRows = 160 // inequalities at one time
	exactVars = 24  // variables, quotients included
)

// A row is the inequality Σ k·x + c ≥ 0 over numbered variables. k has an element
// for every variable known when the row was made; those that it lacks are 0.
type row struct {
	k []int64
	c int64
}

// A system is rows over the atoms it has met, which are its variables.
type system struct {
	r          *Ring
	atoms      []int32 // by variable
	rows       []row
	opaque     bool    // some atom is only bounded: a solution found proves nothing
	overflowed bool    // past a limit, or int64 overflow
	mins       []int32 // atoms that are minima
}

// Satisfiable decides whether some values of c's variables, in their ranges,
// satisfy c.
func (c Constraint) Satisfiable() Verdict {
	return c.Simplify().satisfiable(fullEffort)
}

// satisfiable decides c by elimination or, failing that, by trying all points.
func (c Constraint) satisfiable(e effort) Verdict {
	switch {
	case c.False():
		return No
	case c.True():
		return Yes
	}
	cases := e.cases
	v := c.split(nil, &cases)
	if v != Unknown {
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
		with := append(slices.Clip(picked), b)
		switch c[1:].split(with, cases) {
		case Yes:
			return Yes
		case Unknown:
			out = Unknown
		}
	}
	return out
}

// decide decides a conjunction of bounds.
func decide(bounds []Bound, cases *int) Verdict {
	*cases--
	if *cases < 0 || len(bounds) == 0 {
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
	full := len(s.rows) >= exactRows
	s.overflowed = s.overflowed || full || !ok
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
		remainder := s.r.addmul(
			s.r.lin(a.y), -a.d, self,
		)
		s.bound(remainder, Interval{0, a.d - 1})
	case atomMinZero:
		excess := s.r.addmul(s.r.lin(a.y), -1, self)
		s.bound(excess, Interval{0, plusInf})
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
	y := s.r.lin(s.r.atoms[id].y)
	rows := len(s.rows)
	s.bound(s.r.addAtom(y, -1, id), Interval{0, 0})
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
		k := make([]int64, n)
		copy(k, w.k)
		rows[i] = row{k, w.c}
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

// An elimination removes one variable after the other until only constants are
// left.
type elimination struct{ vars int }

// run decides the real shadow, where No is certain, or the dark one, where Yes
// is.
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
		lower, upper := 0, 0               // bounds on either side
		unitLower, unitUpper := true, true // all of coefficient ±1
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
// −b·x + U ≥ 0, a and b positive, to a·U + b·L ≥ 0: some real x lies between the
// bounds. That is the real shadow, which every integer solution satisfies. The
// dark shadow asks for a·U + b·L ≥ (a−1)(b−1), which leaves room for an integer
// x, but may exclude solutions. The two are the same for a = 1 or b = 1. ok is
// false past a limit.
func eliminate(rows []row, x int, dark bool) (_ []row, ok bool) {
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

// combine is the row that a lower and an upper bound of variable x imply without
// it; ok is false when int64 cannot hold it.
func combine(low, up row, x int, dark bool) (_ row, ok bool) {
	a := low.k[x]
	b := -up.k[x]
	out := row{k: make([]int64, len(low.k))}
	ok = true
	mix := func(l, u int64) int64 {
		p, ok1 := mulInt(b, l)
		q, ok2 := mulInt(a, u)
		s, ok3 := addInt(p, q)
		ok = ok && ok1 && ok2 && ok3
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
		ok = ok && ok1 && ok2
	}
	return out, ok
}
