package coalesce

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tilewright/tilewright/symtile/index"
)

// A signature tells blocks of threads apart by as little as decides what they
// touch: the offset at which they start, modulo period, and for each bound of
// the masks that does not hold everywhere in the block, the contribution of the
// block to it.
//
// That is enough where an expression is a part that blocks decide plus a part
// without them. Where the layout's tiles are not whole numbers of blocks, this
// holds only for every steps[d]-th block of dimension d: block = steps·quotient
// + remainder, and the remainder tells blocks apart too.
type signature struct {
	// period is the bytes modulo which offsets are compared.
	period int64
	steps  []int64
	// quotients and remainders are the variables that replace each block
	// variable.
	quotients, remainders []index.Expr
	// code computes what blocks decide of the offset, then of each bound.
	code *index.Evaluator
	// holds are the intervals of that in which a bound holds everywhere in the
	// block.
	holds []index.Interval
	// vals, out and buf are the buffers of the evaluation.
	vals     []int64
	out, buf []int64
}

// signature looks for the smallest steps that suffice; without any, every block
// is a class of its own.
func (x *Access) signature(period int64) (*signature, error) {
	repeats := []int64{1, 1, 1}
	for _, size := range x.tileSizes() {
		repeats[1] = index.LCM(
			repeats[1], min(size, maxGrid),
		)
		repeats[2] = min(
			repeats[2]*min(size, maxGrid), maxGrid,
		)
	}
	for _, repeat := range slices.Compact(repeats) {
		s := x.newSignature(period, repeat)
		parts, ok := s.parts(x)
		if !ok {
			continue
		}
		var err error
		s.code, err = index.Compile(
			append(slices.Clone(s.quotients), s.remainders...),
			parts,
		)
		if err != nil {
			return nil, err
		}
		s.out = make([]int64, len(parts))
		s.buf = make([]int64, s.code.ScratchLen())
		return s, nil
	}
	return &signature{}, nil
}

// tileSizes are those of all tiles of the layout; a dimension that a tile
// combines with the next, written *, has none.
func (x *Access) tileSizes() (sizes []int64) {
	if x.Layout == nil {
		return nil
	}
	for _, size := range slices.Concat(x.Layout.Shape.Layout.Tiles...) {
		if size > 0 {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// newSignature divides blocks so that steps of them are whole multiples of
// repeat along each dimension.
func (x *Access) newSignature(period, repeat int64) *signature {
	s := &signature{
		period: period,
		vals:   make([]int64, 2*len(x.Blocks)),
	}
	r := x.Element.Ring()
	for d, b := range x.Blocks {
		tile := x.Assignment.Tile[d]
		step := index.LCM(tile, repeat) / tile
		s.steps = append(s.steps, step)
		hi := b.Range().Hi
		s.quotients = append(
			s.quotients,
			r.Var(index.Variable{
				Name: fmt.Sprint("whole", d),
				Hi:   hi / step,
				Role: index.RoleBlock,
			}),
		)
		s.remainders = append(
			s.remainders,
			r.Var(index.Variable{
				Name: fmt.Sprint("rest", d),
				Hi:   min(hi, step-1),
				Role: index.RoleBlock,
			}),
		)
	}
	return s
}

// parts are what blocks decide of the offset and of each bound; ok reports that
// the quotients occur nowhere else.
func (s *signature) parts(x *Access) (parts []index.Expr, ok bool) {
	divided := map[index.Expr]index.Expr{}
	origin := map[index.Expr]index.Expr{}
	for d, b := range x.Blocks {
		if _, fixed := b.Value(); !fixed {
			divided[b] = s.quotients[d].Scale(
				s.steps[d],
			).Add(s.remainders[d])
		}
	}
	for _, v := range variables([]index.Expr{
		x.Warp, x.Lane, x.Loop, x.Element,
	}) {
		origin[v] = v.Ring().Const(v.Range().Lo)
	}
	ok = true
	enter := func(e index.Expr) index.Interval {
		e = e.Subst(divided)
		f := e.Subst(origin)
		left := e.Sub(f)
		parts = append(parts, f)
		ok = ok &&
			!slices.ContainsFunc(left.Vars(), func(v index.Expr) bool {
				return slices.Contains(s.quotients, v)
			})
		return left.Range()
	}
	enter(x.Offset.Results[0])
	for _, clause := range x.Offset.Where {
		for _, b := range clause {
			left := enter(b.Expr)
			s.holds = append(s.holds, index.Interval{
				Lo: b.In.Lo - left.Lo,
				Hi: b.In.Hi - left.Hi,
			})
		}
	}
	return parts, ok
}

// of is the key of a block's class.
func (s *signature) of(block []int64) (key []byte) {
	if s.code == nil {
		for _, b := range block {
			key = binary.AppendVarint(key, b)
		}
		return key
	}
	for d, b := range block {
		remainder := b % s.steps[d]
		s.vals[d] = b / s.steps[d]
		s.vals[len(block)+d] = remainder
		key = binary.AppendVarint(key, remainder)
	}
	s.code.Eval(s.vals, s.out, s.buf)
	key = binary.AppendVarint(key, s.out[0]%s.period)
	for i, v := range s.out[1:] {
		if s.holds[i].Contains(v) {
			key = append(key, 0)
			continue
		}
		key = binary.AppendVarint(append(key, 1), v)
	}
	return key
}
