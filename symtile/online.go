package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Online returns p with those loops fused that iterate over the same tiles and
// are apart only because a later one needs a maximum or a mean that an earlier
// one computes; p itself when there are none.
//
// Maxima: the first loop reduces m = max(x). Every other one sums terms that
// are homogeneous in exp(−m): products of exp(x−m), once, of what depends
// neither on m nor on what follows from it, and of row numbers r that are known
// only after all loops. Then, for a sum S(m) over any part of the tiles, S(m')
// = S(m)·exp(m−m'), so that one loop that carries m and S suffices: online
// softmax (Milakov and Gimelshein, Online normalizer calculation for softmax,
// 2018). Row numbers r are taken out of the sums and multiplied in after the
// loop, which makes dot(softmax(x), v) one loop too (Dao et al.,
// FlashAttention, 2022; Dao, FlashAttention-2, 2023).
//
// Differences from plain evaluation: an infinite v whose weight is 0 with the
// final maximum, but was not with the one when it was met, leaves an infinity
// where plain evaluation has NaN. Sums are not divided before they are
// complete, so that they are infinite where n·|v| is more than the type can
// hold.
//
// Rounding: each time m rises a sum is rounded once more. n tiles add at most n
// roundings of exp, and as many of the product, to the relative error of a sum
// of terms ≥ 0.
//
// Means are described in online_mean.go.
func (p *Program) Online() *Program {
	for k, s := range p.Body {
		if s.Loop == nil ||
			!findsMaximum(p, s.Loop) && !sumsFloats(p, s.Loop) {
			continue
		}
		if q := newLoopFuser(p, k).fuse(); q != nil {
			return q.Online()
		}
	}
	return p
}

// findsMaximum reports whether all that a loop does is to find a maximum of
// floats.
func findsMaximum(p *Program, l *Loop) bool {
	if len(l.Accumulators) != 1 || l.Online != nil {
		return false
	}
	op := &p.Ops[l.Accumulators[0]]
	return reducesBy(op, hlo.OpMaximum) &&
		op.Instr.Shape.DType.IsFloat()
}

// reducesBy reports whether an op reduces one operand by an operation.
func reducesBy(op *Op, code hlo.Opcode) bool {
	if op.Code != hlo.OpReduce || len(op.Args) != 2 {
		return false
	}
	c := op.Instr.Attrs.ToApply
	r := c.Root
	return r.Op == code && len(c.Params) == 2 &&
		len(r.Operands) == 2 &&
		r.Operands[0] != r.Operands[1] &&
		slices.Contains(c.Params, r.Operands[0]) &&
		slices.Contains(c.Params, r.Operands[1])
}

// A rowFactor is a number of each row that a value is a multiple of: the value
// of op, or exp(−m) where op is the maximum. The other fields describe values
// that are not multiples, from which such factors come: the number itself, and
// terms of the number and x.
type rowFactor struct {
	op int
	// divides reports that the value is divided by the number.
	divides bool
	// dims are the dimensions of the value that are those of op, in order; −1
	// stands for one that has been reshaped away, of extent 1.
	dims []int
	// plain reports that the value is the number itself.
	plain bool
	// exponent reports that the value is x − m.
	exponent bool
	// deviation reports that the value is x less the number, or the number less
	// x.
	deviation bool
	// squaredDeviation reports that the value is (x less the number)².
	squaredDeviation bool
}

// factorsOf is the row factors of the value of an op. newOp is the new op
// that the value is a multiple of; −1 where the op itself has to be computed. The
// error is errNotOnline where the value depends on a row number in any other
// way.
func (j *loopFuser) factorsOf(op *Op) (f []rowFactor, newOp int, err error) {
	args := make([][]rowFactor, len(op.Args))
	hasFactors := false
	for k, a := range op.Args {
		args[k] = j.factors[a]
		hasFactors = hasFactors || len(args[k]) > 0
	}
	if !hasFactors {
		return nil, -1, nil
	}
	switch op.Code {
	case hlo.OpReduce, hlo.OpDot:
		f, err = j.reducedFactors(op)
		return f, -1, err
	case hlo.OpBroadcast, hlo.OpTranspose, hlo.OpReshape, hlo.OpCopy:
		f, err = rearranged(op, args[0])
		return f, -1, err
	case hlo.OpConvert:
		f, err = convertedFactors(op, args[0])
		return f, -1, err
	case hlo.OpNegate:
		return args[0], -1, requireProduct(args[0])
	case hlo.OpSubtract:
		if j.isSum {
			f, err = j.deviationOf(op, args)
		} else {
			f, err = j.exponentOf(op, args)
		}
		return f, -1, err
	case hlo.OpExponential:
		if len(args[0]) == 1 && args[0][0].exponent {
			return []rowFactor{
				{op: j.statistic, dims: args[0][0].dims},
			}, -1, nil
		}
	case hlo.OpMultiply:
		f := args[0]
		if len(f) == 1 && f[0].deviation &&
			op.Args[0] == op.Args[1] {
			return squaredFactor(f), -1, nil
		}
		return j.multiplied(op, args)
	case hlo.OpDivide:
		return j.divided(op, args)
	}
	return nil, -1, errNotOnline
}

