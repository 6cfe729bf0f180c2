package cost

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"
)

// A Sample is a measured plan, as stored.
type Sample struct {
	Group    string // the fusion it belongs to; the fit compares within groups
	Features Features
	Seconds  float64
}

// A correction is a linear function of log features: the log of measured over
// predicted time, relative to a typical plan.
type correction struct {
	Mean, Scale []float64 // of each log feature
	Weights     []float64
	Offset      float64
}

// logs are what the correction is linear in. All are dimensionless logs of
// features; ratios come first, since they say most within one fusion.
func logs(f Features) []float64 {
	l := func(x float64) float64 { return math.Log(math.Max(x, 1e-3)) }
	innermost, outermost := 1.0, 1.0
	if n := len(f.Traffic); n > 0 {
		innermost, outermost = f.Traffic[0], f.Traffic[n-1]
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
	}
}

func (c *correction) residual(f Features) float64 {
	sum := c.Offset
	for k, x := range logs(f) {
		sum += c.Weights[k] * (x - c.Mean[k]) / c.Scale[k]
	}
	return math.Max(-3, math.Min(3, sum)) // a correction is at most a factor of twenty
}

// leastSamples is what a fit needs: with fewer the prior stays as it is.
const leastSamples = 12

// Fit returns the model with its correction fitted to samples: ridge regression
// of log(measured/predicted) on log features, centred within each group, since
// ranking inside a fusion is what is asked of it, and weighted by Huber's
// function, since timings have outliers. The strength of the ridge is the one
// that predicts left-out groups best.
func (m *Model) Fit(samples []Sample) (*Model, error) {
	prior := Roofline(m.device)
	rows := make([]row, 0, len(samples))
	for _, s := range samples {
		if p, _ := prior.Predict(s.Features); p > 0 && s.Seconds > 0 {
			rows = append(rows, row{s.Group, logs(s.Features), math.Log(s.Seconds / p)})
		}
	}
	if len(rows) < leastSamples {
		return prior, nil
	}
	ridge, err := chooseRidge(rows)
	if err != nil {
		return nil, err
	}
	c, err := solve(rows, ridge)
	if err != nil {
		return nil, err
	}
	return &Model{device: m.device, fit: c}, nil
}

type row struct {
	group string
	x     []float64
	y     float64
}

// solve fits with Huber weights, five rounds of which settle them.
func solve(rows []row, ridge float64) (*correction, error) {
	c := standardise(rows)
	n := len(c.Mean)
	centred := centre(rows, c)
	weights := ones(len(rows))
	for range 5 {
		a := mat.NewSymDense(n, nil)
		b := mat.NewVecDense(n, nil)
		for k, r := range centred {
			for i := range n {
				b.SetVec(i, b.AtVec(i)+weights[k]*r.x[i]*r.y)
				for j := i; j < n; j++ {
					a.SetSym(i, j, a.At(i, j)+weights[k]*r.x[i]*r.x[j])
				}
			}
		}
		for i := range n {
			a.SetSym(i, i, a.At(i, i)+ridge)
		}
		var chol mat.Cholesky
		if !chol.Factorize(a) {
			return nil, errors.New("the fit is singular")
		}
		var w mat.VecDense
		if err := chol.SolveVecTo(&w, b); err != nil {
			return nil, err
		}
		c.Weights = w.RawVector().Data
		huber(weights, centred, c.Weights)
	}
	residuals := make([]float64, len(rows))
	for k, r := range rows {
		residuals[k] = r.y - dot(c.Weights, scaled(r.x, c))
	}
	slices.Sort(residuals)
	c.Offset = stat.Quantile(0.5, stat.Empirical, residuals, nil)
	return c, nil
}

