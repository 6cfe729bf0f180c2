package index

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// String prints m in XLA's syntax,
//
//	(d0, d1)[s0]{rt0} -> (d1, s0), domain: d0 in [0, 9], ..., <constraints>
//
// the constraints sorted, then ", replica id: s0" for a map of a collective; it is
// KNOWN EMPTY for a map without points and "unknown indexing" for one that is
// undefined. Variables are numbered d0.., s0.., rt0.. by their place, unless they
// have names of another kind. Ring.ParseMap reads it back.
func (m Map) String() string {
	switch m.State {
	case StateEmpty:
		return "KNOWN EMPTY"
	case StateUndefined:
		return "unknown indexing"
	}
	n := m.naming()
	var b strings.Builder
	b.WriteString("(" + strings.Join(n.dims, ", ") + ")")
	if len(n.ranges) > 0 {
		b.WriteString("[" + strings.Join(n.ranges, ", ") + "]")
	}
	if len(n.runtime) > 0 {
		b.WriteString("{" + strings.Join(n.runtime, ", ") + "}")
	}
	texts := make([]string, len(m.Results))
	for i, e := range m.Results {
		texts[i] = n.text(e)
	}
	b.WriteString(" -> (" + strings.Join(texts, ", ") + ")")
	domain := n.domain(m)
	if len(domain) > 0 {
		b.WriteString(", domain: " + strings.Join(domain, ", "))
	}
	if m.Replicated() {
		b.WriteString(", replica id: " + n.text(m.Replica))
	}
	return b.String()
}

// A naming gives the variables of a map the names they print with. Variables are
// known by their fields, so that constraints and origins, which mention the same
// variables, are written alike.
type naming struct {
	dims, ranges, runtime []string            // in the order of the map
	by                    map[Variable]string // the same, by variable
}

// naming numbers the variables of m.
func (m Map) naming() *naming {
	n := &naming{by: map[Variable]string{}}
	written := m.names
	if len(written) != len(m.Dims)+len(m.Ranges)+len(m.Runtime) {
		written = nil
	}
	for _, group := range []struct {
		names *[]string
		vars  []Expr
		stem  string
	}{
		{&n.dims, m.Dims, "d"},
		{&n.ranges, m.Ranges, "s"},
		{&n.runtime, m.Runtime, "rt"},
	} {
		*group.names = n.name(group.vars, group.stem, written)
		written = written[min(len(written), len(group.vars)):]
	}
	return n
}

// Variables are the dimensions, ranges and run-time variables of a map in the order of its
// text, under the names that they have there. A constant in the place of one is a
// variable of one value.
func (m Map) Variables() (all []Variable) {
	n := m.naming()
	for _, group := range []struct {
		names []string
		vars  []Expr
		role  Role
	}{
		{n.dims, m.Dims, RoleDim},
		{n.ranges, m.Ranges, RoleRange},
		{n.runtime, m.Runtime, RoleRuntime},
	} {
		for k, e := range group.vars {
			in := e.Range()
			all = append(all, Variable{
				Name: group.names[k], Lo: in.Lo, Hi: in.Hi,
				Role: group.role,
			})
		}
	}
	return all
}

// name are the names of vars, which are numbered after stem; of constants among
// them the name that is written, if any.
func (n *naming) name(vars []Expr, stem string, written []string) []string {
	out := make([]string, len(vars))
	for i, e := range vars {
		out[i] = stem + strconv.Itoa(i)
		v, ok := e.Variable()
		if !ok {
			if i < len(written) && !isDefaultName(written[i]) {
				out[i] = written[i]
			}
			continue
		}
		if !isDefaultName(v.Name) {
			out[i] = v.Name
		}
		n.by[v] = out[i]
	}
	return out
}

// isDefaultName reports whether name is d, s or rt and a number.
func isDefaultName(name string) bool {
	stem := trimDigits(name)
	return stem != name &&
		slices.Contains([]string{"d", "s", "rt"}, stem)
}

// text prints e with the names of the map.
func (n *naming) text(e Expr) string {
	defer e.lock().Unlock()
	return e.r.text(e.lin(), n.by)
}

// domain lists the ranges, then the constraints sorted.
func (n *naming) domain(m Map) []string {
	var out []string
	for i, name := range slices.Concat(n.dims, n.ranges, n.runtime) {
		in := m.Vars()[i].Range()
		out = append(out, name+" in "+in.String())
	}
	var where []string
	for _, x := range m.Where {
		where = append(where, x.text(n.text))
	}
	slices.Sort(where)
	return append(out, where...)
}

// RuntimeText says where each run-time variable of m is read, in XLA's syntax:
// "rt0: indices; (d0, d1) -> (d0, 0)". Ranges and other run-time variables that
// the place depends on are listed as in a map.
func (m Map) RuntimeText() []string {
	n := m.naming()
	out := make([]string, 0, len(m.Runtime))
	for k, e := range m.Runtime {
		v, ok := e.Variable()
		if ok && v.Origin != nil {
			origin := m.originText(n, e, v.Origin)
			out = append(out, n.runtime[k]+": "+origin)
		}
	}
	return out
}

// originText prints the origin o of e as a map from the variables that it depends
// on to the place.
func (m Map) originText(n *naming, e Expr, o *Origin) string {
	if o.Source.VariableName() != "" {
		return o.Source.String()
	}
	at := make([]string, len(o.At))
	for i, x := range o.At {
		at[i] = n.text(x)
	}
	uses := originVars(e)
	list := func(
		open string, vars []Expr, names []string, close string,
	) string {
		var in []string
		for k, v := range vars {
			if slices.Contains(uses, v) {
				in = append(in, names[k])
			}
		}
		if len(in) == 0 {
			return ""
		}
		return open + strings.Join(in, ", ") + close
	}
	return o.Source.String() + "; (" +
		strings.Join(n.dims, ", ") + ")" +
		list("[", m.Ranges, n.ranges, "]") +
		list("{", m.Runtime, n.runtime, "}") +
		" -> (" + strings.Join(at, ", ") + ")"
}

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
