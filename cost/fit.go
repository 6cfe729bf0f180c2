package cost

import (
	"math"
	"slices"

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
	numbers []Number
	seconds float64
}

const (
	// A calibration needs this many samples; with fewer the prior stays as it
	// is.
	minSamples = 4
	// A correction needs this many samples.
	minCorrectionSamples = 48
)

// Fit returns the prior fitted to samples: first the terms are calibrated, then a Gaussian
// process corrects what is left. Samples whose terms are not those of the last one are left out: they
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
		out.residual, err = fitResidual(rows, factors, &terms)
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
			numbers: s.Features.Plan,
			seconds: s.Seconds,
		})
	}
	return rows, terms
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
