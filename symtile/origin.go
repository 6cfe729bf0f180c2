package symtile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An Origin says where the value of a run-time variable comes from: the element
// At of Instr's output, clamped to Clamp. At is over the other variables of the
// map that has the variable, so that its value may differ from point to point;
// whatever replaces those rewrites it, and a variable never loses its origin. Where the value is outside the variable's range the map has no
// point; Simplify does not narrow that range.
type Origin struct {
	Instr *hlo.Instr
	At    []Expr
	Clamp Interval    // as HLO defines it, e.g. [0, n − slice]; the zero Interval clamps nothing
	Of    ReplicaRole // not an element: which replica, for the collective Instr

	// Within are the fusions and calls whose computation Instr is in, innermost
	// first; none for an instruction of the computation the map is of.
	Within []*hlo.Instr
}

// ReplicaRole says which replica of a collective a run-time variable is.
type ReplicaRole uint8

const (
	NoReplica ReplicaRole = iota
	Asking                // the position, in its replica group, of the replica that asks
	Source                // the replica id a collective-permute sends from to the one that asks
	Target                // the replica id a collective-permute sends to from the one that asks
)

func (o ReplicaRole) String() string { return [...]string{"", "replica", "source", "target"}[o] }

// Origin returns the one origin of r with these fields and no clamp, so that
// run-time variables that read the same element are the same variable.
func (r *Ring) Origin(in *hlo.Instr, at []Expr) *Origin {
	return r.origins[r.originIndex(Origin{Instr: in, At: at})]
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
	o.At, o.Within = slices.Clone(o.At), slices.Clone(o.Within)
	r.origins = append(r.origins, &o)
	return len(r.origins) - 1
}

// key tells origins of one ring apart.
func (o *Origin) key() string {
	b := fmt.Appendf(nil, "%p %d %d %d", o.Instr, o.Clamp.Lo, o.Clamp.Hi, o.Of)
	for _, e := range o.At {
		b = fmt.Appendf(b, " %d", e.id)
	}
	for _, in := range o.Within {
		b = fmt.Appendf(b, " %p", in)
	}
	return string(b)
}

// runtime is the run-time variable in [lo, hi] that comes from o. Its name
// follows from its origin: what reads the same is the same.
func (r *Ring) runtime(o Origin, lo, hi int64) Expr {
	k := r.originIndex(o)
	name := "rt" + strconv.Itoa(k)
	if o.Of != NoReplica {
		name = o.Of.String()
	}
	return r.Var(Variable{Name: name, Lo: lo, Hi: hi, Role: RoleRuntime, Origin: r.origins[k]})
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
	if _, given := w.s.With[e]; !ok || v.Origin == nil || given || w.done[e] {
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
	if x := e.r.runtime(to, v.Lo, v.Hi); x != e {
		w.s.With[e] = x
	}
}

// applyRuntime returns the run-time variables as With makes them.
func (s *Substitution) applyRuntime(vars []Expr) []Expr { return (&rewriting{s: s}).all(vars) }

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
		if v, ok := e.Variable(); ok && v.Origin != nil {
			out = append(out, n.runtime[k]+": "+m.originText(n, e, v.Origin))
		}
	}
	return out
}

func (m Map) originText(n *naming, e Expr, o *Origin) string {
	if o.Of != NoReplica {
		return "a replica of " + o.path()
	}
	at := make([]string, len(o.At))
	for i, x := range o.At {
		at[i] = n.text(x)
	}
	uses := originVars(e)
	list := func(open string, vars []Expr, names []string, close string) string {
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
	return o.path() + "; (" + strings.Join(n.dims, ", ") + ")" + list("[", m.Ranges, n.ranges, "]") +
		list("{", m.Runtime, n.runtime, "}") + " -> (" + strings.Join(at, ", ") + ")"
}

// path names the instruction, after what it is within.
func (o *Origin) path() string {
	name := o.Instr.Name
	for _, in := range o.Within {
		name = in.Name + "/" + name
	}
	return name
}
