package cost

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/tilewright/tilewright/kernels"
)

// A residual is a Gaussian process on the logarithm of measured over calibrated time (C. E.
// Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, algorithm
// 2.1). Two samples have the covariance
//
//	level + smooth·(1+r)·exp(−r) + group·[same fusion] + noise·w·[same sample]
//
// with r = √3 times the root mean square of the differences of their features over a length
// (Matérn 3/2). The features are of every backend: logarithms of the shares of the terms, of
// the price, of the lanes, of the scratch memory, of the elements and the sides of a tile and
// of the knobs.
// What a fusion's samples have in common is its group's, and is not expected of another
// fusion. The noise has the weight w: what is far above the fastest plan of its fusion
// says little about which plan is the fastest.
//
// Far from all samples the process returns to level and smooth: it corrects nothing there
// but what all samples have in common, and says that it knows nothing else.
type residual struct {
	// The terms, and the knobs, that it is made for.
	terms []string
	knobs []string
	// Mean, standard deviation and range of each feature.
	mean, scale, low, high []float64
	// Features of the samples, standardised, one after the other; what the mean is made
	// of; the Cholesky factor of their covariance.
	samples []float64
	alpha   []float64
	factor  mat.Cholesky
	covariance
}

// A covariance has the variances of the process, and the length of features.
type covariance struct{ level, smooth, noise, length float64 }

// Numbers of the residual.
const (
	// Variance of what the samples of a fusion have in common: a factor of e. It is not
	// fitted; the order of the plans of one fusion is what is asked for.
	groupVariance = 1.0
	// Logarithm of the time above the fastest plan of the fusion at which the noise has
	// twice its variance.
	nearFastest = 0.3
	// Samples that are kept, and that the covariance is fitted to: their cube is the time
	// of a fit.
	maxResidualSamples   = 384
	maxCovarianceSamples = 192
	// minShare is the smallest share of a price that is distinguished from nothing.
	minShare = 1e-3
	// maxCorrection bounds the logarithm of the correction: a factor of 2.7. It refines
	// what the terms say, and must not contradict them.
	maxCorrection = 1
)

// covariancePriors are the medians of the numbers of a covariance, and the spread of their
// logarithms, which are normal.
var covariancePriors = []struct {
	of             func(*covariance) *float64
	median, spread float64
}{
	{func(c *covariance) *float64 { return &c.level }, 0.1, 1.5},
	{func(c *covariance) *float64 { return &c.smooth }, 0.02, 1.5},
	{func(c *covariance) *float64 { return &c.noise }, 1e-3, 1.5},
	{func(c *covariance) *float64 { return &c.length }, 1.5, 0.7},
}

// fitResidual fits a residual to what calibration leaves.
func fitResidual(
	rows []row, factors []float64, terms *kernels.PriceTerms,
) (*residual, error) {
	rows = fastest(rows, maxResidualSamples)
	c := &residual{terms: terms.Names, knobs: knobsOf(rows)}
	for _, p := range covariancePriors {
		*p.of(&c.covariance) = p.median
	}
	c.standardise(rows)
	y := leftOver(rows, factors, terms)
	of, weights := groupRows(rows).of, noiseWeights(rows)
	few := evenly(len(rows), maxCovarianceSamples)
	c.fitCovariance(few, y, weights, of)
	all := evenly(len(rows), len(rows))
	if !c.solve(all, y, weights, of) {
		return nil, errors.New("the fit of the residual is singular")
	}
	return c, nil
}

// fastest are at most n rows: of every group in turn the fastest that is left, in the order
// in which they were given.
func fastest(rows []row, n int) []row {
	groups := make([][]int, len(groupRows(rows).sizes))
	for k, g := range groupRows(rows).of {
		groups[g] = append(groups[g], k)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b int) int {
			return cmp.Compare(
				rows[a].seconds,
				rows[b].seconds,
			)
		})
	}
	var taken []int
	for turn := 0; len(taken) < min(n, len(rows)); turn++ {
		for _, g := range groups {
			if turn < len(g) && len(taken) < n {
				taken = append(taken, g[turn])
			}
		}
	}
	slices.Sort(taken)
	out := make([]row, len(taken))
	for k, at := range taken {
		out[k] = rows[at]
	}
	return out
}

// evenly are n of the first numbers, or all, at equal distances.
func evenly(all, n int) []int {
	n = min(n, all)
	out := make([]int, n)
	for k := range out {
		out[k] = k * all / n
	}
	return out
}