func standardise(rows []row) *correction {
	n := len(rows[0].x)
	c := &correction{Mean: make([]float64, n), Scale: make([]float64, n)}
	column := make([]float64, len(rows))
	for i := range n {
		for k, r := range rows {
			column[k] = r.x[i]
		}
		c.Mean[i], c.Scale[i] = stat.MeanStdDev(column, nil)
		if !(c.Scale[i] > 1e-9) {
			c.Scale[i] = 1
		}
	}
	return c
}

func scaled(x []float64, c *correction) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v - c.Mean[i]) / c.Scale[i]
	}
	return out
}

// centre subtracts the mean of its group from every row.
func centre(rows []row, c *correction) []row {
	sums := map[string]*row{}
	counts := map[string]float64{}
	out := make([]row, len(rows))
	for k, r := range rows {
		out[k] = row{r.group, scaled(r.x, c), r.y}
		s := sums[r.group]
		if s == nil {
			s = &row{x: make([]float64, len(r.x))}
			sums[r.group] = s
		}
		counts[r.group]++
		s.y += r.y
		for i, v := range out[k].x {
			s.x[i] += v
		}
	}
	for k := range out {
		s, n := sums[out[k].group], counts[out[k].group]
		out[k].y -= s.y / n
		for i := range out[k].x {
			out[k].x[i] -= s.x[i] / n
		}
	}
	return out
}

// huber weighs residuals beyond 1.345 robust standard deviations down
// (Huber, 1964; 95 % efficient for normal errors).
func huber(weights []float64, rows []row, w []float64) {
	residuals := make([]float64, len(rows))
	for k, r := range rows {
		residuals[k] = math.Abs(r.y - dot(w, r.x))
	}
	sorted := slices.Sorted(slices.Values(residuals))
	limit := 1.345 * math.Max(1e-6, stat.Quantile(0.5, stat.Empirical, sorted, nil)/0.6745)
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

// chooseRidge minimises the squared error on left-out groups (left-out fifths
// when there is one group) over the log of the ridge.
func chooseRidge(rows []row) (float64, error) {
	folds := foldsOf(rows)
	problem := optimize.Problem{Func: func(x []float64) float64 {
		sum := 0.0
		for _, left := range folds {
			sum += heldOut(rows, left, math.Exp(x[0]))
		}
		return sum
	}}
	settings := &optimize.Settings{FuncEvaluations: 25}
	result, err := optimize.Minimize(problem, []float64{math.Log(float64(len(rows)) / 10)}, settings, &optimize.NelderMead{})
	if result == nil {
		return 0, err
	}
	return math.Exp(math.Max(-7, math.Min(15, result.X[0]))), nil
}

// foldsOf assigns rows to at most five folds, whole groups together.
func foldsOf(rows []row) []map[int]bool {
	const most = 5
	of := map[string]int{}
	folds := make([]map[int]bool, most)
	for k, r := range rows {
		if _, ok := of[r.group]; !ok {
			of[r.group] = len(of) % most
		}
		fold := of[r.group]
		if folds[fold] == nil {
			folds[fold] = map[int]bool{}
		}
		folds[fold][k] = true
	}
	if len(of) == 1 {
		clear(folds[0])
		for k := range rows {
			if folds[k%most] == nil {
				folds[k%most] = map[int]bool{}
			}
			folds[k%most][k] = true
		}
	}
	return slices.DeleteFunc(folds, func(f map[int]bool) bool { return f == nil })
}

// heldOut is the squared error on the rows left out of a fit, each group's
// mean taken away.
func heldOut(rows []row, left map[int]bool, ridge float64) float64 {
	var train, test []row
	for k, r := range rows {
		if left[k] {
			test = append(test, r)
		} else {
			train = append(train, r)
		}
	}
	if len(train) < 2 || len(test) == 0 {
		return 0
	}
	c, err := solve(train, ridge)
	if err != nil {
		return math.Inf(1)
	}
	sum := 0.0
	for _, r := range centre(test, c) {
		e := r.y - dot(c.Weights, r.x)
		sum += e * e
	}
	return sum
}