// requireProduct is an error where a value is not a product of row factors and
// what depends on none.
func requireProduct(f []rowFactor) error {
	if slices.ContainsFunc(f, func(x rowFactor) bool {
		return x.plain || x.exponent || x.deviation || x.squaredDeviation
	}) {
		return errNotOnline
	}
	return nil
}

// rowNumber is the only factor of a value that is nothing but a number of the
// row, known only after the loop.
func (j *loopFuser) rowNumber(f []rowFactor) (rowFactor, bool) {
	if len(f) == 1 && f[0].plain &&
		f[0].op != j.statistic {
		return f[0], true
	}
	return rowFactor{}, false
}

// multiplied is the factors of a product: those of both operands, or one more
// where an operand is a row number.
func (j *loopFuser) multiplied(
	op *Op, args [][]rowFactor,
) ([]rowFactor, int, error) {
	for k := range args {
		if r, ok := j.rowNumber(args[k]); ok {
			return j.timesFactor(op.Args[1-k], args[1-k], r)
		}
	}
	if requireProduct(args[0]) != nil ||
		requireProduct(args[1]) != nil {
		return nil, -1, errNotOnline
	}
	return slices.Concat(args[0], args[1]), -1, nil
}

// divided is the factors of a quotient, whose divisor is a row number or has no
// factors.
func (j *loopFuser) divided(
	op *Op, args [][]rowFactor,
) ([]rowFactor, int, error) {
	if r, ok := j.rowNumber(args[1]); ok {
		r.divides = true
		return j.timesFactor(op.Args[0], args[0], r)
	}
	if len(args[1]) > 0 {
		return nil, -1, errNotOnline
	}
	return args[0], -1, requireProduct(args[0])
}

// timesFactor is the factors of op n with one more.
func (j *loopFuser) timesFactor(
	n int, f []rowFactor, r rowFactor,
) ([]rowFactor, int, error) {
	if requireProduct(f) != nil || j.newOps[n] < 0 {
		return nil, -1, errNotOnline
	}
	r.plain = false
	return append(slices.Clip(f), r), j.newOps[n], nil
}

// exponentOf is the factor of x − m, where x is what m is the maximum of.
func (j *loopFuser) exponentOf(
	op *Op, args [][]rowFactor,
) ([]rowFactor, error) {
	max := &j.from.Ops[j.statistic]
	if len(args[0]) > 0 ||
		len(args[1]) != 1 ||
		!args[1][0].plain ||
		args[1][0].op != j.statistic ||
		j.newOps[op.Args[0]] != j.newOps[max.Args[0]] {
		return nil, errNotOnline
	}
	dims := args[1][0].dims
	next := 0
	for d := range op.Tile {
		switch {
		case slices.Contains(max.Instr.Attrs.Dimensions, int64(d)):
		case dims[next] != d:
			return nil, errNotOnline
		default:
			next++
		}
	}
	return []rowFactor{
		{op: j.statistic, dims: dims, exponent: true},
	}, nil
}

// convertedFactors is the factors of a value in another floating type.
// Multiplying by them after the conversion instead of before rounds as often;
// but the exponent must not lose precision, nor may deviations.
func convertedFactors(op *Op, f []rowFactor) ([]rowFactor, error) {
	to := op.Instr.Shape.DType
	from := op.Instr.Operands[0].Shape.DType
	if !to.IsFloat() || !from.IsFloat() {
		return nil, errNotOnline
	}
	narrows := to.FractionBits() < from.FractionBits()
	if slices.ContainsFunc(f, func(x rowFactor) bool {
		return narrows && x.exponent || x.deviation || x.squaredDeviation
	}) {
		return nil, errNotOnline
	}
	return f, nil
}

