package symtile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// An Origin says where the value of a run-time variable comes from: the element
// At of Instr's output, clamped to Clamp. At is over the dimensions of the map
// that has the variable; Compose rewrites it, so that a variable never loses
// its origin. Where the value is outside the variable's range the map has no
// point.
type Origin struct {
	Instr *hlo.Instr
	At    []Expr
	Clamp Interval // as HLO defines it, e.g. [0, n − slice]; the zero Interval clamps nothing
}

// Origin returns the one origin of r with these fields and no clamp, so that
// run-time variables that read the same element are the same variable.
func (r *Ring) Origin(in *hlo.Instr, at []Expr) *Origin { return r.clamped(in, at, Interval{}) }

func (r *Ring) clamped(in *hlo.Instr, at []Expr, clamp Interval) *Origin {
	return r.origins[r.originIndex(in, at, clamp)]
}

func (r *Ring) originIndex(in *hlo.Instr, at []Expr, clamp Interval) int {
	for k, o := range r.origins {
		if o.Instr == in && o.Clamp == clamp && slices.Equal(o.At, at) {
			return k
		}
	}
	r.origins = append(r.origins, &Origin{in, slices.Clone(at), clamp})
	return len(r.origins) - 1
}

// runtime is the run-time variable in [lo, hi] that is element at of in,
// clamped. Its name follows from its origin: what reads the same is the same.
func (r *Ring) runtime(in *hlo.Instr, at []Expr, clamp Interval, lo, hi int64) Expr {
	k := r.originIndex(in, at, clamp)
	return r.Var(Variable{Name: "rt" + strconv.Itoa(k), Lo: lo, Hi: hi, Role: RoleRuntime, Origin: r.origins[k]})
}

// at is o with its element rewritten.
func (o *Origin) at(r *Ring, at []Expr) Variable {
	k := r.originIndex(o.Instr, at, o.Clamp)
	return Variable{Name: "rt" + strconv.Itoa(k), Role: RoleRuntime, Origin: r.origins[k]}
}

// RuntimeText says where each run-time variable of m is read, in XLA's syntax:
// "rt0: indices; (d0, d1) -> (d0, 0)".
func (m Map) RuntimeText() []string {
	n := m.naming()
	out := make([]string, 0, len(m.Runtime))
	for k, e := range m.Runtime {
		v, ok := e.Variable()
		if !ok || v.Origin == nil {
			continue
		}
		at := make([]string, len(v.Origin.At))
		for i, x := range v.Origin.At {
			at[i] = n.text(x)
		}
		out = append(out, n.runtime[k]+": "+v.Origin.Instr.Name+"; ("+strings.Join(n.dims, ", ")+") -> ("+strings.Join(at, ", ")+")")
	}
	return out
}
