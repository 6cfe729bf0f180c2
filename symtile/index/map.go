package index

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// A Map is an indexing map: for every point of the domain (Dims, Ranges and
// Runtime within their ranges, Where holding) the point Results. Over all values
// of Ranges it relates a point of Dims to a set of points; run-time variables
// have one value each, which is not known yet. Variables carry their own bounds,
// and a variable with one value is a constant in its place.
//
// For the operand of a reduction, say, Dims are the dimensions of the result,
// Ranges those that are reduced, and Results the element of the operand.
//
// A Map is a value: methods return new maps and share what does not change.
type Map struct {
	Dims    []Expr // variables, or constants in their place, as are the next two
	Ranges  []Expr
	Runtime []Expr // known at run time; their origins say from where
	Results []Expr
	Where   Constraint // on all variables
	State   MapState

	// Approximate tells that the relation is part of this set: some of its
	// points may not be related.
	Approximate bool

	// Replica is the replica that Results are on, for maps of collectives: its
	// position in the replica group (its id for a collective-permute). Without
	// one it is the replica that asks, whose own position is the run-time
	// variable named "replica".
	Replica Expr

	Why string // of an undefined map: what is not known, for people

	// names are those of Vars in the text that the map was read from: a variable of
	// one value becomes a constant, which has no name of its own.
	names []string
}

// MapState tells a usable map from one without points and one that is not known.
type MapState uint8

// The states of maps.
const (
	StateKnown     MapState = iota // the fields say what the map is
	StateEmpty                     // provably no point in the domain
	StateUndefined                 // the relation is not known; contagious under Compose
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

// env pairs the variables of m with values, in the order of Vars.
func (m Map) env(vals []int64) map[Expr]int64 {
	env := make(map[Expr]int64, len(vals))
	for i, v := range m.Vars() {
		env[v] = vals[i]
	}
	return env
}

// Has reports whether the point vals, in the order of Vars, is in the domain.
func (m Map) Has(vals []int64) bool {
	vars := m.Vars()
	if m.State != StateKnown || len(vals) != len(vars) {
		return false
	}
	for i, v := range vars {
		if !v.Range().Contains(vals[i]) {
			return false
		}
	}
	return m.Where.Holds(m.env(vals))
}

// Eval returns the results at vals, in the order of Vars, whether vals is in the
// domain or not.
func (m Map) Eval(vals []int64) []int64 {
	env := m.env(vals)
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

// Replicated reports whether the results may be on another replica.
func (m Map) Replicated() bool { return m.Replica != Expr{} }

// replicaAsResult makes the replica the last result, for what treats all
// results alike.
func (m Map) replicaAsResult() Map {
	if m.Replicated() {
		m.Results = append(slices.Clip(m.Results), m.Replica)
		m.Replica = Expr{}
	}
	return m
}

// resultAsReplica undoes replicaAsResult.
func (m Map) resultAsReplica() Map {
	n := len(m.Results) - 1
	m.Replica = m.Results[n]
	m.Results = m.Results[:n:n]
	return m
}

// maxEqualPoints bounds what Equal walks.
const maxEqualPoints = 1 << 22

// Equal reports whether a and b relate the same points: for every value of the
// dimensions and run-time variables the same set of results, with their
// replica, over the ranges.
//
// It walks both domains, so it is for tests; the error says why it cannot. The
// difference, when there is one, is shown at its first point.
func (a Map) Equal(b Map) (same bool, difference string, err error) {
	if a.State == StateUndefined || b.State == StateUndefined {
		return a.State == b.State, "only one is undefined", nil
	}
	x, err := a.relation()
	if err != nil {
		return false, "", err
	}
	y, err := b.relation()
	if err != nil {
		return false, "", err
	}
	for _, key := range slices.Sorted(maps.Keys(x)) {
		if !maps.Equal(x[key], y[key]) {
			got := formatPoints(x[key])
			want := formatPoints(y[key])
			difference = fmt.Sprintf("at %v: %v against %v", decodePoint(key), got, want)
			return false, difference, nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(y)) {
		if x[key] == nil {
			want := formatPoints(y[key])
			difference = fmt.Sprintf("at %v: nothing against %v", decodePoint(key), want)
			return false, difference, nil
		}
	}
	return true, "", nil
}

// formatPoints lists the points of a set, sorted.
func formatPoints(set map[string]bool) (out [][]int64) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		out = append(out, decodePoint(key))
	}
	return out
}

// relation lists the results of m by the values of Dims and Runtime, both
// encoded.
func (m Map) relation() (map[string]map[string]bool, error) {
	out := map[string]map[string]bool{}
	if m = m.replicaAsResult(); m.State != StateKnown {
		return out, nil
	}
	if err := checkBox(m.Vars(), maxEqualPoints); err != nil {
		return nil, err
	}
	code, err := m.Compile()
	if err != nil {
		return nil, err
	}
	check, err := CompileConstraint(m.Vars(), m.Where)
	if err != nil {
		return nil, err
	}
	n := len(m.Dims)
	scratch := make(
		[]int64, max(code.ScratchLen(), check.ScratchLen()),
	)
	res := make([]int64, len(m.Results))
	walkBox(m.Vars(), func(v []int64) bool {
		if !check.Holds(v, scratch) {
			return true
		}
		code.Eval(v, res, scratch)
		key := encodePoint(v[:n], v[n+len(m.Ranges):])
		if out[key] == nil {
			out[key] = map[string]bool{}
		}
		out[key][encodePoint(res)] = true
		return true
	})
	return out, nil
}

// encodePoint writes a point so that keys sort as points do.
func encodePoint(parts ...[]int64) string {
	var b []byte
	for _, p := range parts {
		for _, x := range p {
			b = binary.BigEndian.AppendUint64(b, uint64(x)^1<<63)
		}
	}
	return string(b)
}

// decodePoint is the point that encodePoint wrote.
func decodePoint(key string) []int64 {
	out := []int64{}
	for b := []byte(key); len(b) > 0; b = b[8:] {
		x := binary.BigEndian.Uint64(b) ^ 1<<63
		out = append(out, int64(x))
	}
	return out
}
