package index

import (
	"slices"
	"strconv"
)

// Compose returns the map that applies first, then second. Its dimensions are
// first's; its ranges second's, then first's; its run-time variables second's,
// then first's, each once. Where holds second's constraints, first's, and for
// each result of first the range of second's dimension. It is not simplified.
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
		return Map{State: StateUndefined, Why: "one collective after another: replicas of two replica groups"}
	}
	with := bind(second.Dims, first.Results)
	taken := newNames(first, second)
	ranges := taken.fresh(second.Ranges, first.Vars(), with)
	s := Substitution{With: with}
	runtime := second.composeRuntime(first, taken, &s)
	out := Map{
		Dims:    first.Dims,
		Ranges:  slices.Concat(ranges, first.Ranges),
		Runtime: unite(unite(nil, runtime), first.Runtime),
		Results: s.ApplyAll(second.Results),
		Where: And(
			s.ApplyTo(second.Where),
			first.Where,
			within(first.Results, second.Dims),
		),
		Approximate: first.Approximate || second.Approximate,
		Replica:     composeReplica(first, second, &s),
	}
	return out
}

// emptyLike is the empty composition: no constraints, results 0.
func emptyLike(first, second Map) Map {
	return Map{
		State:   StateEmpty,
		Dims:    first.Dims,
		Results: slices.Clone(second.Results),
	}
}

func bind(vars, values []Expr) map[Expr]Expr {
	with := make(map[Expr]Expr, len(vars))
	for i, v := range vars {
		if _, constant := v.Value(); !constant {
			with[v] = values[i]
		}
	}
	return with
}

// within says that each value lies in the range of its variable.
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

// unite appends those of b that are not in a.
func unite(a, b []Expr) []Expr {
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
		v.Name = taken.like(v.Name)
		out[i] = e.r.Var(v)
		with[e] = out[i]
	}
	return out
}

// like returns an unused name made of name's letters and a number.
func (taken names) like(name string) string {
	stem := trimDigits(name)
	for n := len(taken); ; n++ {
		if s := stem + strconv.Itoa(n); !taken[s] {
			taken[s] = true
			return s
		}
	}
}

func trimDigits(name string) string {
	for len(name) > 0 &&
		'0' <= name[len(name)-1] &&
		name[len(name)-1] <= '9' {
		name = name[:len(name)-1]
	}
	return name
}
