package search

import "math"

// A hyperparameter is a number of the covariance that is fitted: its logarithm has a
// normal prior.
type hyperparameter struct {
	value  func(*covariance) *float64
	median float64
	spread float64 // of the logarithm
}

// varianceHyperparameters are the variances; the lengths have lengthMedian and
// lengthSpread.
var varianceHyperparameters = []hyperparameter{
	{func(c *covariance) *float64 { return &c.main }, 0.5, 1},
	{func(c *covariance) *float64 { return &c.pair }, 0.3, 1},
	{func(c *covariance) *float64 { return &c.joint }, 0.1, 1},
	{func(c *covariance) *float64 { return &c.slope }, 0.1, 1.5},
	{func(c *covariance) *float64 { return &c.noise }, 1e-4, 1.5},
}

// The prior of the lengths, in the unit of positions.
const (
	lengthMedian = 1
	lengthSpread = 1
)

// plausibility is the logarithm of the prior density of the numbers.
func (c *covariance) plausibility() float64 {
	sum := 0.0
	for _, h := range varianceHyperparameters {
		d := math.Log(*h.value(c)/h.median) / h.spread
		sum -= d * d / 2
	}
	for _, l := range c.lengths {
		d := math.Log(l/lengthMedian) / lengthSpread
		sum -= d * d / 2
	}
	return sum
}

// fit climbs to a covariance that explains the observations: each number in turn is
// multiplied or divided by a factor while that helps, and the factor shrinks.
func (g *surrogate) fit() {
	best := g.fitTrust()
	for _, factor := range []float64{3, 1.7} {
		for _, h := range varianceHyperparameters {
			best = g.climb(
				h.value(g.cov),
				best,
				factor,
				func() {},
			)
		}
		for i := range g.cov.lengths {
			best = g.climb(&g.cov.lengths[i], best, factor, func() {
				g.cov.resize(i)
			})
		}
	}
}

// Values of the trust in the price, and the spread of the normal prior around 1.
var trusts = []float64{1, 0.75, 0.5, 0.25, 0}

const trustSpread = 0.5

// fitTrust chooses the trust with the most evidence, and returns that.
func (g *surrogate) fitTrust() float64 {
	best, at := math.Inf(-1), g.trust
	for _, g.trust = range trusts {
		if e := g.evidence(); e > best {
			best, at = e, g.trust
		}
	}
	g.trust = at
	return best
}

// climb moves one number by a factor while the evidence grows; changed is called after
// each change.
func (g *surrogate) climb(
	number *float64, best, factor float64, changed func(),
) float64 {
	for _, f := range []float64{factor, 1 / factor} {
		for moved := false; ; moved = true {
			old := *number
			*number = old * f
			changed()
			now := g.evidence()
			if !(now > best) {
				*number = old
				changed()
				if moved {
					return best
				}
				break
			}
			best = now
		}
	}
	return best
}
