package symtile

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// unsignedOf is the unsigned integer of each width of which there is one.
var unsignedOf = map[int]hlo.DType{
	2: hlo.U2, 4: hlo.U4, 8: hlo.U8, 16: hlo.U16, 32: hlo.U32, 64: hlo.U64,
}

// bitcastConvert between types of different width moves bits by shifts: of wide
// elements, those of each narrow one to the right; of narrow elements, each to its place
// in the wide one, where they are joined.
func (r *rewriter) bitcastConvert(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	x := operands[0]
	from, to := unsignedOf[x.Shape.DType.Bits()], unsignedOf[i.Shape.DType.Bits()]
	none := hlo.InvalidDType
	if from == to || from == none || to == none || x.Shape.DType == hlo.Pred {
		return nil
	}
	bits := r.sameBits(x, from)
	if from.Bits() > to.Bits() {
		bits = r.dividedBits(bits, to, i.Shape.Dims)
	} else {
		bits = r.joinedBits(bits, to, i.Shape.Dims)
	}
	return r.renamed(r.sameBits(bits, i.Shape.DType))
}

// typed appends an operation whose element type is not that of its first operand.
func (r *rewriter) typed(
	op hlo.Opcode, t hlo.DType, dims []int64, a hlo.Attrs, operands ...*hlo.Instr,
) *hlo.Instr {
	i := r.add(op, dims, a, operands...)
	i.Shape.DType = t
	return i
}

// sameBits is x as elements of another type of its width.
func (r *rewriter) sameBits(x *hlo.Instr, t hlo.DType) *hlo.Instr {
	if x.Shape.DType == t {
		return x
	}
	return r.typed(hlo.OpBitcastConvert, t, x.Shape.Dims, hlo.Attrs{}, x)
}

// number is an array of a type, each of whose elements is v.
func (r *rewriter) number(v float64, t hlo.DType, dims []int64) *hlo.Instr {
	c := r.zero(t)
	if t.IsFloat() {
		c.Literal.Floats[0] = v
	} else {
		c.Literal.Ints[0] = int64(v)
	}
	if len(dims) == 0 {
		return c
	}
	return r.add(hlo.OpBroadcast, dims, hlo.Attrs{Dimensions: []int64{}}, c)
}

// dividedBits is each unsigned element of x as several of type t, along a new last
// dimension: shifted by 0, 1, … widths of t and cut off.
func (r *rewriter) dividedBits(x *hlo.Instr, t hlo.DType, dims []int64) *hlo.Instr {
	wide := x.Shape.DType
	last := len(dims) - 1
	all := r.add(hlo.OpBroadcast, dims, hlo.Attrs{Dimensions: ascending(last)}, x)
	place := r.typed(hlo.OpIota, wide, dims, hlo.Attrs{IotaDim: int64(last)})
	by := r.add(
		hlo.OpMultiply, dims, hlo.Attrs{},
		place, r.number(float64(t.Bits()), wide, dims),
	)
	return r.typed(
		hlo.OpConvert, t, dims, hlo.Attrs{},
		r.add(hlo.OpShiftRightLogical, dims, hlo.Attrs{}, all, by),
	)
}

// joinedBits is the unsigned elements of x along its last dimension as one of type t,
// the first one lowest.
func (r *rewriter) joinedBits(x *hlo.Instr, t hlo.DType, dims []int64) *hlo.Instr {
	width := x.Shape.DType.Bits()
	last := x.Shape.Rank() - 1
	var all *hlo.Instr
	for k := range x.Shape.Dims[last] {
		ranges := make([]hlo.SliceDim, last+1)
		for d, n := range x.Shape.Dims {
			ranges[d] = hlo.SliceDim{Limit: n, Stride: 1}
		}
		ranges[last] = hlo.SliceDim{Start: k, Limit: k + 1, Stride: 1}
		extents := append(slices.Clone(dims), 1)
		one := r.add(hlo.OpSlice, extents, hlo.Attrs{Slice: ranges}, x)
		one = r.converted(r.add(hlo.OpReshape, dims, hlo.Attrs{}, one), t)
		if k == 0 {
			all = one
			continue
		}
		by := r.number(float64(int(k)*width), t, dims)
		one = r.add(hlo.OpShiftLeft, dims, hlo.Attrs{}, one, by)
		all = r.add(hlo.OpOr, dims, hlo.Attrs{}, all, one)
	}
	return all
}

// imaginary is the imaginary part of a real number. Those of complex ones are gone.
func (r *rewriter) imaginary(i *hlo.Instr, _ []*hlo.Instr) *hlo.Instr {
	return r.renamed(r.number(0, i.Shape.DType, i.Shape.Dims))
}

// stochasticConvert rounds to a signed integer as XLA's StochasticConvertDecomposer
// does: the fraction of the magnitude, as a number of the width of the random bits, is
// compared with them. What it rounds to others is not known.
func (r *rewriter) stochasticConvert(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	x, random := operands[0], operands[1]
	dims, from, to := i.Shape.Dims, x.Shape.DType, i.Shape.DType
	if !to.IsSigned() {
		return nil
	}
	of := func(op hlo.Opcode, x ...*hlo.Instr) *hlo.Instr {
		return r.add(op, dims, hlo.Attrs{}, x...)
	}
	compare := func(direction string, x, y *hlo.Instr) *hlo.Instr {
		return r.typed(hlo.OpCompare, hlo.Pred, dims, hlo.Attrs{Direction: direction}, x, y)
	}
	choose := func(p, x, y *hlo.Instr) *hlo.Instr {
		return r.typed(hlo.OpSelect, x.Shape.DType, dims, hlo.Attrs{}, p, x, y)
	}
	magnitude := of(hlo.OpAbs, x)
	whole := of(hlo.OpFloor, magnitude)
	fraction := of(hlo.OpSubtract, magnitude, whole)
	if from.Bits() < 32 { // 2^16 is not a number of f16
		fraction = r.converted(fraction, hlo.F32)
	}
	scale := math.Ldexp(1, random.Shape.DType.Bits())
	fraction = of(hlo.OpMultiply, fraction, r.number(scale, fraction.Shape.DType, dims))
	up := compare("LT", random, r.converted(fraction, random.Shape.DType))
	v := r.converted(whole, to)
	v = choose(up, of(hlo.OpAdd, v, r.number(1, to, dims)), v)
	v = choose(compare("LT", x, r.number(0, from, dims)), of(hlo.OpNegate, v), v)
	lo, hi := to.IntRange()
	for _, end := range []struct {
		direction string
		v         int64
	}{{"LE", lo}, {"GE", hi}} {
		limit := from.RoundFloat(float64(end.v))
		at := r.zero(to)
		at.Literal.Ints[0] = end.v
		full := r.add(hlo.OpBroadcast, dims, hlo.Attrs{Dimensions: []int64{}}, at)
		v = choose(compare(end.direction, x, r.number(limit, from, dims)), full, v)
	}
	return r.renamed(v)
}
