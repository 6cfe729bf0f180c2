package index

import "slices"

// Simplify returns an equal map that says no more than it must: ranges narrowed by
// the constraints, congruences merged (Chinese remainders), variables that
// equations determine eliminated from the results, constraints that follow
// dropped, results simplified for points of the domain. A domain proved empty
// gives StateEmpty. Arity is kept; DropUnused changes it.
//
// It is idempotent: narrower ranges make other variables and with them other
// normal forms, so it is repeated until the map does not change.
func (m Map) Simplify() Map {
	if m.Replicated() {
		return m.replicaAsResult().Simplify().resultAsReplica()
	}
	for range maxPasses {
		if m.State != StateKnown || m.ring() == nil {
			return m
		}
		out := m.simplifyOnce()
		if out.same(m) {
			return out
		}
		m = out
	}
	return m
}

// same reports whether m and o are written the same.
func (m Map) same(o Map) bool {
	if m.State != o.State ||
		!slices.Equal(m.Results, o.Results) {
		return false
	}
	if !slices.Equal(m.Vars(), o.Vars()) {
		return false
	}
	return slices.EqualFunc(m.Where, o.Where, func(x, y Clause) bool {
		return slices.Equal(x, y)
	})
}

// simplifyOnce solves the constraints of m in a domain and carries the outcome
// back to the ring of m.
func (m Map) simplifyOnce() Map {
	r := m.ring()
	if r.scratch == nil {
		r.scratch = NewRing()
	}
	r.scratch.forgetFired()
	s := simplification{
		domain: newDomain(r.scratch),
		from:   r,
		m:      m,
		atoms:  map[int32]int{},
	}
	s.enterAll()
	for _, x := range m.Where {
		s.clauses = append(s.clauses, slices.Clone(x))
	}
	for s.passesLeft = maxPasses; ; s.passesLeft-- {
		s.pass()
		if s.empty {
			r.noteFired(s.r)
			return m.emptied()
		}
		if !s.needsPass() {
			return s.finish()
		}
	}
}

// emptied is m without points: its variables and results stay in number.
func (m Map) emptied() Map {
	out := Map{
		State:   StateEmpty,
		Dims:    m.Dims,
		Ranges:  m.Ranges,
		Runtime: m.Runtime,
	}
	for _, e := range m.Results {
		out.Results = append(out.Results, e.r.Const(0))
	}
	return out
}

// A simplification is one run of Map.simplifyOnce. It rebuilds the expressions of
// a map, which belong to the ring from, in the ring of its domain.
type simplification struct {
	*domain
	names []Variable // of domain.vars
	from  *Ring
	m     Map

	atoms      map[int32]int   // variable atoms of from to indices of domain.vars
	done       map[int32]lin   // atoms of from rebuilt with what is known now
	passesLeft int             // passes that may follow
	clauses    []Clause        // as far as simplified, over from
	open       [][]boundedForm // this pass: clauses that are still disjunctions
	results    []lin           // this pass: the results rebuilt
}

// enterAll enters the variables of the map, then, as free, others that its
// constraints and results mention. Run-time variables with an origin are free.
func (s *simplification) enterAll() {
	for _, e := range s.m.Vars() {
		s.enter(e)
	}
	own := len(s.vars)
	for _, e := range append(s.m.Where.Vars(), s.m.Results...) {
		for _, v := range e.Vars() {
			s.enter(v)
		}
	}
	for i := range s.vars[own:] {
		s.vars[own+i].free = true
	}
	for i, v := range s.names { // what it is read as does not change with what is asked of it
		s.vars[i].free = s.vars[i].free ||
			v.Origin != nil
	}
}

// enter makes the variable e a variable of the domain.
func (s *simplification) enter(e Expr) {
	v, ok := e.Variable()
	if !ok {
		return
	}
	id := e.lin().t[0].a
	if _, had := s.atoms[id]; !had {
		s.atoms[id] = s.add(v)
		s.names = append(s.names, v)
	}
}

// needsPass reports whether the pass learnt something that asks for another.
func (s *simplification) needsPass() bool {
	return s.changed && s.passesLeft > 0
}

// pass rebuilds everything for the variables as they are known, constraints
// first, so that the results are built knowing them all.
func (s *simplification) pass() {
	s.beginPass()
	s.resetVars()
	for _, x := range s.clauses {
		if len(x) == 1 && !s.empty {
			y := s.rebuilt(x[0].Expr)
			s.constrain(y, x[0].In)
			s.resetVars()
		}
	}
	if s.empty || s.needsPass() {
		return
	}
	s.passClauses()
	if s.empty || s.needsPass() {
		return
	}
	s.results = s.results[:0]
	for _, e := range s.m.Results {
		s.results = append(s.results, s.rebuilt(e))
	}
}

