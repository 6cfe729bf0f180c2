package gpu

import (
	"github.com/tilewright/tilewright/symtile/index"
)

// A swizzle says how the rows of a tile in shared memory are permuted, so that
// what threads read at once, a unit of each of some neighbouring rows, lies in
// different banks although rows are not further apart than they are long. Unit u
// of row r is kept at unit u xor (r/span mod group) of its row.
//
// The units of a line of 32 banks are lineBytes/unit = L. Rows of n units, n =
// group·odd, begin at multiples of group in a line, and L/group = span of them
// at different ones; the xor, of the bits below group, tells the spans of L rows
// apart. So L neighbouring rows have each unit in L different places of a line.
type swizzle struct {
	unit  int64 // bytes
	group int64 // a power of two; 1: rows are as they are
	span  int64 // rows that are permuted alike
}

// lineBytes is what all banks of shared memory hold once.
const lineBytes = 32 * 4

// newSwizzle is the swizzle for units of so many bytes, a power of two, in rows
// of whole units.
func newSwizzle(unit, row int64) swizzle {
	s := swizzle{unit: unit, group: 1}
	line, n := lineBytes/unit, row/unit
	for s.group < line && n%(2*s.group) == 0 {
		s.group *= 2
	}
	s.span = line / s.group
	return s
}

// swizzled is where element col of a row is in it, in elements of the size.
func (e *emitter) swizzled(s swizzle, row, col index.Expr, size int64) index.Expr {
	if s.group == 1 {
		return col
	}
	w := s.unit / size
	unit := e.xor(
		col.Div(w).Mod(s.group),
		row.Div(s.span).Mod(s.group),
		s.group,
	)
	return col.Div(w * s.group).Scale(
		w * s.group,
	).Add(unit.Scale(w)).Add(col.Mod(w))
}

// A pair is what a variable is the exclusive or of.
type pair struct{ x, y index.Expr }

// xor is the exclusive or of two expressions from 0 to group−1, group a power of
// two: a variable of its own, computed where it is asked for.
func (e *emitter) xor(x, y index.Expr, group int64) index.Expr {
	a, knownX := x.Value()
	b, knownY := y.Value()
	switch {
	case knownX && knownY:
		return e.ring.Const(a ^ b)
	case knownX && a == 0:
		return y
	case knownY && b == 0:
		return x
	}
	key := pair{x, y}
	v, met := e.pairs[key]
	if !met {
		name := "swizzled" + string(integer(int64(len(e.pairs))))
		v = e.ring.Var(index.Variable{
			Name: name,
			Lo:   0,
			Hi:   group - 1,
			Role: index.RoleThread,
		})
		e.pairs[key], e.xors[v] = v, key
	}
	return v
}