// knobsOf are the names of the knobs of all rows.
func knobsOf(rows []row) (names []string) {
	for _, r := range rows {
		for _, x := range r.numbers {
			if x.Name != tileNumber && sideOf(x.Name) < 0 {
				names = append(names, x.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sideOf is which side of a tile a number is, from the last one; −1 for other numbers.
func sideOf(name string) int { return slices.Index(sideNumbers[:], name) }

// leftOver are the logarithms of measured over calibrated time.
func leftOver(rows []row, factors []float64, terms *kernels.PriceTerms) []float64 {
	weights := make([]float64, len(factors))
	y := make([]float64, len(rows))
	for k, r := range rows {
		weigh(
			weights, r.price.Seconds, factors,
			terms.Overlapping, terms.Hidden,
		)
		calibrated := dot(weights, r.price.Seconds)
		y[k] = math.Log(r.seconds / calibrated)
	}
	return y
}

// noiseWeights are by how much the noise of each row is larger than of the fastest one of
// its group.
func noiseWeights(rows []row) []float64 {
	best := map[string]float64{}
	for _, r := range rows {
		b, known := best[r.group]
		if !known || r.seconds < b {
			best[r.group] = r.seconds
		}
	}
	out := make([]float64, len(rows))
	for k, r := range rows {
		above := math.Log(r.seconds / best[r.group])
		above /= nearFastest
		out[k] = 1 + above*above
	}
	return out
}

// standardise computes the features of the rows, and from them mean, standard deviation
// and range of each.
func (c *residual) standardise(rows []row) {
	n := len(c.terms) + 3 + 1 + len(sideNumbers) + len(c.knobs)
	for _, each := range []*[]float64{
		&c.mean, &c.scale,
		&c.low, &c.high,
	} {
		*each = make([]float64, n)
	}
	all := make([][]float64, len(rows))
	for k, r := range rows {
		all[k] = make([]float64, n)
		c.storedNumbers(r.numbers, all[k])
		c.priceFeatures(&r.price, all[k])
	}
	for i := range n {
		var column []float64
		for _, x := range all {
			if !math.IsNaN(x[i]) {
				column = append(column, x[i])
			}
		}
		c.scale[i] = 1
		if len(column) == 0 {
			continue
		}
		mean, deviation := stat.MeanStdDev(column, nil)
		c.mean[i] = mean
		c.low[i] = slices.Min(column)
		c.high[i] = slices.Max(column)
		if deviation > 1e-9 {
			c.scale[i] = deviation
		}
	}
	for _, x := range all {
		c.normalise(x)
		c.samples = append(c.samples, x...)
	}
}

// normalise moves features into the range of the samples, so that the distance to them is
// not that of one feature, and standardises them. What is unknown is the mean.
func (c *residual) normalise(x []float64) {
	for i, v := range x {
		v = max(v, c.low[i])
		v = min(v, c.high[i])
		x[i] = (v - c.mean[i]) / c.scale[i]
		if math.IsNaN(v) {
			x[i] = 0
		}
	}
}

// priceFeatures writes the first features, those of the price.
func (c *residual) priceFeatures(price *kernels.Price, x []float64) {
	sum := 0.0
	for _, t := range price.Seconds {
		sum += t
	}
	n := len(price.Seconds)
	for k, t := range price.Seconds {
		x[k] = math.Log(max(t/sum, minShare))
	}
	x[n] = math.Log(sum)
	x[n+1] = math.Log(max(price.Lanes, 1))
	x[n+2] = math.Log(max(price.Scratch, 1))
}

// planNumbers writes the last features, those of a plan.
func (c *residual) planNumbers(plan kernels.Plan, x []float64) {
	x = x[len(c.terms)+3:]
	x[0] = math.Log2(tileElements(plan))
	for k := range sideNumbers {
		x[1+k] = sideFeature(tileSide(plan, k))
	}
	x = x[1+len(sideNumbers):]
	for k, name := range c.knobs {
		x[k] = knobFeature(float64(plan.Knob(name, 0)))
	}
}

// storedNumbers writes the same features from what is stored. They are unknown where
// nothing is; so is a side that is not stored.
func (c *residual) storedNumbers(numbers []Number, x []float64) {
	x = x[len(c.terms)+3:]
	knobs := 1 + len(sideNumbers)
	for k := range x {
		x[k] = 0
		if len(numbers) == 0 || 0 < k && k < knobs {
			x[k] = math.NaN()
		}
	}
	for _, v := range numbers {
		if v.Name == tileNumber {
			x[0] = math.Log2(max(1, v.Value))
		} else if k := sideOf(v.Name); k >= 0 {
			x[1+k] = sideFeature(v.Value)
		} else if k, known := slices.BinarySearch(c.knobs, v.Name); known {
			x[knobs+k] = knobFeature(v.Value)
		}
	}
}

// sideFeature is the logarithm of a side of a tile; unknown where the program has no such
// dimension.
func sideFeature(size float64) float64 {
	if size < 1 {
		return math.NaN()
	}
	return math.Log2(size)
}

// knobFeature is the logarithm of a knob plus one: absent knobs are 0.
func knobFeature(v float64) float64 { return math.Log2(1 + math.Abs(v)) }

// expected is the logarithm of measured over calibrated time that is expected of a price
// whose plan's numbers are in at, the rest of which it overwrites.
func (c *residual) expected(price *kernels.Price, at []float64) float64 {
	c.priceFeatures(price, at)
	c.normalise(at)
	sum := 0.0
	for k, a := range c.alpha {
		near := c.similar(at, c.sample(k))
		sum += a * (c.level + near)
	}
	sum = max(-maxCorrection, sum)
	return min(maxCorrection, sum)
}

// sample are the features of a sample.
func (c *residual) sample(k int) []float64 {
	n := len(c.mean)
	return c.samples[n*k : n*(k+1)]
}

// similar is the smooth part of the covariance of two points.
func (c *residual) similar(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		d := v - y[i]
		sum += d * d
	}
	mean := sum / float64(len(x))
	r := math.Sqrt(3*mean) / c.length
	return c.smooth * (1 + r) * math.Exp(-r)
}

// variance of what expected says, of a point whose features it has left in at.
func (c *residual) variance(at []float64) float64 {
	row := mat.NewVecDense(len(c.alpha), nil)
	for k := range c.alpha {
		near := c.similar(at, c.sample(k))
		row.SetVec(k, c.level+near)
	}
	prior := c.level + c.smooth
	var solved mat.VecDense
	err := c.factor.SolveVecTo(&solved, row)
	if err != nil {
		return prior
	}
	return max(0, prior-mat.Dot(row, &solved))
}

// solve computes what the mean is made of from some of the samples, and reports whether
// their covariance is positive definite.
func (c *residual) solve(
	of []int, y, weights []float64, group []int,
) bool {
	n := len(of)
	a := mat.NewSymDense(n, nil)
	b := mat.NewVecDense(n, nil)
	for i, k := range of {
		for j, l := range of[:i+1] {
			v := c.similar(c.sample(k), c.sample(l))
			v += c.level
			if group[k] == group[l] {
				v += groupVariance
			}
			if i == j {
				v += c.noise * weights[k]
			}
			a.SetSym(i, j, v)
		}
		b.SetVec(i, y[k])
	}
	if !c.factor.Factorize(a) {
		return false
	}
	var solved mat.VecDense
	if c.factor.SolveVecTo(&solved, b) != nil {
		return false
	}
	c.alpha = solved.RawVector().Data
	return true
}

// evidence is the logarithm of the likelihood of some of the samples, with the prior of
// the covariance.
func (c *residual) evidence(
	of []int, y, weights []float64, group []int,
) float64 {
	if !c.solve(of, y, weights, group) {
		return math.Inf(-1)
	}
	sum := -c.factor.LogDet() / 2
	for i, k := range of {
		sum -= y[k] * c.alpha[i] / 2
	}
	for _, p := range covariancePriors {
		value := *p.of(&c.covariance)
		d := math.Log(value/p.median) / p.spread
		sum -= d * d / 2
	}
	return sum
}

// fitCovariance climbs to a covariance that explains some of the samples: each number in
// turn is multiplied or divided by a factor while that helps, and the factor shrinks.
func (c *residual) fitCovariance(
	of []int, y, weights []float64, group []int,
) {
	evidence := func() float64 {
		return c.evidence(of, y, weights, group)
	}
	best := evidence()
	for _, factor := range []float64{3, 1 / 3.0, 1.7, 1 / 1.7} {
		for _, p := range covariancePriors {
			best = climb(p.of(&c.covariance), factor, best, evidence)
		}
	}
}

// climb multiplies a number by a factor while its evidence grows, and returns that.
func climb(
	number *float64, factor, best float64, evidence func() float64,
) float64 {
	for {
		old := *number
		*number = old * factor
		now := evidence()
		if !(now > best) {
			*number = old
			return best
		}
		best = now
	}
}
