package cost

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// A fold is a share of the samples, left out to see how well the others
// predict it. Whole groups go together; when there is only one, its samples are
// dealt out. Sums are all that is kept: XᵀX, Xᵀy and yᵀy.
type fold struct {
	a  *mat.SymDense
	b  *mat.VecDense
	yy float64
}

const mostFolds = 5

func foldsOf(x [][]float64, y []float64, g grouping) []fold {
	parts := make([][]int, min(mostFolds, len(y)))
	for k := range y {
		n := g.of[k]
		if len(g.sizes) == 1 {
			n = k
		}
		parts[n%len(parts)] = append(parts[n%len(parts)], k)
	}
	var folds []fold
	for _, part := range parts {
		if len(part) > 0 {
			folds = append(folds, foldOf(part, x, y))
		}
	}
	return folds
}

func foldOf(part []int, x [][]float64, y []float64) fold {
	var fx [][]float64
	var fy []float64
	yy := 0.0
	for _, k := range part {
		fx, fy = append(fx, x[k]), append(fy, y[k])
		yy += y[k] * y[k]
	}
	a, b := normal(fx, fy, ones(len(fy)))
	return fold{a, b, yy}
}

// heldOut is the squared error on fold k of the ridge regression on all others.
func heldOut(folds []fold, k int, ridge float64) float64 {
	n := folds[k].b.Len()
	a, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
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
	return folds[k].yy - 2*mat.Dot(v, folds[k].b) + mat.Inner(v, folds[k].a, v)
}
