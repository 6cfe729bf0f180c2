package index

import (
	"fmt"
	"maps"
	"slices"
)

// A Map is an indexing map: for every point of the domain (Dims, Ranges and
// Runtime within their ranges, Where holding) the point Results. Over all
// values of Ranges it is a set. Variables carry their own bounds.
//
// A variable with one value is a constant in its place.
type Map struct {
	Dims, Ranges, Runtime []Expr
	Results               []Expr
	Where                 Constraint
	State                 MapState
	Approximate           bool   // the relation is part of this set: some of it may not be there
	Replica               Expr   // the replica Results are on; no expression: the replica that asks
	Why                   string // of an Undefined map: what is not known, for people
}

// MapState tells a usable map from one without points and one that is not known.
type MapState uint8

const (
	StateKnown     MapState = iota
	StateEmpty              // provably no point in the domain
	StateUndefined          // the relation is not known; contagious under Compose
)

// Vars lists the variables of m: dimensions, ranges, run-time variables.
func (m Map) Vars() []Expr {
	return slices.Concat(m.Dims, m.Ranges, m.Runtime)
}

// ring is the ring of m, nil when m mentions nothing.
func (m Map) ring() *Ring {
	for _, es := range [][]Expr{m.Results, m.Dims, m.Ranges, m.Runtime} {
		if len(es) > 0 {
			return es[0].r
		}
	}
	for _, x := range m.Where {
		if len(x) > 0 {
			return x[0].Expr.r
		}
	}
	return nil
}

// Env pairs the variables of m with values, in the order of Vars.
func (m Map) Env(vals []int64) map[Expr]int64 {
	env := make(map[Expr]int64, len(vals))
	for i, v := range m.Vars() {
		env[v] = vals[i]
	}
	return env
}

// Has reports whether the point vals, in the order of Vars, is in the domain.
func (m Map) Has(vals []int64) bool {
	if m.State != StateKnown ||
		len(vals) != len(m.Dims)+
			len(m.Ranges)+len(m.Runtime) {
		return false
	}
	for i, v := range m.Vars() {
		if !v.Range().Contains(vals[i]) {
			return false
		}
	}
	return m.Where.Holds(m.Env(vals))
}

// Eval returns the results at vals, in the order of Vars, wherever that is.
func (m Map) Eval(vals []int64) []int64 {
	env := m.Env(vals)
	out := make([]int64, len(m.Results))
	for i, e := range m.Results {
		out[i] = e.Eval(env)
	}
	return out
}

// Compile compiles the results as functions of Vars.
func (m Map) Compile() (*Evaluator, error) {
	return Compile(m.Vars(), m.Results)
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

// checkBox refuses domains that are too large to walk.
func (m Map) checkBox(limit int64) error {
	n := int64(1)
	for _, v := range m.Vars() {
		n = SatMul(n, v.Range().Len())
	}
	if n > limit {
		return fmt.Errorf("domain has %d points, more than %d", n, limit)
	}
	return nil
}
