package cost

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/tilewright/tilewright/kernels"
)

// Calibration finds the factors of the terms: it minimises
//
//	Σ ρ(log(measured/predicted) within its group)² + betweenGroupsWeight·Σ(group means)² + Σ θ²
//
// over θ = log factors, by Gauss and Newton's method with Huber's weights for
// ρ. What counts is the order within a group (a fusion); how groups lie to each
// other counts a little, since it says what a term costs at all. The last sum
// keeps the factors near the prior: with few samples, or for terms that no
// sample shows, they stay at 1. It weighs like one sample whose log time is off
// by one for a factor of e.
const (
	// Weight of the differences between groups.
	betweenGroupsWeight = 0.1
	// Largest number of rounds of the minimisation.
	maxRounds = 30
	tolerance = 1e-4 // largest change of a θ that ends it
	// Largest change of a θ in a round.
	maxStep = 1.0
	// e⁵ = 148: samples beyond are not of this device.
	maxTheta = 5.0
)

// calibrate returns the logarithms of the factors.
func calibrate(rows []row, terms *kernels.PriceTerms) ([]float64, error) {
	n := len(terms.Names)
	theta := make([]float64, n)
	factors := ones(n)
	weights := ones(len(rows))
	c := groupRows(rows)
	for range maxRounds {
		x, y := jacobian(rows, factors, terms)
		c.center(x, y, math.Sqrt(betweenGroupsWeight))
		step, err := newton(x, y, weights, theta)
		if err != nil {
			return nil, err
		}
		largest := 0.0
		for k := range theta {
			s := math.Max(-maxStep, math.Min(maxStep, step[k]))
			s = math.Max(-maxTheta, math.Min(maxTheta, theta[k]+s)) -
				theta[k]
			theta[k] += s
			factors[k] = math.Exp(theta[k])
			largest = math.Max(largest, math.Abs(s))
		}
		huber(weights, x, y, step)
		if largest < tolerance {
			break
		}
	}
	return theta, nil
}

// jacobian computes for every row the derivative of its predicted logarithm by
// θ, which is the share of each term, and the logarithm of measured over
// predicted time.
func jacobian(
	rows []row, factors []float64, terms *kernels.PriceTerms,
) (x [][]float64, y []float64) {
	n := len(factors)
	flat := make([]float64, n*len(rows))
	x = make([][]float64, len(rows))
	y = make([]float64, len(rows))
	weights := make([]float64, n)
	for k, r := range rows {
		weigh(
			weights, r.price.Seconds, factors, terms.Overlapping, terms.Hidden,
		)
		x[k] = flat[n*k : n*(k+1)]
		total := 0.0
		for i, t := range r.price.Seconds {
			x[k][i] = t * weights[i]
			total += x[k][i]
		}
		for i := range x[k] {
			x[k][i] /= total
		}
		y[k] = math.Log(r.seconds / total)
	}
	return x, y
}

// newton solves (XᵀWX + I)·step = XᵀWy − θ.
func newton(
	x [][]float64, y, weights, theta []float64,
) ([]float64, error) {
	a, b := normal(x, y, weights)
	for k, t := range theta {
		a.SetSym(k, k, a.At(k, k)+1)
		b.SetVec(k, b.AtVec(k)-t)
	}
	return solve(a, b)
}

// normal computes the normal equations XᵀWX and XᵀWy.
func normal(
	x [][]float64, y, weights []float64,
) (*mat.SymDense, *mat.VecDense) {
	n := len(x[0])
	a := make([]float64, n*n)
	b := make([]float64, n)
	for k, r := range x {
		w := weights[k]
		for i, v := range r {
			if v *= w; v == 0 {
				continue
			}
			b[i] += v * y[k]
			into := a[i*n+i : (i+1)*n]
			for j, u := range r[i:] {
				into[j] += v * u
			}
		}
	}
	return mat.NewSymDense(n, a), mat.NewVecDense(n, b)
}

// solve is a⁻¹b for a positive definite a.
func solve(a *mat.SymDense, b *mat.VecDense) ([]float64, error) {
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return nil, errors.New("the fit is singular")
	}
	var w mat.VecDense
	if err := chol.SolveVecTo(&w, b); err != nil {
		return nil, err
	}
	return w.RawVector().Data, nil
}

// A groupIndex assigns rows to groups.
type groupIndex struct {
	// Group of each row.
	of []int
	// Rows of each group.
	sizes []float64
}

// groupRows numbers the groups in the order of their first rows.
func groupRows(rows []row) groupIndex {
	g := groupIndex{of: make([]int, len(rows))}
	index := map[string]int{}
	for k, r := range rows {
		n, ok := index[r.group]
		if !ok {
			n = len(g.sizes)
			index[r.group] = n
			g.sizes = append(g.sizes, 0)
		}
		g.of[k] = n
		g.sizes[n]++
	}
	return g
}

// center subtracts the mean of each group, except for the share kept of it.
func (g groupIndex) center(x [][]float64, y []float64, kept float64) {
	n := len(x[0])
	sums := make([]float64, (n+1)*len(g.sizes))
	for k, r := range x {
		s := sums[(n+1)*g.of[k]:]
		for i, v := range r {
			s[i] += v
		}
		s[n] += y[k]
	}
	for k, r := range x {
		s := sums[(n+1)*g.of[k]:]
		scale := (1 - kept) / g.sizes[g.of[k]]
		for i := range r {
			r[i] -= s[i] * scale
		}
		y[k] -= s[n] * scale
	}
}
