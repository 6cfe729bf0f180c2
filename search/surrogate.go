package search

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// A surrogate is a Gaussian process on the logarithm of the time over the logarithm of
// the price (C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning,
// 2006, algorithm 2.1). Far from all observations it says what the price says, as far as
// that has been right, with the variance that it began with.
type surrogate struct {
	space *Space
	price []float64 // logarithms of the prices, centred; zeros without prices
	doubt []float64 // of the prices, by which the covariance is scaled; nil are ones
	trust float64   // in the price: the predictions follow it by this exponent
	cov   *covariance

	least  float64   // logarithm of the best time
	points []int     // that were observed
	values []float64 // of them: scaled times

	pool []int       // points that are predicted
	rows [][]float64 // L⁻¹·c(observed, pool)
	low  [][]float64 // L: lower triangle of the covariances of the observed points
	vary []float64   // variances of the pool
}

// between is the covariance of two points of the space, by their indices, without the
// noise that an observation has besides.
func (g *surrogate) between(a, b int) float64 {
	c := g.cov.of(
		g.space.Points[a],
		g.space.Points[b],
		g.price[a],
		g.price[b],
	)
	if g.doubt != nil {
		c *= g.doubt[a] * g.doubt[b]
	}
	return c
}

// update takes what was observed, and predicts a pool: by further rows where it is the
// one of before and what was observed has only grown.
func (g *surrogate) update(trials []Trial, pool []int) {
	g.setValues(trials)
	if g.pool == nil || len(g.pool) != len(pool) || &g.pool[0] != &pool[0] {
		g.predict(pool)
		return
	}
	for k := len(g.low); k < len(g.points); k++ {
		g.extend(k)
	}
}

// predict makes the pool that is predicted, from scratch.
func (g *surrogate) predict(pool []int) {
	g.pool = pool
	g.low, g.rows = nil, nil
	g.vary = make([]float64, len(pool))
	for k, x := range pool {
		g.vary[k] = g.between(x, x)
	}
	for k := range g.points {
		g.extend(k)
	}
}

// setValues takes what was observed; failures have no time and are left out.
func (g *surrogate) setValues(trials []Trial) {
	g.points = g.points[:0]
	g.values = g.values[:0]
	g.least = math.Inf(1)
	for _, t := range trials {
		g.least = min(g.least, math.Log(t.Seconds))
	}
	for _, t := range trials {
		if !t.Failed() {
			g.points = append(g.points, t.Point)
			g.values = append(
				g.values,
				g.scale(t.Seconds),
			)
		}
	}
}

// scale is the logarithm of a time, compressed far above the best one: how slow a very
// slow point is says little about the fast ones.
func (g *surrogate) scale(seconds float64) float64 {
	above := math.Log(seconds) - g.least
	return g.least + slowness*math.Log1p(above/slowness)
}

// slowness is the logarithm of the factor above the best time from which times are
// compressed.
const slowness = 1

// believe adds an observation that is what is predicted, so that the next choice does
// not ask for the same thing.
func (g *surrogate) believe(point int) {
	k := slices.Index(g.pool, point)
	value := g.offset() + g.trust*g.price[point]
	if k >= 0 {
		value = g.means()[k]
	}
	g.points = append(g.points, point)
	g.values = append(g.values, value)
	g.extend(len(g.points) - 1)
}

// A mark is a state of the surrogate to return to.
type mark struct {
	n    int
	vary []float64
}

// mark is the state now.
func (g *surrogate) mark() mark {
	return mark{len(g.points), slices.Clone(g.vary)}
}

// reset forgets what was believed since the mark.
func (g *surrogate) reset(m mark) {
	g.points = g.points[:m.n]
	g.values = g.values[:m.n]
	g.low = g.low[:min(m.n, len(g.low))]
	g.rows = g.rows[:min(m.n, len(g.rows))]
	g.vary = m.vary
}

// extend adds a row of the Cholesky factor, for observation n, and one of the pool.
func (g *surrogate) extend(n int) {
	x := g.points[n]
	row := make([]float64, n+1)
	rest := g.between(x, x) + g.cov.noise
	for j := range n {
		v := g.between(x, g.points[j])
		for k := range j {
			v -= row[k] * g.low[j][k]
		}
		row[j] = v / g.low[j][j]
		rest -= row[j] * row[j]
	}
	row[n] = math.Sqrt(max(rest, 1e-10))
	g.low = append(g.low, row)
	g.rows = append(
		g.rows,
		g.poolRow(x, row),
	)
}

