package index

import (
	"maps"
	"slices"
	"strconv"
)

// originVars are the variables that say where run-time variable e is read.
func originVars(e Expr) (out []Expr) {
	v, ok := e.Variable()
	if ok && v.Origin != nil {
		for _, at := range v.Origin.At {
			out = append(out, at.Vars()...)
		}
	}
	return out
}

// Subst replaces variables in the results, the constraints and the origins of
// run-time variables; the lists of variables stay but for that.
func (m Map) Subst(with map[Expr]Expr) Map {
	s := Substitution{With: maps.Clone(with)}
	out := m
	out.Runtime = s.applyOrigins(m.Runtime)
	out.Results = s.ApplyAll(m.Results)
	out.Where = s.ApplyTo(m.Where)
	out.Replica = s.applyReplica(m.Replica)
	return out
}

// ApplyAll returns es with the variables in With replaced.
func (s *Substitution) ApplyAll(es []Expr) []Expr {
	out := make([]Expr, len(es))
	for i, e := range es {
		out[i] = s.Apply(e)
	}
	return out
}

// Origins returns where the run-time variables of m are read, in order; nil for
// those that have no origin.
func (m Map) Origins() []*Origin {
	var out []*Origin
	for _, e := range m.Runtime {
		v, _ := e.Variable()
		out = append(out, v.Origin)
	}
	return out
}

// RewriteOrigins changes the origins of run-time variables by to, which gets an
// origin whose place is rewritten already. Variables whose origin changes become
// others, in the results, the constraints and the places of other origins, too.
func (m Map) RewriteOrigins(to func(Origin) Origin) Map {
	s := Substitution{With: map[Expr]Expr{}}
	m.Runtime = (&rewriting{s: &s, origin: to}).all(m.Runtime)
	m.Results = s.ApplyAll(m.Results)
	m.Where = s.ApplyTo(m.Where)
	m.Replica = s.applyReplica(m.Replica)
	return m
}

// A rewriting rewrites the origins of run-time variables for a substitution: a
// variable whose origin changes is another variable, which is entered into the
// substitution.
type rewriting struct {
	s      *Substitution
	origin func(Origin) Origin // what else changes; nil: nothing
	done   map[Expr]bool
}

// all returns vars with the origins rewritten.
func (w *rewriting) all(vars []Expr) []Expr {
	w.done = map[Expr]bool{}
	out := slices.Clone(vars)
	for i, e := range vars {
		w.enter(e)
		if to, ok := w.s.With[e]; ok {
			out[i] = to
		}
	}
	return out
}

// enter rewrites the origin of e, after those of the run-time variables that the
// place it is read at depends on. Origins form no circle, because an origin is
// made of variables that exist before it.
func (w *rewriting) enter(e Expr) {
	v, ok := e.Variable()
	_, given := w.s.With[e]
	if !ok || v.Origin == nil || given ||
		w.done[e] {
		return
	}
	w.done[e] = true
	for _, u := range originVars(e) {
		w.enter(u)
	}
	to := *v.Origin
	to.At = (&Substitution{With: w.s.With}).ApplyAll(to.At)
	if w.origin != nil {
		to = w.origin(to)
	}
	x := e.r.RuntimeVar(to, v.Lo, v.Hi)
	if x != e {
		w.s.With[e] = x
	}
}

// applyRuntime returns the run-time variables as With makes them.
func (s *Substitution) applyRuntime(vars []Expr) []Expr {
	return (&rewriting{s: s}).all(vars)
}

// applyOrigins is applyRuntime but for variables that With replaces: they stay.
func (s *Substitution) applyOrigins(vars []Expr) []Expr {
	replaced := maps.Clone(s.With)
	out := s.applyRuntime(vars)
	for i, e := range vars {
		if replaced[e] != (Expr{}) {
			out[i] = e
		}
	}
	return out
}

// applyReplica applies s to a replica, which may be no expression.
func (s *Substitution) applyReplica(e Expr) Expr {
	if e == (Expr{}) {
		return e
	}
	return s.Apply(e)
}

