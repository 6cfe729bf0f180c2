package search

import (
	"math"
	"math/bits"
)

// A covariance says how much the residuals of two points have to do with each other:
//
//	c(x, y) = level + Σ_i main·k_i/P + Σ_{i<j} pair·k_i·k_j/(P(P−1)/2) + joint·Π_i k_i + slope·p(x)·p(y)
//
// over P features, with k_i = exp(−|position difference|/length_i), p the logarithm
// of the price. The sums are the additive Gaussian process of Duvenaud, Nickisch and
// Rasmussen (NIPS 2011): effects of single features and of pairs are learned from few
// points, and the product lets it be wrong about both far from them.
type covariance struct {
	level, main, pair, joint, slope float64 // variances
	noise                           float64 // variance of an observation
	features                        []feature
	lengths                         []float64
	// similar[i][v][w] is k_i of the values v and w of the feature's parameter.
	similar [][][]float64
}

// newCovariance is the covariance before anything was observed.
func newCovariance(s *Space) *covariance {
	c := &covariance{
		level: 1, main: 0.5, pair: 0.3, joint: 0.1, slope: 0.1, noise: 1e-4,
		features: s.features(),
	}
	c.lengths = make([]float64, len(c.features))
	c.similar = make(
		[][][]float64,
		len(c.features),
	)
	for i := range c.lengths {
		c.lengths[i] = 1
		c.resize(i)
	}
	return c
}

// resize computes the table of feature i after its length has changed.
func (c *covariance) resize(i int) {
	at := c.features[i].positions
	table := make([][]float64, len(at))
	for v := range at {
		table[v] = make([]float64, len(at))
		for w := range at {
			d := math.Abs(at[v] - at[w])
			if c.features[i].unordered && v != w {
				d = 1
			}
			table[v][w] = math.Exp(-d / c.lengths[i])
		}
	}
	c.similar[i] = table
}

// of is the covariance of two points, whose prices have the logarithms p and q.
func (c *covariance) of(x, y []int, priceX, priceY float64) float64 {
	sum, squares, product := 0.0, 0.0, 1.0
	for i := range c.features {
		p := c.features[i].parameter
		k := c.similar[i][x[p]][y[p]]
		sum += k
		squares += k * k
		product *= k
	}
	n := float64(len(c.features))
	pairs := (sum*sum - squares) / max(
		1,
		n*(n-1),
	)
	return c.level + c.main*sum/n + c.pair*pairs + c.joint*product + c.slope*priceX*priceY
}

// A feature is a number that the values of a parameter have.
type feature struct {
	parameter int
	positions []float64 // of its values, in [0, 1]
	unordered bool
}

// features are the position of every parameter and, where that is another order, how
// often two divides its values: what a multiple of a vector, a warp or a cache line
// gains does not depend on its size.
func (s *Space) features() []feature {
	var out []feature
	for i, p := range s.Parameters {
		out = append(
			out,
			feature{i, s.positions[i], p.Unordered},
		)
		if even := p.evenness(); even != nil {
			out = append(out, feature{i, even, false})
		}
	}
	return out
}

// evenness are how often two divides each value, over the most of any; nil where the
// order of the values says it already, or they are no positive integers.
func (p Parameter) evenness() []float64 {
	var out []float64
	most, sorted := 0.0, true
	for k, v := range p.Numbers {
		if v < 1 || v != math.Trunc(v) || v > math.MaxInt32 {
			return nil
		}
		n := float64(bits.TrailingZeros64(uint64(v)))
		sorted = sorted && (k == 0 || n > out[k-1])
		most = max(most, n)
		out = append(out, n)
	}
	if sorted || most == 0 {
		return nil
	}
	for k := range out {
		out[k] /= most
	}
	return out
}