// poolRow is the row of the pool for an observation, and lowers the variances by it.
func (g *surrogate) poolRow(x int, low []float64) []float64 {
	n := len(low) - 1
	out := make([]float64, len(g.pool))
	for k, y := range g.pool {
		out[k] = g.between(x, y)
	}
	for j := range n {
		l := low[j]
		for k, r := range g.rows[j] {
			out[k] -= l * r
		}
	}
	for k := range out {
		out[k] /= low[n]
		g.vary[k] -= out[k] * out[k]
	}
	return out
}

// offset is the mean of what the values are above the prices. The residuals have the mean
// 0, so that far from all observations a point is expected to be an average one.
func (g *surrogate) offset() float64 {
	sum := 0.0
	for k, x := range g.points {
		sum += g.values[k] - g.trust*g.price[x]
	}
	return sum / float64(max(1, len(g.points)))
}

// means are the predictions of the pool, on the scale of the values: prior, plus
// c(pool, observed)·C⁻¹·(values − prior), by the rows that are there already.
func (g *surrogate) means() []float64 {
	offset := g.offset()
	out := make([]float64, len(g.pool))
	for k, x := range g.pool {
		out[k] = offset + g.trust*g.price[x]
	}
	z := make([]float64, len(g.points)) // L⁻¹·(values − prior)
	for n, x := range g.points {
		z[n] = g.values[n] - offset - g.trust*g.price[x]
		for j := range n {
			z[n] -= g.low[n][j] * z[j]
		}
		z[n] /= g.low[n][n]
		for k, r := range g.rows[n] {
			out[k] += z[n] * r
		}
	}
	return out
}

// evidence is the logarithm of the likelihood of the observations under a covariance,
// with the prior of its numbers.
func (g *surrogate) evidence() float64 {
	n := len(g.points)
	c := mat.NewSymDense(n, nil)
	for a := range n {
		for b := range a + 1 {
			c.SetSym(
				a,
				b,
				g.between(g.points[a], g.points[b]),
			)
		}
		c.SetSym(
			a,
			a,
			c.At(a, a)+g.cov.noise,
		)
	}
	var factor mat.Cholesky
	if !factor.Factorize(c) {
		return math.Inf(-1)
	}
	y := mat.NewVecDense(n, nil)
	offset := g.offset()
	for k, x := range g.points {
		y.SetVec(
			k,
			g.values[k]-offset-g.trust*g.price[x],
		)
	}
	var solved mat.VecDense
	if err := factor.SolveVecTo(&solved, y); err != nil {
		return math.Inf(-1)
	}
	doubt := (1 - g.trust) / trustSpread
	return -mat.Dot(y, &solved)/2 - factor.LogDet()/2 + g.cov.plausibility() - doubt*doubt/2
}

// improvement is the expected improvement (D. R. Jones, M. Schonlau, W. J. Welch, Journal
// of Global Optimization 13, 1998) of a normal variable below low.
func improvement(low, mean, variance float64) float64 {
	s := math.Sqrt(max(variance, leastVariance))
	z := (low - mean) / s
	density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	below := math.Erfc(-z/math.Sqrt2) / 2
	return s * (z*below + density)
}

// leastVariance is that of a point that is as good as known.
const leastVariance = 1e-12

// A normal is the logarithm of a time that is not known, and the probability that there is
// one: that the point does not fail.
type normal struct{ mean, s, share float64 }

// gainSteps are those of the integral over what is gained.
const gainSteps = 256

// expectedGain is the expected share by which the least of times is below that of logarithm
// low, 0 where it is not: the integral of exp(−d) times the probability that the least
// logarithm is below low − d, over d.
func expectedGain(low float64, all []normal) float64 {
	const far = 6 // standard deviations, beyond which nothing is expected
	most := 0.0
	for _, x := range all {
		most = max(most, low-x.mean+far*x.s)
	}
	step := most / gainSteps
	sum := 0.0
	for k := range gainSteps {
		d := (float64(k) + 0.5) * step
		none := 1.0
		for _, x := range all {
			z := (low - d - x.mean) / x.s
			none *= 1 - x.share*math.Erfc(-z/math.Sqrt2)/2
		}
		sum += math.Exp(-d) * (1 - none)
	}
	return sum * step
}
