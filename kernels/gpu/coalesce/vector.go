package coalesce

import (
	"fmt"

	"github.com/tilewright/tilewright/symtile/index"
	"github.com/tilewright/tilewright/symtile/layout"
)

// maxVector is the bytes of the widest load and store.
const maxVector = 16

// A Vector is the number of elements that a thread can touch with one
// instruction.
type Vector struct {
	// Width is a power of two, in elements.
	Width int64
	// Proof is how that was shown: "symbolic", or "exact" by evaluating all
	// accesses.
	Proof string
	// Why is the reason why it is not twice as many.
	Why string
}

// VectorWidth is the largest power of two v that divides the elements of a
// thread, with v elements at most 16 bytes, such that element v·g + j is j
// elements after element v·g, that one is at a multiple of v elements' bytes,
// and masks take all v or none. The buffer is assumed to be aligned to 16
// bytes.
//
// The maps decide where they can: the difference of the offsets has the normal
// form j, the congruence of the first offset shows its alignment, and the
// constraints of element j simplify to those of element 0. Otherwise every
// access is evaluated; a grid too large for that gets the width that was
// proved.
func (x *Access) VectorWidth() Vector {
	best := Vector{Width: 1, Proof: "symbolic"}
	var e *evaluator
	for v := int64(2); ; v *= 2 {
		if best.Why = x.vectorImpossible(v); best.Why != "" {
			return best
		}
		proved, why := x.provesVector(v)
		if gap, ok := x.constantGap(v); ok {
			best.Why = fmt.Sprintf("elements 0 and 1 of a thread are %d bytes apart", gap)
			return best
		}
		if proved {
			best = Vector{Width: v, Proof: "symbolic"}
			continue
		}
		if e == nil {
			var err error
			if e, err = x.evaluator(maxVector); err != nil {
				best.Why = why + "; not evaluated: " + err.Error()
				return best
			}
		}
		if best.Why = e.refutesVector(v); best.Why != "" {
			return best
		}
		best = Vector{Width: v, Proof: "exact"}
	}
}

// vectorImpossible is the reason why there cannot be vectors of v, whatever the
// offsets; "" where there is none.
func (x *Access) vectorImpossible(v int64) string {
	bits := x.bits
	in := x.Element.Range()
	switch n := in.Len(); {
	case n%v != 0 || in.Lo%v != 0:
		return "a thread has " + layout.CountText(n, "element")
	case bits%8 != 0:
		return fmt.Sprintf("an element has %d bits, which are no whole bytes", bits)
	case v*bits/8 > maxVector:
		return fmt.Sprintf("%d elements of %d bytes are more than %d bytes", v, bits/8, maxVector)
	}
	return ""
}

// provesVector proves by the maps alone that v elements move together; else it
// says what is not proved.
func (x *Access) provesVector(v int64) (bool, string) {
	r := x.Element.Ring()
	width := x.bits / 8
	g := x.vectors(v)
	j := r.Var(index.Variable{
		Name: "element",
		Hi:   v - 1,
		Role: index.RoleElement,
	})
	at := func(j index.Expr) index.Map {
		return x.Offset.Subst(map[index.Expr]index.Expr{
			x.Element: g.Scale(v).Add(j),
		})
	}
	first := at(r.Const(0))
	each := at(j)
	if each.Results[0].Sub(first.Results[0]) != j.Scale(width) {
		return false, fmt.Sprintf("not shown: %d elements of a thread lie next to each other", v)
	}
	if m, rest := first.Results[0].Congruence(); m%(v*width) != 0 ||
		rest%(v*width) != 0 {
		return false, fmt.Sprintf("not shown: offsets are multiples of %d bytes", v*width)
	}
	vars := append(
		variables([]index.Expr{g, j}),
		variables(append(
			append([]index.Expr{}, x.Blocks...),
			x.Warp, x.Lane, x.Loop,
		))...,
	)
	masks := func(m index.Map) string {
		return index.Map{
			Dims:    vars,
			Where:   m.Where,
			Results: []index.Expr{r.Const(0)},
		}.Simplify().String()
	}
	if masks(first) != masks(each) {
		return false, fmt.Sprintf("not shown: masks take %d elements together", v)
	}
	return true, ""
}

// vectors is the variable that numbers the vectors of v elements of a thread.
func (x *Access) vectors(v int64) index.Expr {
	in := x.Element.Range()
	return x.Element.Ring().Var(index.Variable{
		Name: "vector",
		Lo:   in.Lo / v,
		Hi:   in.Hi / v,
		Role: index.RoleElement,
	})
}

// constantGap is the distance in bytes of the first two elements of every
// vector of v, where it is one number and not that of neighbours.
func (x *Access) constantGap(v int64) (int64, bool) {
	g := x.vectors(v).Scale(v)
	at := func(e index.Expr) index.Expr {
		return x.Offset.Results[0].Subst(
			map[index.Expr]index.Expr{x.Element: e},
		)
	}
	n, ok := at(g.AddConst(1)).Sub(at(g)).Value()
	return n, ok && n != x.bits/8
}

// refutesVector evaluates every access and describes the first vector of v that
// one instruction cannot move; "" where there is none.
func (e *evaluator) refutesVector(v int64) string {
	for _, b := range e.classes {
		warps := e.x.Warp.Range()
		for w := warps.Lo; w <= warps.Hi; w++ {
			if why := e.refutesWarp(b.block, w, v); why != "" {
				return fmt.Sprintf("%s, in block %v, warp %d", why, b.block, w)
			}
		}
	}
	return ""
}

// refutesWarp is refutesVector for one warp.
func (e *evaluator) refutesWarp(block []int64, warp, v int64) string {
	width := e.x.bits / 8
	points := e.points(block, warp)
	for i := 0; i < len(points); i += int(v) { // in order of loop, lane, element
		p := points[i]
		where := fmt.Sprintf("lane %d, element %d", p.Lane, p.Element)
		if p.Element%v != 0 || i+int(v) > len(points) {
			return fmt.Sprintf("a mask divides %d elements: %s", v, where)
		}
		if p.Offset%(v*width) != 0 {
			return fmt.Sprintf("byte %d is no multiple of %d: %s", p.Offset, v*width, where)
		}
		for k, q := range points[i : i+int(v)] {
			if q.Lane != p.Lane ||
				q.Loop != p.Loop ||
				q.Element != p.Element+int64(k) {
				return fmt.Sprintf("a mask divides %d elements: %s", v, where)
			}
			if q.Offset != p.Offset+int64(k)*width {
				return fmt.Sprintf(
					"elements %d and %d of a thread are at bytes %d and %d: lane %d",
					p.Element, q.Element, p.Offset,
					q.Offset, p.Lane,
				)
			}
		}
	}
	return ""
}
