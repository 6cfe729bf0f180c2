package cost

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"

	"github.com/tilewright/tilewright/kernels"
)

// A Sample is the price of a plan and the time that it took.
type Sample struct {
	// The fusion that it belongs to: the fit compares plans within groups.
	Group    string
	Features Features
	// Measured time.
	Seconds float64
}

// A row is a sample in the form of the fit.
type row struct {
	group   string
	price   kernels.Price
	logs    []float64
	seconds float64
}

const (
	// A calibration needs this many samples; with fewer the prior stays as it
	// is.
	minSamples = 4
	// A correction needs this many samples.
	minCorrectionSamples = 48
)

// Fit returns the prior fitted to samples: first the terms are calibrated, then what is
// left is corrected. Samples whose terms are not those of the last one are left out: they
// are of another revision of the backend. With few samples the result is near the prior;
// with none it is the prior.
func Fit(samples []Sample) (*Model, error) {
	rows, terms := rowsOf(samples)
	if len(rows) < minSamples {
		return &Model{}, nil
	}
	theta, err := calibrate(rows, &terms)
	if err != nil {
		return nil, err
	}
	out := &Model{
		samples: len(rows),
		factors: map[string]float64{},
	}
	factors := make([]float64, len(theta))
	for k, t := range theta {
		factors[k] = math.Exp(t)
		out.factors[terms.Names[k]] = factors[k]
	}
	if len(rows) >= minCorrectionSamples {
		out.correction, err = correct(rows, factors, &terms)
	}
	return out, err
}

// rowsOf selects the samples that a fit can use, and returns the terms that
// they have in common: those of the last plausible sample.
func rowsOf(samples []Sample) (rows []row, terms kernels.PriceTerms) {
	var common *Features
	for k := range slices.Backward(samples) {
		if f := &samples[k].Features; f.plausible() {
			common = f
			break
		}
	}
	if common == nil {
		return nil, terms
	}
	_, terms = common.split()
	for _, s := range samples {
		if !s.Features.plausible() ||
			!s.Features.sameTerms(common) ||
			!(s.Seconds > 0) ||
			math.IsInf(s.Seconds, 0) {
			continue
		}
		price, _ := s.Features.split()
		rows = append(rows, row{
			group:   s.Group,
			price:   price,
			logs:    logs(&price, make([]float64, logCount(len(price.Seconds)))),
			seconds: s.Seconds,
		})
	}
	return rows, terms
}

// A correction is a linear function of logarithms that predicts the logarithm
// of measured over calibrated time.
type correction struct {
	// The terms that it is made for.
	terms []string
	// Mean and standard deviation of each logarithm, by which they are
	// standardised.
	Mean  []float64
	Scale []float64 // their standard deviations
	// Coefficients of the standardised logarithms, and the constant.
	Weights []float64
	Offset  float64
}

// minShare is the smallest share of a price that the correction distinguishes
// from nothing.
const minShare = 1e-3

// logCount is the number of logarithms for some number of terms.
func logCount(terms int) int { return terms + 4 }

// logs writes the logarithms that the correction is linear in: of the price, of
// the share of each term in it, of the lanes, and of the scratch together with
// its square, since both little and much scratch are bad.
func logs(price *kernels.Price, out []float64) []float64 {
	sum := 0.0
	for _, t := range price.Seconds {
		sum += t
	}
	for k, t := range price.Seconds {
		out[k] = math.Log(math.Max(t/sum, minShare))
	}
	n := len(price.Seconds)
	scratch := math.Log(math.Max(price.Scratch, 1))
	out[n] = math.Log(sum)
	out[n+1] = math.Log(math.Max(price.Lanes, 1))
	out[n+2] = scratch
	out[n+3] = scratch * scratch / 20
	return out
}

// maxCorrection bounds the logarithm of the correction: a factor of 2.7. The
// correction refines what the terms say; far from its samples it must not
// contradict them.
const maxCorrection = 1

// residual is the logarithm of measured over calibrated time that is expected
// of a price. scratch has room for the logarithms.
func (c *correction) residual(price *kernels.Price, scratch []float64) float64 {
	sum := c.Offset
	for k, x := range logs(price, scratch) {
		sum += c.Weights[k] * (x - c.Mean[k]) / c.Scale[k]
	}
	return math.Max(-maxCorrection, math.Min(maxCorrection, sum))
}