// rearranged is the factors of a value whose elements are moved: broadcast,
// transposed or reshaped.
func rearranged(op *Op, list []rowFactor) ([]rowFactor, error) {
	if slices.ContainsFunc(list, func(x rowFactor) bool { return x.deviation || x.squaredDeviation }) {
		return nil, errNotOnline
	}
	to := func(d int) int { return d }
	switch op.Code {
	case hlo.OpBroadcast:
		to = func(d int) int {
			return int(op.Instr.Attrs.Dimensions[d])
		}
	case hlo.OpTranspose:
		to = func(d int) int {
			return slices.Index(op.Perm, d)
		}
	case hlo.OpReshape:
		places := unitReshapeDims(op)
		if places == nil {
			return nil, errNotOnline
		}
		to = func(d int) int { return places[d] }
	}
	return mapFactorDims(list, to), nil
}

// mapFactorDims renumbers the dimensions that factors run along; −1 is none, of
// one element.
func mapFactorDims(list []rowFactor, to func(d int) int) []rowFactor {
	out := slices.Clone(list)
	for k, f := range out {
		out[k].dims = slices.Clone(f.dims)
		for n, d := range f.dims {
			if d >= 0 {
				out[k].dims[n] = to(d)
			}
		}
	}
	return out
}

// unitReshapeDims is where the dimensions go of a reshape that only adds and
// drops dimensions of extent 1: −1 for dropped ones. One that stands where another
// of extent 1 stood is that. It is nil for another reshape.
func unitReshapeDims(op *Op) []int {
	if op.Instr.Op != hlo.OpReshape {
		return nil
	}
	from := op.Instr.Operands[0].Shape.Dims
	to := op.Instr.Shape.Dims
	places := make([]int, len(from))
	k := 0
	for d, n := range from {
		if places[d] = -1; n == 1 {
			if k < len(to) && to[k] == 1 {
				places[d] = k
				k++
			}
			continue
		}
		for k < len(to) && to[k] == 1 {
			k++
		}
		if k == len(to) || to[k] != n {
			return nil
		}
		places[d] = k
		k++
	}
	return places
}

// reducedFactors is the factors of a reduce or dot in terms of its own
// dimensions. A factor cannot run along a dimension that is summed.
func (j *loopFuser) reducedFactors(op *Op) ([]rowFactor, error) {
	var list []rowFactor
	for k, a := range op.Args {
		f := j.factors[a]
		if len(f) == 0 {
			continue
		}
		kept := keptDims(op, k)
		if kept == nil ||
			requireProduct(f) != nil && !j.reducesSquares(op, f) ||
			op.Code == hlo.OpReduce && (!reducesBy(op, hlo.OpAdd) ||
				!isZero(j.from, op.Args[1])) {
			return nil, errNotOnline
		}
		list = append(
			list,
			mapFactorDims(f, func(d int) int { return kept[d] })...,
		)
		for n, x := range f {
			for i, d := range x.dims {
				if d >= 0 &&
					list[len(list)-len(f)+n].dims[i] < 0 {
					return nil, errNotOnline
				}
			}
		}
	}
	return list, nil
}

// keptDims is the dimension of the result that each dimension of argument k of
// a reduce or dot becomes; −1 where it is summed. It is nil for arguments that
// are not summed.
func keptDims(op *Op, k int) []int {
	a := op.Instr.Attrs
	switch {
	case op.Code == hlo.OpReduce && k == 0 &&
		len(op.Args) == 2:
		return renumbered(
			len(op.Instr.Operands[0].Shape.Dims),
			nil, a.Dimensions, 0,
		)
	case op.Code == hlo.OpDot && k == 0:
		return renumbered(
			len(op.Instr.Operands[0].Shape.Dims),
			a.LHSBatch, a.LHSContract, len(a.LHSBatch),
		)
	case op.Code == hlo.OpDot && k == 1:
		leftFree := len(op.Instr.Operands[0].Shape.Dims) -
			len(a.LHSContract)
		return renumbered(
			len(op.Instr.Operands[1].Shape.Dims),
			a.RHSBatch, a.RHSContract, leftFree,
		)
	}
	return nil
}

// renumbered gives batch dimensions their number, summed ones −1, others the
// next numbers from next on.
func renumbered(rank int, batch, summed []int64, next int) []int {
	kept := make([]int, rank)
	for d := range kept {
		switch b := slices.Index(batch, int64(d)); {
		case b >= 0:
			kept[d] = b
		case slices.Contains(summed, int64(d)):
			kept[d] = -1
		default:
			kept[d] = next
			next++
		}
	}
	return kept
}

// isZero reports whether an op is the constant 0.
func isZero(p *Program, n int) bool {
	l := p.Ops[n].Instr.Literal
	return l != nil && len(l.Floats) == 1 &&
		l.Floats[0] == 0
}
