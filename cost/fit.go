package cost

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"
)

// A Sample is a measured plan, as stored.
type Sample struct {
	Group    string // the fusion it belongs to; the fit compares within groups
	Features Features
	Seconds  float64
}

// A row is a sample as the fit sees it.
type row struct {
	group   string
	terms   []float64 // raw, seconds
	logs    []float64
	seconds float64
}

const (
	minSamples           = 4  // a calibration needs; with fewer the prior stays as it is
	minCorrectionSamples = 48 // samples a correction needs, twice over for each of its features
)

// Fit returns the device's roofline fitted to samples: first its terms are
// calibrated, then what is left is corrected. Samples that cannot be of this
// device are left out. With few samples the result is near the prior; with
// none it is the prior.
func (m *Model) Fit(samples []Sample) (*Model, error) {
	out := Roofline(m.device)
	rows := make([]row, 0, len(samples))
	for _, s := range samples {
		if s.Features.plausible(&m.device) &&
			s.Seconds > 0 &&
			!math.IsInf(s.Seconds, 0) {
			rows = append(rows, row{
				s.Group,
				rawTerms(nil, &s.Features, &m.device),
				logs(&s.Features),
				s.Seconds,
			})
		}
	}
	if len(rows) < minSamples {
		return out, nil
	}
	theta, err := calibrate(rows, overlapOf(&m.device))
	if err != nil {
		return nil, err
	}
	out.samples = len(rows)
	for k, t := range theta {
		out.factors[k] = math.Exp(t)
	}
	if len(rows) >= minCorrectionSamples {
		out.fit, err = correct(
			rows, out.factors, overlapOf(&m.device),
		)
	}
	return out, err
}

// A correction is a linear function of log features: the log of measured over
// calibrated time.
type correction struct {
	Mean    []float64 `json:"mean"`  // of each log feature
	Scale   []float64 `json:"scale"` // their standard deviations
	Weights []float64 `json:"weights"`
	Offset  float64   `json:"offset"`
}

// logs are what the correction is linear in: logs of ratios and sizes that the
// terms do not know.
func logs(f *Features) []float64 {
	l := func(x float64) float64 {
		return math.Log(math.Max(x, 1e-3))
	}
	innermost, outermost := 1.0, 1.0
	if n := len(f.Traffic); n > 0 {
		innermost = f.Traffic[0]
		outermost = f.Traffic[n-1]
	}
	return []float64{
		l(f.PaddedFLOPs / math.Max(f.FLOPs, 1)),
		l(f.Waves),
		l(f.Lanes),
		l(f.InnerRun),
		l(f.Scratch),
		l(f.Scratch) * l(f.Scratch) / 20,
		l(f.Tiles / f.Lanes),
		l(f.Steps / math.Max(f.Tiles, 1)),
		l(outermost / math.Max(innermost, 1)),
		l(f.PaddedFLOPs / math.Max(f.Steps, 1)),
		l(f.PaddedFLOPs / math.Max(f.Rows, 1)),
	}
}

// maxCorrection is the most a correction does, log: a factor of 2.7. It
// refines what the terms say; it is not to contradict them far from its samples.
const maxCorrection = 1

func (c *correction) residual(f *Features) float64 {
	sum := c.Offset
	for k, x := range logs(f) {
		sum += c.Weights[k] * (x - c.Mean[k]) / c.Scale[k]
	}
	return math.Max(-maxCorrection, math.Min(maxCorrection, sum))
}

// plausible is for a correction that was read.
func (c *correction) plausible() bool {
	n := len(logs(&Features{Lanes: 1}))
	if len(c.Mean) != n ||
		len(c.Scale) != n ||
		len(c.Weights) != n {
		return false
	}
	for _, x := range slices.Concat(
		c.Mean, c.Scale, c.Weights,
		[]float64{c.Offset},
	) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return !slices.ContainsFunc(c.Scale, func(x float64) bool {
		return x <= 0
	})
}

// correct fits a correction to what calibration leaves: ridge regression on
// standardised log features, centred within each group, since ranking inside a
// fusion is what is asked of it, and weighted by Huber's function, since
// timings have outliers. The strength of the ridge is the one that predicts
// left-out groups best.
func correct(rows []row, factors []float64, o overlap) (*correction, error) {
	c := standardise(rows)
	x := make([][]float64, len(rows))
	y := make([]float64, len(rows))
	for k, r := range rows {
		x[k] = c.scaled(r.logs)
		total := 0.0
		for i, w := range overlapped(r.terms, factors, o) {
			total += r.terms[i] * w
		}
		y[k] = math.Log(r.seconds / total)
	}
	left := slices.Clone(y)
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
		left[k] -= dot(c.Weights, c.scaled(r.logs))
	}
	slices.Sort(left)
	c.Offset = stat.Quantile(0.5, stat.Empirical, left, nil)
	return c, nil
}

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

func (c *correction) scaled(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v - c.Mean[i]) / c.Scale[i]
	}
	return out
}

// robust is ridge regression with Huber weights, five rounds of which settle them.
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

// huber weighs residuals beyond 1.345 robust standard deviations down
// (Huber, 1964; 95 % efficient for normal errors).
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

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func ones(n int) []float64 {
	v := make([]float64, n)
	for k := range v {
		v[k] = 1
	}
	return v
}

// The ridge is sought between e^least and e^most, in samples.
const (
	minLogRidge = -3
	maxLogRidge = 12
)

// chooseRidge minimises the squared error on left-out groups over the log of
// the ridge.
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

func bounded(x float64) float64 {
	return math.Max(minLogRidge, math.Min(maxLogRidge, x))
}
