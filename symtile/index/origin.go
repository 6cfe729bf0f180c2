package index

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An Origin says where the value of a run-time variable comes from: the element
// At of the array that Source is, clamped to Clamp. At is over the other variables of the
// map that has the variable, so that its value may differ from point to point;
// whatever replaces those rewrites it, and a variable never loses its origin. Where the value is outside the variable's range the map has no
// point; Simplify does not narrow that range.
type Origin struct {
	Source Source
	At     []Expr
	Clamp  Interval // as HLO defines it, e.g. [0, n − slice]; the zero Interval clamps nothing
}

// A Source is what the value of a run-time variable is read from: an array of a
// program, or another property of its execution. The package tells sources
// apart and prints them; what a source refers to is known to who made it.
type Source interface {
	// AppendKey appends bytes that are equal for equal sources and differ for others.
	AppendKey(b []byte) []byte

	// VariableName is the name of the run-time variable of a source that is not
	// an array and has one value, and "" for an array, whose variables are
	// numbered: rt0, rt1, ….
	VariableName() string

	// String names the source in RuntimeText.
	String() string
}

func (r *Ring) originIndex(o Origin) int {
	key := o.key()
	if k, ok := r.originAt[key]; ok {
		return k
	}
	if r.originAt == nil {
		r.originAt = map[string]int{}
	}
	r.originAt[key] = len(r.origins)
	o.At = slices.Clone(o.At)
	r.origins = append(r.origins, &o)
	return len(r.origins) - 1
}

// key tells origins of one ring apart.
func (o *Origin) key() string {
	b := o.Source.AppendKey(nil)
	b = fmt.Appendf(
		b, " %d %d", o.Clamp.Lo, o.Clamp.Hi,
	)
	for _, e := range o.At {
		b = fmt.Appendf(b, " %d", e.id)
	}
	return string(b)
}

// RuntimeVar is the run-time variable in [lo, hi] that comes from o. Its name
// follows from its origin: what reads the same is the same.
func (r *Ring) RuntimeVar(o Origin, lo, hi int64) Expr {
	k := r.originIndex(o)
	name := o.Source.VariableName()
	if name == "" {
		name = "rt" + strconv.Itoa(k)
	}
	return r.Var(Variable{
		Name:   name,
		Lo:     lo,
		Hi:     hi,
		Role:   RoleRuntime,
		Origin: r.origins[k],
	})
}

// Origins lists where the run-time variables of m are read, in order; nil for
// those that have no origin.
func (m Map) Origins() []*Origin {
	var out []*Origin
	for _, e := range m.Runtime {
		v, _ := e.Variable()
		out = append(out, v.Origin)
	}
	return out
}

// RewriteOrigins changes the origins of run-time variables.
func (m Map) RewriteOrigins(to func(Origin) Origin) Map {
	s := Substitution{With: map[Expr]Expr{}}
	m.Runtime = unite(
		nil,
		(&rewriting{s: &s, origin: to}).all(m.Runtime),
	)
	m.Results = s.ApplyAll(m.Results)
	m.Where = s.ApplyTo(m.Where)
	m.Replica = s.applyReplica(m.Replica)
	return m
}

// A rewriting rewrites the origins of run-time variables for a substitution and
// enters those that change into it.
type rewriting struct {
	s      *Substitution
	origin func(Origin) Origin // what else changes; nil: nothing
	done   map[Expr]bool
}

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

// enter rewrites the origin of e after those of the run-time variables that it
// is at.
func (w *rewriting) enter(e Expr) {
	v, ok := e.Variable()
	_, given := w.s.With[e]
	if !ok || v.Origin == nil || given || w.done[e] {
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
	if x := e.r.RuntimeVar(to, v.Lo, v.Hi); x != e {
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

// RuntimeText says where each run-time variable of m is read, in XLA's syntax:
// "rt0: indices; (d0, d1) -> (d0, 0)". Ranges and other run-time variables that
// the place depends on are listed as in a map.
func (m Map) RuntimeText() []string {
	n := m.naming()
	out := make([]string, 0, len(m.Runtime))
	for k, e := range m.Runtime {
		v, ok := e.Variable()
		if ok && v.Origin != nil {
			out = append(
				out,
				n.runtime[k]+": "+m.originText(n, e, v.Origin),
			)
		}
	}
	return out
}

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
