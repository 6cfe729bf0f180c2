package symtile

import (
	"math"
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// unsignedOf is the unsigned integer of each width of which there is one.
var unsignedOf = map[int]hlo.DType{
	1:  hlo.U1,
	2:  hlo.U2,
	4:  hlo.U4,
	8:  hlo.U8,
	16: hlo.U16,
	32: hlo.U32,
	64: hlo.U64,
}

// bitcastConvert between types of different width moves bits by shifts: of wide
// elements, those of each narrow one to the right; of narrow elements, each to its place
// in the wide one, where they are joined.
func (r *rewriter) bitcastConvert(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	x := operands[0]
	from := unsignedOf[x.Shape.DType.Bits()]
	to := unsignedOf[i.Shape.DType.Bits()]
	if from == to || x.Shape.DType == hlo.Pred {
		return nil
	}
	if from == hlo.InvalidDType || to == hlo.InvalidDType {
		return nil // there is no unsigned integer of the width
	}
	bits := r.sameBits(x, from)
	if from.Bits() > to.Bits() {
		bits = r.dividedBits(bits, to, i.Shape.Dims)
	} else {
		bits = r.joinedBits(bits, to, i.Shape.Dims)
	}
	bits = r.sameBits(bits, i.Shape.DType)
	return r.renamed(bits)
}

// typed appends an operation whose element type is not that of its first operand.
func (r *rewriter) typed(
	op hlo.Opcode,
	t hlo.DType,
	dims []int64,
	a hlo.Attrs,
	operands ...*hlo.Instr,
) *hlo.Instr {
	i := r.add(op, dims, a, operands...)
	i.Shape.DType = t
	return i
}

// plain appends an operation without attributes.
func (r *rewriter) plain(
	op hlo.Opcode,
	dims []int64,
	operands ...*hlo.Instr,
) *hlo.Instr {
	return r.add(op, dims, hlo.Attrs{}, operands...)
}

// everywhere is an array of the extents, each of whose elements is the scalar x.
func (r *rewriter) everywhere(x *hlo.Instr, dims []int64) *hlo.Instr {
	none := hlo.Attrs{Dimensions: []int64{}}
	return r.add(hlo.OpBroadcast, dims, none, x)
}

// sameBits is x as elements of another type of its width.
func (r *rewriter) sameBits(x *hlo.Instr, t hlo.DType) *hlo.Instr {
	if x.Shape.DType == t {
		return x
	}
	bits := r.plain(hlo.OpBitcastConvert, x.Shape.Dims, x)
	bits.Shape.DType = t
	return bits
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
	return r.everywhere(c, dims)
}

// dividedBits is each unsigned element of x as several of type t, along a new last
// dimension: shifted by 0, 1, … widths of t and cut off.
func (r *rewriter) dividedBits(x *hlo.Instr, t hlo.DType, dims []int64) *hlo.Instr {
	wide := x.Shape.DType
	last := len(dims) - 1
	repeated := hlo.Attrs{Dimensions: ascending(last)}
	all := r.add(hlo.OpBroadcast, dims, repeated, x)
	along := hlo.Attrs{IotaDim: int64(last)}
	place := r.typed(hlo.OpIota, wide, dims, along)
	width := r.number(float64(t.Bits()), wide, dims)
	by := r.plain(hlo.OpMultiply, dims, place, width)
	shifted := r.plain(hlo.OpShiftRightLogical, dims, all, by)
	// The conversion cuts off the higher bits.
	cut := r.plain(hlo.OpConvert, dims, shifted)
	cut.Shape.DType = t
	return cut
}

// joinedBits is the unsigned elements of x along its last dimension as one of type t,
// the first one lowest.
func (r *rewriter) joinedBits(x *hlo.Instr, t hlo.DType, dims []int64) *hlo.Instr {
	width := x.Shape.DType.Bits()
	last := x.Shape.Rank() - 1
	var all *hlo.Instr
	for k := range x.Shape.Dims[last] {
		one := r.converted(r.lastElement(x, k, dims), t)
		if k == 0 {
			all = one
			continue
		}
		place := float64(int(k) * width)
		by := r.number(place, t, dims)
		one = r.plain(hlo.OpShiftLeft, dims, one, by)
		all = r.plain(hlo.OpOr, dims, all, one)
	}
	return all
}

// lastElement is element k along the last dimension of x, whose other extents are dims.
func (r *rewriter) lastElement(
	x *hlo.Instr,
	k int64,
	dims []int64,
) *hlo.Instr {
	var a hlo.Attrs
	for _, n := range x.Shape.Dims {
		all := hlo.SliceDim{Limit: n, Stride: 1}
		a.Slice = append(a.Slice, all)
	}
	last := &a.Slice[x.Shape.Rank()-1]
	last.Start = k
	last.Limit = k + 1
	extents := append(slices.Clone(dims), 1)
	one := r.add(hlo.OpSlice, extents, a, x)
	return r.plain(hlo.OpReshape, dims, one)
}

// imaginary is the imaginary part of a real number. Those of complex ones are gone.
func (r *rewriter) imaginary(i *hlo.Instr, _ []*hlo.Instr) *hlo.Instr {
	s := i.Shape
	return r.renamed(r.number(0, s.DType, s.Dims))
}

// stochasticConvert rounds to a signed integer as XLA's StochasticConvertDecomposer
// does: the fraction of the magnitude, as a number of the width of the random bits, is
// compared with them. What it rounds to others is not known.
func (r *rewriter) stochasticConvert(i *hlo.Instr, operands []*hlo.Instr) *hlo.Instr {
	x, random := operands[0], operands[1]
	from, to := x.Shape.DType, i.Shape.DType
	if !to.IsSigned() {
		return nil
	}
	if from.Bits() < 16 { // zero and the ends of the range are not numbers of them all
		x, from = r.converted(x, hlo.F32), hlo.F32
	}
	e := elementwise{r, i.Shape.Dims}
	magnitude := e.of(hlo.OpAbs, x)
	whole := e.of(hlo.OpFloor, magnitude)
	fraction := e.of(hlo.OpSubtract, magnitude, whole)
	if from.Bits() < 32 { // 2^16 is not a number of f16
		fraction = r.converted(fraction, hlo.F32)
	}
	drawn := random.Shape.DType
	scale := math.Ldexp(1, drawn.Bits())
	scales := e.number(scale, fraction.Shape.DType)
	fraction = e.of(hlo.OpMultiply, fraction, scales)
	up := e.compare("LT", random, r.converted(fraction, drawn))
	v := r.converted(whole, to)
	above := e.of(hlo.OpAdd, v, e.number(1, to))
	v = e.choose(up, above, v)
	negative := e.compare("LT", x, e.number(0, from))
	v = e.choose(negative, e.of(hlo.OpNegate, v), v)
	// What lies beyond the range of the integers is its end.
	lo, hi := to.IntRange()
	v = e.clamped(v, "LE", x, lo)
	v = e.clamped(v, "GE", x, hi)
	return r.renamed(v)
}

// elementwise appends operations on arrays of the extents.
type elementwise struct {
	r    *rewriter
	dims []int64
}

// number is an array of one number.
func (e elementwise) number(v float64, t hlo.DType) *hlo.Instr {
	return e.r.number(v, t, e.dims)
}

// of is an operation on arrays of one type.
func (e elementwise) of(
	op hlo.Opcode,
	x ...*hlo.Instr,
) *hlo.Instr {
	return e.r.plain(op, e.dims, x...)
}

// compare is a predicate.
func (e elementwise) compare(
	direction string,
	x, y *hlo.Instr,
) *hlo.Instr {
	a := hlo.Attrs{Direction: direction}
	return e.r.typed(hlo.OpCompare, hlo.Pred, e.dims, a, x, y)
}

// choose is x where p holds, else y.
func (e elementwise) choose(p, x, y *hlo.Instr) *hlo.Instr {
	chosen := e.r.plain(hlo.OpSelect, e.dims, p, x, y)
	chosen.Shape.DType = x.Shape.DType
	return chosen
}

// clamped is the integer v, but end where x is beyond it in the direction.
func (e elementwise) clamped(
	v *hlo.Instr,
	direction string,
	x *hlo.Instr,
	end int64,
) *hlo.Instr {
	from := x.Shape.DType
	limit := from.RoundFloat(float64(end))
	// A number of i64 is not one of float64.
	at := e.r.zero(v.Shape.DType)
	at.Literal.Ints[0] = end
	full := e.r.everywhere(at, e.dims)
	limits := e.number(limit, from)
	beyond := e.compare(direction, x, limits)
	return e.choose(beyond, full, v)
}