// rebuilt is e over the variables as they are known.
func (s *simplification) rebuilt(e Expr) lin {
	return s.r.rebuild(s.from, e.lin(), s.done)
}

// resetVars drops what was rebuilt with less knowledge: only the variables stand
// for something now.
func (s *simplification) resetVars() {
	s.done = make(map[int32]lin, len(s.atoms))
	for a, i := range s.atoms {
		s.done[a] = s.value(i)
	}
}

// passClauses decides the bounds of disjunctions by the ranges of this pass. One
// that is left with a single bound is a constraint of the next pass.
func (s *simplification) passClauses() {
	s.open = s.open[:0]
	for i, x := range s.clauses {
		if len(x) == 1 {
			continue
		}
		var possible Clause
		var open []boundedForm
		always := false
		for _, b := range x {
			y := s.rebuilt(b.Expr)
			in := s.r.sharpRange(y)
			always = always || b.In.Covers(in)
			if !b.In.Meet(in).Empty() {
				possible = append(possible, b)
				open = append(open, boundedForm{y, b.In})
			}
		}
		switch {
		case always:
		case len(possible) == 0:
			s.empty = true
		case len(possible) == 1:
			s.clauses[i], s.changed = possible, true
		default:
			s.open = append(s.open, open)
		}
	}
}

// finish carries the outcome back to the ring of the map and simplifies the
// constraint that is left by itself.
func (s *simplification) finish() Map {
	s.dropImplied()
	s.from.noteFired(s.r)
	out := s.m
	back := s.narrowedVars()
	take := func(x lin) Expr {
		return s.from.wrap(s.from.rebuild(s.r, x, back))
	}
	narrowed := func(es []Expr) []Expr {
		return s.narrowed(es, back)
	}
	out.Dims = narrowed(s.m.Dims)
	out.Ranges = narrowed(s.m.Ranges)
	out.Runtime = narrowed(s.m.Runtime)
	out.Results = make([]Expr, len(s.results))
	for i, x := range s.results {
		out.Results[i] = take(x)
	}
	out.Where = s.where(take).Simplify()
	if len(out.Where) > 0 {
		out.Where = out.Where.withoutImplied()
	}
	if out.Where.contradicts() {
		return s.m.emptied()
	}
	return out
}

// narrowedVars gives every variable of the domain its form in the ring of the
// map: the variable with the narrowed range, or, for a run-time variable with an
// origin, the one that is read at narrowed variables.
func (s *simplification) narrowedVars() map[int32]lin {
	back := make(map[int32]lin, len(s.vars))
	with := Substitution{With: map[Expr]Expr{}}
	for i, v := range s.names {
		narrow := v
		narrow.Lo = s.vars[i].in.Lo
		narrow.Hi = s.vars[i].in.Hi
		back[int32(i)] = s.from.variable(narrow)
		if narrow != v && v.Origin == nil {
			with.With[s.from.Var(v)] = s.from.Var(narrow)
		}
	}
	if len(with.With) == 0 {
		return back
	}
	for i, v := range s.names {
		if v.Origin != nil {
			rewritten := with.applyRuntime([]Expr{
				s.from.Var(v),
			})
			back[int32(i)] = rewritten[0].lin()
		}
	}
	return back
}

// narrowed are the variables es in the forms back.
func (s *simplification) narrowed(es []Expr, back map[int32]lin) []Expr {
	out := slices.Clone(es)
	for i, e := range es {
		if x := e.lin(); len(x.t) == 1 {
			i0 := int32(s.atoms[x.t[0].a])
			out[i] = s.from.wrap(back[i0])
		}
	}
	return out
}

// where states what is left of the constraints: congruences of variables,
// equations, facts about sums, alternatives.
func (s *simplification) where(take func(lin) Expr) (c Constraint) {
	for i, v := range s.vars {
		if v.m > 1 && v.in.Lo < v.in.Hi {
			e := take(s.r.atomForm(int32(i)))
			c = append(c, Clause{
				{e.Mod(v.m), Interval{v.r, v.r}},
			})
		}
	}
	for _, e := range s.eqs {
		x := s.r.addmul(
			s.r.atomForm(e.v), -1, s.solved(&e),
		)
		c = append(c, Clause{{take(x), Interval{}}})
	}
	for _, g := range s.r.facts.congr {
		remainder := take(g.sum).Mod(g.m)
		c = append(c, Clause{
			{remainder, Interval{g.r, g.r}},
		})
	}
	for i, f := range s.r.facts.sums {
		c = append(c, Clause{
			{take(f.sum), s.stated[i]},
		})
	}
	for _, x := range s.open {
		var y Clause
		for _, b := range x {
			y = append(y, Bound{take(b.x), b.in})
		}
		c = append(c, y)
	}
	return c
}
