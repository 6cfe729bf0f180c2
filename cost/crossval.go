package cost

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// A crossValPart is a part of the samples that is left out, to see how well the
// others predict it. The samples of a group stay together; those of a single
// group are dealt out. Only sums are kept: XᵀX, Xᵀy and yᵀy.
type crossValPart struct {
	a  *mat.SymDense
	b  *mat.VecDense
	yy float64
}

// maxFolds is the largest number of parts.
const maxFolds = 5

// crossValParts divides the samples into parts.
func crossValParts(x [][]float64, y []float64, g groupIndex) []crossValPart {
	parts := make([][]int, min(maxFolds, len(y)))
	for k := range y {
		n := g.of[k]
		if len(g.sizes) == 1 {
			n = k
		}
		parts[n%len(parts)] = append(
			parts[n%len(parts)], k,
		)
	}
	var folds []crossValPart
	for _, part := range parts {
		if len(part) > 0 {
			folds = append(folds, crossValPartOf(part, x, y))
		}
	}
	return folds
}

// crossValPartOf sums up one part.
func crossValPartOf(part []int, x [][]float64, y []float64) crossValPart {
	var fx [][]float64
	var fy []float64
	yy := 0.0
	for _, k := range part {
		fx = append(fx, x[k])
		fy = append(fy, y[k])
		yy += y[k] * y[k]
	}
	a, b := normal(fx, fy, ones(len(fy)))
	return crossValPart{a, b, yy}
}

// heldOut is the squared error on part k of the ridge regression on all others.
func heldOut(folds []crossValPart, k int, ridge float64) float64 {
	n := folds[k].b.Len()
	a := mat.NewSymDense(n, nil)
	b := mat.NewVecDense(n, nil)
	for j, f := range folds {
		if j != k {
			a.AddSym(a, f.a)
			b.AddVec(b, f.b)
		}
	}
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+ridge)
	}
	w, err := solve(a, b)
	if err != nil {
		return math.Inf(1)
	}
	v := mat.NewVecDense(n, w)
	return folds[k].yy -
		2*mat.Dot(v, folds[k].b) +
		mat.Inner(v, folds[k].a, v)
}
