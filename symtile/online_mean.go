package symtile

import (
	"slices"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// Loops that are joined because all the second waits for is a mean: of variances,
// and so of layer and batch normalisation.
//
// The first loop sums s = Σx, of N elements a row. The second sums squares of x
// less a number c of each row, which is any function of s. For every b,
//
//	Σ(x−c)² = Σ(x−b)² − 2(c−b)Σ(x−b) + N(c−b)²,
//
// so that one loop can sum with a b near the mean of what it has met, and move b
// when that goes elsewhere (Chan, Golub and LeVeque, Algorithms for computing the
// sample variance, 1983, shift data in this way; Welford, 1962, moves b with every
// element). With the loop's Q − D²/N = Σ(x−s/N)² what is left to do after it
// is to add N(s/N − c)², two numbers that differ by their rounding where c is the mean.
//
// All that is added up is ≥ 0 and b is moved before D²/n is more than a part of Q, so
// that few digits are lost however far the mean is from 0: with unit roundoff u the
// relative error of the variance of n elements in tiles of T is at most
// (2T + 16 + 4n/T)·u, and that of c comes in squared, as without joining. A sum
// nb + D that overflows leaves NaN where plain evaluation has an infinite variance.

// sumsFloats reports whether all that a loop does is to sum f32 or f64, which
// can hold a mean.
func sumsFloats(p *Program, l *Loop) bool {
	if len(l.Accumulators) != 1 || l.Online != nil {
		return false
	}
	op := &p.Ops[l.Accumulators[0]]
	d := op.Instr.Shape.DType
	return reducesBy(op, hlo.OpAdd) &&
		isZero(p, op.Args[1]) &&
		(d == hlo.F32 || d == hlo.F64)
}

// deviationOf is the factor of x less a number of the row, where x is what the
// statistic sums.
func (j *loopFuser) deviationOf(
	op *Op, args [][]rowFactor,
) ([]rowFactor, error) {
	k := 0
	if len(args[0]) > 0 {
		k = 1
	}
	sum := &j.from.Ops[j.statistic]
	r, ok := j.rowNumber(args[1-k])
	if !ok || len(args[k]) > 0 ||
		j.newOps[op.Args[k]] != j.newOps[sum.Args[0]] {
		return nil, errNotOnline
	}
	for _, d := range r.dims {
		if slices.Contains(sum.Instr.Attrs.Dimensions, int64(d)) {
			return nil, errNotOnline
		}
	}
	r.plain, r.deviation = false, true
	return []rowFactor{r}, nil
}

// squaredFactor is the factor of the square of a deviation.
func squaredFactor(f []rowFactor) []rowFactor {
	x := f[0]
	x.deviation, x.squaredDeviation = false, true
	return []rowFactor{x}
}

// reducesSquares reports whether an op sums squared deviations over the
// elements that the mean is of.
func (j *loopFuser) reducesSquares(op *Op, f []rowFactor) bool {
	sum := &j.from.Ops[j.statistic]
	a := slices.Sorted(slices.Values(op.Instr.Attrs.Dimensions))
	b := slices.Sorted(slices.Values(sum.Instr.Attrs.Dimensions))
	return op.Code == hlo.OpReduce && len(f) == 1 &&
		f[0].squaredDeviation && slices.Equal(a, b) &&
		slices.EqualFunc(op.Tile, sum.Tile, DimTile.Equal)
}

// shiftedStatistic makes an old op, x less a number of the row or that less x,
// read the number b near the mean instead.
func (j *loopFuser) shiftedStatistic(op *Op) int {
	sum := j.to.Ops[j.newOps[j.statistic]].Instr
	number := op.Args[0]
	if len(j.factors[number]) == 0 {
		number = op.Args[1]
	}
	var kept []int64
	for d := range op.Tile {
		if !slices.Contains(sum.Attrs.Dimensions, int64(d)) {
			kept = append(kept, int64(d))
		}
	}
	j.newOps[number] = j.add(Op{
		Code: hlo.OpBroadcast,
		Tile: j.translatedTile(op.Tile),
		Args: []int{j.newOps[j.statistic]},
		Instr: &hlo.Instr{
			Name:     sum.Name + ".near",
			Op:       hlo.OpBroadcast,
			Shape:    op.Instr.Shape,
			Operands: []*hlo.Instr{sum},
			Attrs:    hlo.Attrs{Dimensions: kept},
		},
	})
	return j.newOps[number]
}

// orderDeviation makes a new op x less the number: its square is that of the
// opposite.
func (j *loopFuser) orderDeviation(at int) {
	op := &j.to.Ops[at]
	if op.Args[0] != j.to.Ops[j.newOps[j.statistic]].Args[0] {
		op.Args = []int{op.Args[1], op.Args[0]}
	}
	if o := j.loop.Online; o.Deviation < 0 {
		o.Deviation = at
	}
}

// recenter turns the sum of squares of x less the mean into that of x less c,
// by adding N(s/N − c)².
func (j *loopFuser) recenter(n int, c rowFactor) {
	sum := j.from.Ops[j.statistic].Instr
	x := j.epilogueOf(n)
	d := x.of.Shape.DType
	count := 1.0
	for _, k := range sum.Attrs.Dimensions {
		count *= float64(sum.Operands[0].Shape.Dims[k])
	}
	of := j.add(Op{
		Code: hlo.OpConstant,
		Instr: &hlo.Instr{
			Name:  x.of.Name + ".count",
			Op:    hlo.OpConstant,
			Shape: hlo.Shape{DType: d},
			Literal: &hlo.Literal{
				Shape:  hlo.Shape{DType: d},
				Floats: []float64{count},
			},
		},
	})
	j.outer = append(j.outer, Step{Op: of})
	of = x.broadcastRow(of, nil)
	off := x.add(
		hlo.OpSubtract, d,
		x.add(hlo.OpDivide, d, j.newOps[j.statistic], of),
		x.broadcastRow(j.newOps[c.op], c.dims),
	)
	j.newOps[n] = x.add(
		hlo.OpAdd, d, j.newOps[n],
		x.add(hlo.OpMultiply, d, x.add(
			hlo.OpMultiply, d, off, off,
		), of),
	)
}
