package index

import "slices"

// DropUnused removes the variables that neither a result nor a constraint with
// a variable in use mentions, with the constraints that mention only them, and
// returns those it removed. Such constraints go only when they are known to be
// satisfiable; otherwise their variables stay.
func (m Map) DropUnused() (Map, []Expr) {
	return m.drop(m.Vars())
}

// DropUnusedRanges is DropUnused for ranges and run-time variables only.
func (m Map) DropUnusedRanges() (Map, []Expr) {
	dims := m.Dims // a dimension with one value is a constant, and may equal a range that is one
	m, removed := m.drop(slices.Concat(m.Ranges, m.Runtime))
	m.Dims = dims
	return m, removed
}

// drop removes those of candidates that are not in use.
func (m Map) drop(candidates []Expr) (Map, []Expr) {
	if m.State != StateKnown {
		return m, nil
	}
	used := m.replicaAsResult().used()
	var where, idle Constraint
	for _, x := range m.Where {
		if mentions(x, used) {
			where = append(where, x)
		} else {
			idle = append(idle, x)
		}
	}
	keep := func(e Expr) bool {
		return used[e] ||
			!slices.Contains(candidates, e) && !isConst(e)
	}
	needed := func(idle Constraint) bool {
		return idle.Satisfiable() != Yes ||
			slices.ContainsFunc(idle.Vars(), keep)
	}
	if len(idle) > 0 && needed(idle) {
		for _, v := range idle.Vars() {
			used[v] = true
		}
		where = m.Where
	}
	var removed []Expr
	filter := func(es []Expr) (out []Expr) {
		for _, e := range es {
			if keep(e) ||
				isConst(e) && !slices.Contains(candidates, e) {
				out = append(out, e)
			} else {
				removed = append(removed, e)
			}
		}
		return out
	}
	m.Dims = filter(m.Dims)
	m.Ranges = filter(m.Ranges)
	m.Runtime = filter(m.Runtime)
	m.Where = where
	return m, removed
}

// isConst reports whether e is a constant, as a variable of one value is.
func isConst(e Expr) bool {
	_, ok := e.Value()
	return ok
}

// used is the closure of the variables of the results over shared constraints.
// A run-time variable with an origin is in use when a constraint asks something
// of it: there is a point or not, as its value will be.
func (m Map) used() map[Expr]bool {
	used := map[Expr]bool{}
	for _, e := range m.Where.Vars() {
		v, _ := e.Variable()
		if v.Origin != nil {
			used[e] = true
		}
	}
	for _, e := range m.Results {
		for _, v := range e.Vars() {
			used[v] = true
		}
	}
	for n := -1; n != len(used); {
		n = len(used)
		for e := range used {
			for _, v := range originVars(e) {
				used[v] = true
			}
		}
		for _, x := range m.Where {
			if mentions(x, used) {
				for _, v := range (Constraint{x}).Vars() {
					used[v] = true
				}
			}
		}
	}
	return used
}

// mentions reports whether x has a variable of vars.
func mentions(x Clause, vars map[Expr]bool) bool {
	return slices.ContainsFunc((Constraint{x}).Vars(), func(v Expr) bool {
		return vars[v]
	})
}

// RangesToDims appends the ranges with the given indices to the dimensions, for
// callers that enumerate them. The other ranges keep their order.
func (m Map) RangesToDims(which ...int) Map {
	dims := slices.Clone(m.Dims)
	ranges := []Expr(nil)
	for i, e := range m.Ranges {
		if slices.Contains(which, i) {
			dims = append(dims, e)
		} else {
			ranges = append(ranges, e)
		}
	}
	m.Dims, m.Ranges = dims, ranges
	return m
}

// SymbolsToDims appends all ranges and run-time variables to the dimensions, in
// this order: the map becomes a function of its dimensions.
func (m Map) SymbolsToDims() Map {
	m.Dims = m.Vars()
	m.Ranges = nil
	m.Runtime = nil
	return m
}

// RescaleRanges replaces every range s with s mod c in [k, k] by c·s' + k, the
// new range s' having the bounds that leaves. The map is simplified first, so
// that there is one such constraint for a range at most.
func (m Map) RescaleRanges() Map {
	m = m.Simplify()
	if m.State != StateKnown {
		return m
	}
	with := map[Expr]Expr{}
	ranges := slices.Clone(m.Ranges)
	var where Constraint
	for _, x := range m.Where {
		base, c, k, ok := x.congruence()
		i := slices.Index(m.Ranges, base)
		if !ok || i < 0 || with[base] != (Expr{}) {
			where = append(where, x)
			continue
		}
		v, _ := base.Variable()
		v.Lo = satCeilDiv(SatAdd(v.Lo, -k), c)
		v.Hi = satDiv(SatAdd(v.Hi, -k), c)
		ranges[i] = base.r.Var(v)
		with[base] = ranges[i].Scale(c).AddConst(k)
	}
	m.Where, m.Ranges = where, ranges
	return m.Subst(with).Simplify()
}
