package mask

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Linear forms of an index, and how operations that move elements change them. A form is
// that of the numbers that the program computes, so it must not wrap around in their type.

// A form is the number Σ factors[d]·x[d] + constant at an index x.
type form struct {
	factors  []int64
	constant int64
}

// plus is f + k·g.
func (f form) plus(g form, k int64) form {
	sum := form{
		slices.Clone(f.factors),
		f.constant + k*g.constant,
	}
	for d := range sum.factors {
		sum.factors[d] += k * g.factors[d]
	}
	return sum
}

// limit bounds the numbers of forms, far from where they wrap around.
const limit = 1 << 40

// fits reports whether a type has every value that a form has in a shape.
func (f form) fits(s hlo.Shape) bool {
	lo, hi := f.constant, f.constant
	// The extremes are at corners.
	for d, k := range f.factors {
		last := k * (s.Dims[d] - 1)
		lo += min(0, last)
		hi += max(0, last)
		if abs(k) > limit || abs(last) > limit {
			return false
		}
	}
	// What is beyond the limit could wrap around here.
	if abs(lo) > limit || abs(hi) > limit {
		return false
	}
	t := s.DType
	switch {
	case t.IsFloat():
		// All integers of so many bits are exact.
		most := float64(max(abs(lo), abs(hi)))
		return most <= math.Ldexp(
			1, t.FractionBits(),
		)
	case t.IsUnsigned():
		end := math.Ldexp(1, t.Bits())
		return lo >= 0 && float64(hi) < end
	}
	half := math.Ldexp(1, t.Bits()-1)
	return t.IsSigned() &&
		-half <= float64(lo) &&
		float64(hi) < half
}

func abs(x int64) int64 { return max(x, -x) }

// linear is the form of an op whose elements follow from their index.
func (f finder) linear(n int) (form, bool) {
	op := &f.p.Ops[n]
	if f.met(n) {
		return form{}, false
	}
	v, ok := f.unchecked(op)
	s := op.Instr.Shape
	ok = ok &&
		len(v.factors) == len(s.Dims) &&
		v.fits(s)
	return v, ok
}

// unchecked is linear without the check of the type.
func (f finder) unchecked(op *symtile.Op) (form, bool) {
	none := form{factors: make([]int64, len(op.Instr.Shape.Dims))}
	switch op.Code {
	case hlo.OpIota:
		none.factors[op.Instr.Attrs.IotaDim] = 1
		return none, true
	case hlo.OpConstant:
		v, ok := uniform(op.Instr.Literal)
		none.constant = int64(v)
		ok = ok && math.Abs(v) < limit &&
			v == math.Trunc(v)
		return none, ok
	case hlo.OpConvert:
		return f.linear(op.Args[0])
	case hlo.OpAdd, hlo.OpSubtract:
		sign := int64(1)
		if op.Code == hlo.OpSubtract {
			sign = -1
		}
		x, okX := f.linear(op.Args[0])
		y, okY := f.linear(op.Args[1])
		if !okX || !okY {
			return none, false
		}
		return x.plus(y, sign), true
	case hlo.OpNegate:
		x, ok := f.linear(op.Args[0])
		if !ok {
			return none, false
		}
		return none.plus(x, -1), true
	}
	if len(op.Args) == 0 {
		return none, false
	}
	move, ok := movement(f.p, op)
	if !ok {
		return none, false
	}
	x, ok := f.linear(op.Args[0])
	if !ok {
		return none, false
	}
	return move(x)
}

// movement is the function from forms of the argument of an op that only moves elements to
// those of its result. It reports whether a form is linear there.
func movement(p *symtile.Program, op *symtile.Op) (move func(form) (form, bool), ok bool) {
	to := op.Instr.Shape.Dims
	from := p.Ops[op.Args[0]].Instr.Shape.Dims
	a := op.Instr.Attrs
	next := func(f form) form {
		return form{
			make([]int64, len(to)), f.constant,
		}
	}
	switch op.Code {
	case hlo.OpBroadcast:
		return func(f form) (form, bool) {
			r := next(f)
			for k, d := range a.Dimensions {
				r.factors[d] += f.factors[k]
			}
			return r, true
		}, true
	case hlo.OpTranspose:
		return func(f form) (form, bool) {
			r := next(f)
			for k, d := range op.Perm {
				r.factors[k] = f.factors[d]
			}
			return r, true
		}, len(op.Perm) == len(from)
	case hlo.OpReshape:
		return func(f form) (form, bool) {
			return reshaped(f, from, to)
		}, true
	case hlo.OpCopy, hlo.OpOptimizationBarrier:
		return func(f form) (form, bool) { return f, true }, true
	case hlo.OpSlice:
		return func(f form) (form, bool) {
			r := next(f)
			for d, s := range a.Slice {
				r.factors[d] = f.factors[d] * s.Stride
				r.constant += f.factors[d] * s.Start
			}
			return r, true
		}, true
	}
	return nil, false
}

// reshaped is a form after a reshape that splits dimensions, or merges those that it counts
// through in their order.
func reshaped(f form, from, to []int64) (form, bool) {
	r := form{make([]int64, len(to)), f.constant}
	for i, j := 0, 0; i < len(from); {
		// Groups of dimensions have equal products.
		i0, j0 := i, j
		m, n := from[i], int64(1)
		for i++; m != n; {
			switch {
			case m > n && j < len(to):
				n *= to[j]
				j++
			case m < n && i < len(from):
				m *= from[i]
				i++
			default:
				return r, false
			}
		}
		each, ok := strided(f.factors[i0:i], from[i0:i])
		if !ok {
			return r, false
		}
		// The group's number in row-major order is that of the result's.
		for k := j0; k < j; k++ {
			n /= to[k]
			r.factors[k] = each * n
		}
	}
	return r, true
}

// strided is by what factors grow when the row-major number of an index does by one.
func strided(factors, dims []int64) (each int64, ok bool) {
	stride, known := int64(1), false
	for k := len(dims) - 1; k >= 0; k-- {
		// Dimensions of one element have the index 0.
		if dims[k] > 1 && !known {
			each, known = factors[k], true
		}
		if dims[k] > 1 && factors[k] != each*stride {
			return 0, false
		}
		stride *= dims[k]
	}
	return each, true
}
