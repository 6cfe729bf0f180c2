package index

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

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
				decodePoint(key), show(x[key]),
				show(y[key]),
			), nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(y)) {
		if x[key] == nil {
			return false, fmt.Sprintf(
				"at %v: nothing against %v", decodePoint(key), show(y[key]),
			), nil
		}
	}
	return true, "", nil
}

func show(set map[string]bool) (out [][]int64) {
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
	if err := m.checkBox(maxEqualPoints); err != nil {
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
	m.walk(func(v []int64) bool {
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

// walk calls f for every point of the box of m, the last variable fastest, as
// long as f returns true.
func (m Map) walk(f func(v []int64) bool) {
	vars := m.Vars()
	v := make([]int64, len(vars))
	in := make([]Interval, len(vars))
	for i, e := range vars {
		in[i] = e.Range()
		v[i] = in[i].Lo
	}
	for {
		if !f(v) {
			return
		}
		i := len(v) - 1
		for ; i >= 0 && v[i] == in[i].Hi; i-- {
			v[i] = in[i].Lo
		}
		if i < 0 {
			return
		}
		v[i]++
	}
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
