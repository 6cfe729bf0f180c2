package index

import (
	"fmt"
	"slices"
	"strconv"
)

// Role says what a variable stands for; printing and backends use it.
type Role uint8

const (
	RoleDim      Role = iota // d0
	RoleRange                // s0 of an indexing map
	RoleRuntime              // rt0
	RoleTileID               // t0
	RoleTileSize             // s0 of a tile space
	RoleThread
	RoleBlock
	RoleElement
	RoleLoop
)

// A Variable is an integer in [Lo, Hi]. Variables with equal fields are the
// same variable.
type Variable struct {
	Name   string
	Lo, Hi int64
	Role   Role
	Origin *Origin // where a run-time variable is read; nil for others
}

// Var returns the expression that is v; a constant when Lo == Hi. A variable
// without values (Lo > Hi) is an error of the ring.
func (r *Ring) Var(v Variable) Expr {
	return r.wrap(r.variable(v))
}

func (r *Ring) variable(v Variable) lin {
	if v.Lo == v.Hi {
		return constForm(v.Lo)
	}
	if v.Lo > v.Hi {
		return r.fail(
			"variable %s has no values: [%d, %d]", v.Name, v.Lo, v.Hi,
		)
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

func (r *Ring) isVariable(x lin) (Variable, bool) {
	if len(x.t) != 1 || x.c != 0 ||
		x.t[0].k != 1 ||
		r.atoms[x.t[0].a].kind != atomVar {
		return Variable{}, false
	}
	return r.vars[r.atoms[x.t[0].a].y], true
}

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
