package layout

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// maxParts bounds the parts into which a domain is divided.
const maxParts = 256

// Peel divides the domain of m into boxes that together have exactly its
// points, each once: loop peeling, for all dimensions. Constraints that hold
// everywhere in a box are gone from it, so that the interior needs no mask;
// those that remain in Where are the mask of that part. Parts without a mask
// come first.
//
// A constraint lo ≤ k·v + rest ≤ hi holds for every value of rest where v is at
// least ⌈(lo − min rest)/k⌉ and at most ⌊(hi − max rest)/k⌋; there the range of
// v is cut. Only variables of the roles given are cut; any, when none is given.
func Peel(m index.Map, roles ...index.Role) []index.Map {
	var unmasked, masked []index.Map
	pending := []index.Map{m.Simplify()}
	for len(pending) > 0 {
		part := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if part.State != index.StateKnown {
			continue
		}
		c, ok := bestCut(part, roles)
		switch {
		case ok &&
			len(pending)+len(unmasked)+len(masked)+3 <= maxParts:
			pending = append(pending, c.pieces(part)...)
		case part.Where.True():
			unmasked = append(unmasked, part)
		default:
			masked = append(masked, tighten(part))
		}
	}
	return append(unmasked, masked...)
}

// tighten cuts each bound to the range of its expression.
func tighten(m index.Map) index.Map {
	m.Where = slices.Clone(m.Where)
	for i, x := range m.Where {
		m.Where[i] = slices.Clone(x)
		for j, b := range x {
			m.Where[i][j].In = b.In.Meet(b.Expr.Range())
		}
	}
	return m
}

// A cut is a range of variable v, inside, in which a clause holds for every
// point.
type cut struct {
	v index.Expr
	// clause is the position of the clause in Where.
	clause int
	inside index.Interval
	// share is the part of v's values that are inside.
	share float64
}

// bestCut is the cut that frees the largest share of a variable's values from a
// constraint; the first such variable.
func bestCut(m index.Map, roles []index.Role) (best cut, ok bool) {
	for i, clause := range m.Where {
		if len(clause) != 1 {
			continue
		}
		for _, e := range m.Vars() {
			v, isVar := e.Variable()
			if !isVar ||
				len(roles) > 0 && !slices.Contains(roles, v.Role) {
				continue
			}
			inside, cuts := insideOf(clause[0], e)
			share := float64(inside.Len()) /
				float64(e.Range().Len())
			if cuts && share > best.share {
				best = cut{e, i, inside, share}
				ok = true
			}
		}
	}
	return best, ok
}

// insideOf is the part of v's range in which b holds whatever the other
// variables are; false where v is not a term of its own or the part is empty.
func insideOf(b index.Bound, v index.Expr) (index.Interval, bool) {
	k, rest, ok := termOf(b.Expr, v)
	others := rest.Range()
	if !ok || k == 0 || !others.Bounded() ||
		!v.Range().Bounded() {
		return index.Interval{}, false
	}
	inBounds := b.In.Meet(b.Expr.Range()) // bounded now
	inBounds = index.Interval{
		Lo: inBounds.Lo - others.Lo,
		Hi: inBounds.Hi - others.Hi,
	}
	if k < 0 {
		inBounds, k = inBounds.Neg(), -k
	}
	in := index.Interval{
		Lo: inBounds.AddConst(k - 1).Div(k).Lo,
		Hi: inBounds.Div(k).Hi,
	}.Meet(v.Range())
	return in, !in.Empty()
}

// termOf writes e as k·v + rest without v, where it has that form.
func termOf(e, v index.Expr) (k int64, rest index.Expr, ok bool) {
	r := e.Ring()
	if !slices.Contains(e.Vars(), v) {
		return 0, e, true
	}
	lo := v.Range().Lo
	step := e.Subst(map[index.Expr]index.Expr{
		v: r.Const(lo + 1),
	}).Sub(
		e.Subst(map[index.Expr]index.Expr{v: r.Const(lo)}),
	)
	if k, ok = step.Value(); !ok {
		return 0, e, false
	}
	rest = e.Sub(v.Scale(k))
	return k, rest, !slices.Contains(rest.Vars(), v)
}

// pieces are m below the inside of the cut, above it, and inside without the
// clause; those that have points.
func (c cut) pieces(m index.Map) (out []index.Map) {
	all := c.v.Range()
	free := m
	free.Where = slices.Delete(
		slices.Clone(m.Where), c.clause, c.clause+1,
	)
	for _, p := range []struct {
		m  index.Map
		in index.Interval
	}{
		{m, index.Interval{Lo: c.inside.Hi + 1, Hi: all.Hi}},
		{m, index.Interval{Lo: all.Lo, Hi: c.inside.Lo - 1}},
		{free, c.inside},
	} {
		if !p.in.Empty() {
			out = append(
				out,
				narrow(p.m, c.v, p.in).Simplify(),
			)
		}
	}
	return out
}

// narrow is m with the range of variable e being in.
func narrow(m index.Map, e index.Expr, in index.Interval) index.Map {
	v, _ := e.Variable()
	v.Lo = in.Lo
	v.Hi = in.Hi
	to := e.Ring().Var(v)
	out := m.Subst(map[index.Expr]index.Expr{e: to})
	for _, list := range []*[]index.Expr{
		&out.Dims, &out.Ranges, &out.Runtime,
	} {
		*list = slices.Clone(*list)
		for i := range *list {
			if (*list)[i] == e {
				(*list)[i] = to
			}
		}
	}
	return out
}