// correct fits a correction to what calibration leaves: ridge regression on
// standardised logarithms, centred within each group, since ranking inside a
// fusion is what is asked of it, and weighted by Huber's function, since
// timings have outliers. The strength of the ridge is the one that predicts
// left-out groups best.
func correct(
	rows []row, factors []float64, terms *kernels.PriceTerms,
) (*correction, error) {
	c := standardise(rows)
	c.terms = terms.Names
	x := make([][]float64, len(rows))
	y := make([]float64, len(rows))
	weights := make([]float64, len(factors))
	for k, r := range rows {
		x[k] = c.scaled(r.logs)
		total := 0.0
		weigh(
			weights, r.price.Seconds, factors, terms.Overlapping, terms.Hidden,
		)
		for i, w := range weights {
			total += r.price.Seconds[i] * w
		}
		y[k] = math.Log(r.seconds / total)
	}
	residuals := slices.Clone(y)
	g := groupRows(rows)
	g.center(x, y, 0)
	ridge, err := chooseRidge(x, y, g)
	if err != nil {
		return nil, err
	}
	if c.Weights, err = robust(x, y, ridge); err != nil {
		return nil, err
	}
	for k, r := range rows {
		residuals[k] -= dot(c.Weights, c.scaled(r.logs))
	}
	slices.Sort(residuals)
	c.Offset = stat.Quantile(0.5, stat.Empirical, residuals, nil)
	return c, nil
}

// standardise computes the mean and the standard deviation of each logarithm.
func standardise(rows []row) *correction {
	n := len(rows[0].logs)
	c := &correction{
		Mean:  make([]float64, n),
		Scale: make([]float64, n),
	}
	column := make([]float64, len(rows))
	for i := range n {
		for k, r := range rows {
			column[k] = r.logs[i]
		}
		c.Mean[i], c.Scale[i] = stat.MeanStdDev(column, nil)
		if !(c.Scale[i] > 1e-9) {
			c.Scale[i] = 1
		}
	}
	return c
}

// scaled are the standardised logarithms.
func (c *correction) scaled(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v - c.Mean[i]) / c.Scale[i]
	}
	return out
}

// robust is ridge regression with Huber's weights, which settle within five
// rounds.
func robust(
	x [][]float64, y []float64, ridge float64,
) (w []float64, err error) {
	weights := ones(len(y))
	for range 5 {
		a, b := normal(x, y, weights)
		for k := range len(x[0]) {
			a.SetSym(k, k, a.At(k, k)+ridge)
		}
		if w, err = solve(a, b); err != nil {
			return nil, err
		}
		huber(weights, x, y, w)
	}
	return w, nil
}

// huber reduces the weights of residuals beyond 1.345 robust standard
// deviations (Huber, 1964; 95 % efficient for normal errors).
func huber(weights []float64, x [][]float64, y, w []float64) {
	residuals := make([]float64, len(x))
	for k, r := range x {
		residuals[k] = math.Abs(y[k] - dot(w, r))
	}
	sorted := slices.Sorted(slices.Values(residuals))
	limit := 1.345 *
		math.Max(1e-6, stat.Quantile(0.5, stat.Empirical, sorted, nil)/0.6745)
	for k, e := range residuals {
		weights[k] = math.Min(1, limit/math.Max(e, 1e-12))
	}
}

// dot is the scalar product of two vectors.
func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// ones is a vector of ones.
func ones(n int) []float64 {
	v := make([]float64, n)
	for k := range v {
		v[k] = 1
	}
	return v
}

// The ridge is sought between e^least and e^most, in samples.
const (
	// The ridge is searched between e^minLogRidge and e^maxLogRidge, in
	// samples.
	minLogRidge = -3
	maxLogRidge = 12
)

// chooseRidge minimises the squared error on left-out groups over the logarithm
// of the ridge.
func chooseRidge(x [][]float64, y []float64, g groupIndex) (float64, error) {
	folds := crossValParts(x, y, g)
	problem := optimize.Problem{Func: func(at []float64) float64 {
		sum := 0.0
		for k := range folds {
			sum += heldOut(folds, k, math.Exp(bounded(at[0])))
		}
		return sum
	}}
	settings := &optimize.Settings{FuncEvaluations: 30}
	result, err := optimize.Minimize(
		problem,
		[]float64{math.Log(float64(len(y)) / 10)},
		settings, &optimize.NelderMead{},
	)
	if result == nil {
		return 0, err
	}
	return math.Exp(bounded(result.X[0])), nil // the budget of evaluations ends it, which is no failure
}

// bounded limits the logarithm of the ridge.
func bounded(x float64) float64 {
	return math.Max(minLogRidge, math.Min(maxLogRidge, x))
}
