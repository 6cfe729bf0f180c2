package index

import (
	"encoding/binary"
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

// Maps of collectives also say on which replica the results are. Replica is the
// position of that replica in the replica group of the collective (the replica
// id for a collective-permute); a run-time variable named "replica" is the
// position of the replica that asks.

// Replicated reports whether the results may be on another replica.
func (m Map) Replicated() bool { return m.Replica != Expr{} }

// replicaAsResult makes the replica the last result, for what treats all
// results alike; resultAsReplica puts it back.
func (m Map) replicaAsResult() Map {
	if m.Replicated() {
		m.Results = append(
			m.Results[:len(m.Results):len(m.Results)],
			m.Replica,
		)
		m.Replica = Expr{}
	}
	return m
}

func (m Map) resultAsReplica() Map {
	n := len(m.Results) - 1
	m.Results, m.Replica = m.Results[:n:n],
		m.Results[n]
	return m
}

// maxEqualPoints bounds what Equal walks.
const maxEqualPoints = 1 << 22

// Equal reports whether a and b relate the same points: for every value of the
// dimensions and run-time variables the same set of results, with their
// replica, over the ranges.
// It walks both domains, so it is for tests; the error says why it cannot.
// The difference, when there is one, is shown at its first point.
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
			return false, fmt.Sprintf(
				"at %v: %v against %v",
				decodePoint(key), formatPoints(x[key]),
				formatPoints(y[key]),
			), nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(y)) {
		if x[key] == nil {
			return false, fmt.Sprintf(
				"at %v: nothing against %v", decodePoint(key), formatPoints(y[key]),
			), nil
		}
	}
	return true, "", nil
}

func formatPoints(set map[string]bool) (out [][]int64) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		out = append(out, decodePoint(key))
	}
	return out
}

// relation lists the results of m by the values of Dims and Runtime.
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
	n, scratch := len(m.Dims),
		make(
			[]int64,
			max(code.ScratchLen(), check.ScratchLen()),
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
			b = binary.BigEndian.AppendUint64(
				b, uint64(x)^1<<63,
			)
		}
	}
	return string(b)
}

func decodePoint(key string) []int64 {
	out := []int64{}
	for b := []byte(key); len(b) > 0; b = b[8:] {
		out = append(
			out, int64(binary.BigEndian.Uint64(b)^1<<63),
		)
	}
	return out
}
