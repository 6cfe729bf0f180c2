package index

import "slices"

// Simplify returns an equal map with the least that says the same: ranges
// narrowed by the constraints, congruences merged (Chinese remainders),
// variables that equations determine eliminated from the results, constraints
// that follow dropped, results simplified for points of the domain. A domain
// proved empty gives State Empty. Arity is kept; DropUnused changes it.
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
	return m.State == o.State &&
		slices.Equal(m.Results, o.Results) &&
		slices.Equal(m.Vars(), o.Vars()) &&
		slices.EqualFunc(m.Where, o.Where, func(x, y Clause) bool {
			return slices.Equal(x, y)
		})
}

func (m Map) simplifyOnce() Map {
	r := m.ring()
	if r.scratch == nil {
		r.scratch = NewRing()
	}
	r.scratch.ForgetFired()
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

// A simplification is one run of Map.Simplify.
type simplification struct {
	*domain
	names      []Variable // of domain.vars
	from       *Ring
	m          Map
	atoms      map[int32]int   // variable atoms of from to indices of domain.vars
	done       map[int32]lin   // atoms of from rebuilt in this pass
	passesLeft int             // passes
	clauses    []Clause        // as far as simplified, over from
	open       [][]boundedForm // this pass: clauses that are still ors
	results    []lin
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
		s.vars[i].free = s.vars[i].free || v.Origin != nil
	}
}

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
			s.constrain(
				s.r.rebuild(s.from, x[0].Expr.lin(), s.done),
				x[0].In,
			)
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
		s.results = append(
			s.results,
			s.r.rebuild(s.from, e.lin(), s.done),
		)
	}
}

// resetVars drops what was rebuilt with less knowledge. Every variable of from is
// entered, those of constraints on the fly.
func (s *simplification) resetVars() {
	s.done = make(map[int32]lin, len(s.atoms))
	for a, i := range s.atoms {
		s.done[a] = s.value(i)
	}
}

// passClauses decides the bounds of clauses with alternatives.
func (s *simplification) passClauses() {
	s.open = s.open[:0]
	for i, x := range s.clauses {
		if len(x) == 1 {
			continue
		}
		var left Clause
		var open []boundedForm
		always := false
		for _, b := range x {
			y := s.r.rebuild(s.from, b.Expr.lin(), s.done)
			in := s.r.sharpRange(y)
			always = always || b.In.Covers(in)
			if !b.In.Meet(in).Empty() {
				left = append(left, b)
				open = append(open, boundedForm{y, b.In})
			}
		}
		switch {
		case always:
		case len(left) == 0:
			s.empty = true
		case len(left) == 1:
			s.clauses[i], s.changed = left, true
		default:
			s.open = append(s.open, open)
		}
	}
}

// finish carries the outcome back to the ring of the map.
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
	out.Dims, out.Ranges, out.Runtime = narrowed(s.m.Dims),
		narrowed(s.m.Ranges),
		narrowed(s.m.Runtime)
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

// narrowedVars gives every variable of the domain its form in the ring of the map:
// narrowed, or, run-time variables with an origin, at what is narrowed.
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
			back[int32(i)] = with.applyRuntime([]Expr{
				s.from.Var(v),
			})[0].lin()
		}
	}
	return back
}

func (s *simplification) narrowed(es []Expr, back map[int32]lin) []Expr {
	out := slices.Clone(es)
	for i, e := range es {
		if x := e.lin(); len(x.t) == 1 {
			out[i] = s.from.wrap(
				back[int32(s.atoms[x.t[0].a])],
			)
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
			s.r.atomForm(e.v),
			-1,
			s.solved(&e),
		)
		c = append(c, Clause{{take(x), Interval{}}})
	}
	for _, g := range s.r.facts.congr {
		c = append(c, Clause{
			{
				take(g.sum).Mod(g.m),
				Interval{g.r, g.r},
			},
		})
	}
	for i, f := range s.r.facts.sums {
		c = append(c, Clause{{take(f.sum), s.stated[i]}})
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
