package index

import (
	"fmt"
	"slices"
	"strconv"
)

// Role says what a variable stands for. Printing orders variables by role, and
// backends tell by it what is computed where.
type Role uint8

// The roles of variables, in the order in which they are printed.
const (
	RoleDim      Role = iota // a dimension of an indexing map, d0
	RoleRange                // a range of an indexing map, s0
	RoleRuntime              // a value known at run time, rt0
	RoleTileID               // the number of a tile along a dimension, t0
	RoleTileSize             // the size of a tile along a dimension, s0
	RoleThread               // the thread, or a part of its number
	RoleBlock                // the block of threads, or a part of its number
	RoleElement              // an element of what a thread holds
	RoleLoop                 // the trip of a loop
)

// A Variable is an integer in [Lo, Hi]. Variables with equal fields are the
// same variable: narrowing the range of one makes another.
type Variable struct {
	Name   string
	Lo, Hi int64 // both inclusive
	Role   Role
	Origin *Origin // where a run-time variable is read; nil for others
}

// Var returns the expression that is v; a constant when Lo == Hi. A variable
// without values (Lo > Hi) is an error of the ring.
func (r *Ring) Var(v Variable) Expr {
	return r.wrap(r.variable(v))
}

// variable is the form of v.
func (r *Ring) variable(v Variable) lin {
	if v.Lo == v.Hi {
		return constForm(v.Lo)
	}
	if v.Lo > v.Hi {
		const format = "variable %s has no values: [%d, %d]"
		return r.fail(format, v.Name, v.Lo, v.Hi)
	}
	id, had := r.atom(atomVar, r.varID(v), -1, 0)
	if a := &r.atoms[id]; !had {
		a.nondecreasing = true
		a.in = Interval{v.Lo, v.Hi}
	}
	return r.atomForm(id)
}

// Variable returns the variable e is, when it is just one.
func (e Expr) Variable() (Variable, bool) {
	defer e.lock().Unlock()
	return e.r.isVariable(e.lin())
}

// isVariable returns the variable x is, when it is just one.
func (r *Ring) isVariable(x lin) (Variable, bool) {
	if len(x.t) != 1 || x.c != 0 ||
		x.t[0].k != 1 {
		return Variable{}, false
	}
	a := &r.atoms[x.t[0].a]
	if a.kind != atomVar {
		return Variable{}, false
	}
	return r.vars[a.y], true
}

// An Origin says where the value of a run-time variable comes from: the element
// At of the array that Source is, clamped to Clamp.
//
// At is over the other variables of the map that has the variable, so that the
// value may differ from point to point; a substitution into the map rewrites At
// (Map.Subst, Compose), and a variable never loses its origin. Where the value
// is outside the variable's range the map has no point; Simplify does not narrow
// that range, because what is read does not change with what is asked of it.
type Origin struct {
	Source Source
	At     []Expr   // one component for each dimension of the array; none for a scalar
	Clamp  Interval // as HLO defines it, e.g. [0, n − slice]; the zero Interval clamps nothing
}

// A Source is what the value of a run-time variable is read from: an array of a
// program, or another property of its execution. This package only tells sources
// apart and prints them; the package that makes a source knows what it refers to
// and gets it back from Origin.Source.
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

// originIndex numbers o among the origins of r.
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

// key is equal for equal origins of one ring, and for no others: expressions are
// equal iff their ids are.
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
// follows from its origin, so that what reads the same element is the same
// variable, in whichever map it stands.
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