// Compose returns the map that applies first, then second: the results of first
// are put for the dimensions of second. Its dimensions are first's; its ranges
// second's, then first's; its run-time variables second's, then first's, each
// once. Where holds second's constraints, first's, and for each result of first
// the range of second's dimension. It is not simplified.
//
// A range of one that is also a variable of the other is renamed; a run-time
// variable is so only if it has no origin, because one origin is one value.
// Both maps are of one ring. At most one of them may be Replicated; otherwise
// the composition is Undefined, as replicas of two groups are not told apart.
func Compose(first, second Map) Map {
	switch {
	case first.State == StateUndefined:
		return Map{State: StateUndefined, Why: first.Why}
	case second.State == StateUndefined:
		return Map{State: StateUndefined, Why: second.Why}
	case first.State == StateEmpty || second.State == StateEmpty:
		return emptyLike(first, second)
	case first.Replicated() && second.Replicated():
		const why = "one collective after another: replicas of two replica groups"
		return Map{State: StateUndefined, Why: why}
	}
	with := substitutionFor(second.Dims, first.Results)
	taken := newNames(first, second)
	ranges := taken.fresh(
		second.Ranges, first.Vars(), with,
	)
	s := Substitution{With: with}
	runtime := second.composeRuntime(first, taken, &s)
	inside := within(first.Results, second.Dims)
	return Map{
		Dims:        first.Dims,
		Ranges:      slices.Concat(ranges, first.Ranges),
		Runtime:     appendMissing(runtime, first.Runtime),
		Results:     s.ApplyAll(second.Results),
		Where:       And(s.ApplyTo(second.Where), first.Where, inside),
		Approximate: first.Approximate || second.Approximate,
		Replica:     composeReplica(first, second, &s),
	}
}

// emptyLike is the empty composition: no constraints, results 0.
func emptyLike(first, second Map) Map {
	return Map{
		State:   StateEmpty,
		Dims:    first.Dims,
		Results: slices.Clone(second.Results),
	}
}

// composeReplica is the replica of second after first, whichever has one.
func composeReplica(first, second Map, s *Substitution) Expr {
	if second.Replicated() {
		return s.Apply(second.Replica)
	}
	return first.Replica
}

// substitutionFor puts values for vars.
func substitutionFor(vars, values []Expr) map[Expr]Expr {
	with := make(map[Expr]Expr, len(vars))
	for i, v := range vars {
		if _, constant := v.Value(); !constant {
			with[v] = values[i]
		}
	}
	return with
}

// within is the constraint that each value lies in the range of its variable,
// for those whose own range does not show it.
func within(values, vars []Expr) (c Constraint) {
	for i, v := range vars {
		in := v.Range()
		have := values[i].Range()
		if !in.Covers(have) {
			c = append(c, Clause{{values[i], in}})
		}
	}
	return c
}

// appendMissing appends to a copy of a those of b that are not in a; constants,
// which are variables of one value, are never the same.
func appendMissing(a, b []Expr) []Expr {
	out := slices.Clone(a)
	for _, e := range b {
		_, constant := e.Value()
		if constant || !slices.Contains(a, e) {
			out = append(out, e)
		}
	}
	return out
}

// composeRuntime rewrites the run-time variables of m for the variables of
// first, and renames those without an origin.
func (m Map) composeRuntime(first Map, taken names, s *Substitution) []Expr {
	var plain []Expr
	for _, rt := range m.Runtime {
		v, ok := rt.Variable()
		if ok && v.Origin == nil {
			plain = append(plain, rt)
		}
	}
	taken.fresh(plain, first.Vars(), s.With)
	return s.applyRuntime(m.Runtime)
}

// names are the variable names in use.
type names map[string]bool

// newNames are the names of the variables of the maps.
func newNames(ms ...Map) names {
	taken := names{}
	for _, m := range ms {
		for _, e := range m.Vars() {
			if v, ok := e.Variable(); ok {
				taken[v.Name] = true
			}
		}
	}
	return taken
}

// fresh renames those of vars that are in others, entering them into with.
func (taken names) fresh(vars, others []Expr, with map[Expr]Expr) []Expr {
	out := slices.Clone(vars)
	for i, e := range vars {
		v, ok := e.Variable()
		if !ok || !slices.Contains(others, e) {
			continue
		}
		v.Name = taken.unusedLike(v.Name)
		out[i] = e.r.Var(v)
		with[e] = out[i]
	}
	return out
}

// unusedLike returns an unused name made of name's letters and a number.
func (taken names) unusedLike(name string) string {
	stem := trimDigits(name)
	for n := len(taken); ; n++ {
		if s := stem + strconv.Itoa(n); !taken[s] {
			taken[s] = true
			return s
		}
	}
}
