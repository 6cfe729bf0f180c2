package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Settings of a guided search. The zero value of every field is a sensible choice.
type Settings struct {
	// Prior holds the seconds that a model predicts for each point; nil means that
	// nothing is predicted. A prediction that is not positive and finite is none.
	Prior []float64
	// Doubt holds how unsure each prediction is: the standard deviation of its logarithm,
	// of which only the ratios matter; nil means that all are equally unsure.
	Doubt []float64
	// Seed decides where the search begins, and between points that are equally good.
	Seed uint64
	// First are points that are evaluated before anything is learned, for instance
	// those that were best in a similar space.
	First []int
	// Evaluations are how many there will be; 0 means that this is not known. The last
	// ones go to the neighbourhood of the best point.
	Evaluations int
}

// A Guided search learns from what it has observed: a Gaussian process over the price
// says what every point is expected to take and how sure that is (surrogate). The
// next point is, in this order,
//
//   - one of Settings.First, or the cheapest one, or the centre of the space;
//   - once the covariance was fitted every third time, as long as there are directions that
//     no observation has taken, and every time where the evaluations that are left are no
//     more than these: a point with a value above, or below, that of the first point. What the price
//     believes does not keep a direction from being tried once;
//   - near the end, or once little is expected: the neighbourhood of the best point,
//     all values of single parameters, then pairs of steps, whatever is predicted;
//   - where that is exhausted, every second time: a point that differs from all that
//     were observed in as many parameters as there is one;
//   - otherwise the point of the largest expected improvement; every fourth time that of a
//     process without a price and with the covariance of the beginning: one that was
//     fitted to neighbours is too sure of what is far from them.
type Guided struct {
	space    *Space
	settings Settings
	rng      *rand.Rand
	model    *surrogate
	broad    *surrogate // as it was before anything was fitted, and without a price
	failures *failures
	trials   []Trial
	best     Trial // of the least time; a failure as long as all failed
	taken    map[int]bool
	probes   *probes
	fitted   int // observations when the covariance was last fitted
}

// Numbers of a guided search.
const (
	firstFit     = 6    // observations before the covariance is fitted
	fitEvery     = 8    // it is fitted again after an eighth more
	maxPool      = 8192 // points that are predicted at a time
	broadEvery   = 4    // evaluations of which one trusts nothing that was fitted
	probeEvery   = 3    // evaluations of which one takes new directions
	littleGain   = 2e-3 // expected improvement below which the neighbourhood goes first
	priceTie     = 0.02 // prices that differ by less say the same
	closingShare = 4    // of the evaluations, one in so many is at the end
)

// NewGuided begins a guided search.
func NewGuided(s *Space, settings Settings) *Guided {
	return &Guided{
		space:    s,
		settings: settings,
		rng:      generator(settings.Seed),
		taken:    map[int]bool{},
		probes:   newProbes(s),
		failures: newFailures(s),
		best:     Trial{Seconds: math.Inf(1)},
		model:    newSurrogate(s, settings.Prior, settings.Doubt),
		broad:    newSurrogate(s, nil, nil),
	}
}

// newSurrogate has no observations; nil are no prices, and equal doubt.
func newSurrogate(s *Space, prices, doubt []float64) *surrogate {
	return &surrogate{
		space: s,
		price: centredLogs(prices, len(s.Points)),
		doubt: relative(doubt),
		trust: 1,
		cov:   newCovariance(s),
	}
}

// relative are positive numbers over their root mean square; nil where there are none.
func relative(doubt []float64) []float64 {
	sum := 0.0
	for _, d := range doubt {
		sum += d * d
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return nil
	}
	mean := math.Sqrt(sum / float64(len(doubt)))
	out := make([]float64, len(doubt))
	for k, d := range doubt {
		out[k] = max(leastDoubt, d/mean)
	}
	return out
}

// leastDoubt is the least of a prediction, over the mean: a model that is sure may be
// wrong all the same.
const leastDoubt = 0.5

// centredLogs are the logarithms of prices minus their mean; what is no price, because
// the model believes that the point cannot run, is a mean one.
func centredLogs(prices []float64, n int) []float64 {
	out := make([]float64, n)
	if prices == nil {
		return out
	}
	sum, count := 0.0, 0.0
	for k, p := range prices {
		out[k] = math.Log(p)
		if priced(p) {
			sum += out[k]
			count++
		}
	}
	for k, p := range prices {
		out[k] -= sum / count
		if !priced(p) {
			out[k] = 0
		}
	}
	return out
}

// priced reports whether a prediction is a price.
func priced(p float64) bool { return p > 0 && !math.IsInf(p, 1) }

// Observe tells what the evaluation of a point gave. A point that was observed before
// is replaced, and one that Next did not name is welcome.
func (g *Guided) Observe(t Trial) {
	g.taken[t.Point] = true
	g.probes.take(g.space.Points[t.Point])
	known := slices.IndexFunc(
		g.trials,
		func(u Trial) bool { return u.Point == t.Point },
	)
	if known < 0 {
		g.trials = append(g.trials, t)
	} else {
		g.trials[known] = t
		g.model.pool = nil // all is predicted again
	}
	g.failures.observe(g.trials)
	g.best = slices.MinFunc(g.trials, func(a, b Trial) int {
		return cmp.Compare(a.Seconds, b.Seconds)
	})
}

// Parameters are those of the space.
func (g *Guided) Parameters() []Parameter { return g.space.Parameters }

// Probed says whether values below and above that of the first point are known of parameter
// i, from a space that is alike: no point is evaluated for the sake of these directions. It
// does nothing for a parameter without an order.
func (g *Guided) Probed(i int, directions [2]bool) {
	if g.space.Parameters[i].Unordered {
		return
	}
	for d, known := range directions {
		g.probes.taken[i][d] = g.probes.taken[i][d] || known
	}
}

// Next are at most n points that were neither observed nor named before. Those after
// the first are chosen as if the ones before had taken what is expected of them.
func (g *Guided) Next(n int) []int {
	var out []int
	if g.timed() > 0 {
		g.learn()
	}
	mark, broad := g.model.mark(), g.broad.mark()
	for len(out) < n && len(g.taken) < len(g.space.Points) {
		k := g.choose()
		out = append(out, k)
		g.taken[k] = true
		g.probes.take(g.space.Points[k])
		if len(out) < n && g.timed() > 0 {
			g.model.believe(k)
			g.broad.believe(k)
		}
	}
	g.model.reset(mark)
	g.broad.reset(broad)
	return out
}

// Gain is by which share of the best time the fastest of another n points is expected to be
// below it, as the surrogate believes: of the n that look best of those that were neither
// observed nor named. They are taken for independent of each other, which says too much
// rather than too little. It is 0 where there are none, or where nothing was timed.
func (g *Guided) Gain(n int) float64 {
	if g.timed() == 0 || len(g.taken) == len(g.space.Points) {
		return 0
	}
	g.learn()
	m, gains := g.model, g.gains(g.model)
	var next []int
	for k, x := range m.pool {
		if !g.taken[x] {
			next = append(next, k)
		}
	}
	slices.SortFunc(next, func(a, b int) int {
		return cmp.Compare(gains[b], gains[a])
	})
	means, low := m.means(), m.scale(g.best.Seconds)
	var all []normal
	for _, k := range next[:min(max(0, n), len(next))] {
		all = append(all, normal{
			mean:  means[k],
			s:     math.Sqrt(max(m.vary[k], leastVariance)),
			share: 1 - g.failures.probability(m.pool[k]),
		})
	}
	return expectedGain(low, all)
}

// timed is how many observations have a time. Before the first of them there is nothing
// to learn from.
func (g *Guided) timed() int {
	n := 0
	for _, t := range g.trials {
		if !t.Failed() {
			n++
		}
	}
	return n
}

// choose is the next point.
func (g *Guided) choose() int {
	for _, k := range g.settings.First {
		if !g.taken[k] {
			return k
		}
	}
	if g.timed() == 0 {
		return g.start()
	}
	m := g.model
	if len(g.taken)%broadEvery == 0 {
		m = g.broad
	}
	gains := g.gains(m)
	// Before the first fit all points are as unsure, and the expected improvement goes
	// far by itself.
	turn := g.fitted > 0 && len(g.taken)%probeEvery == probeEvery-1
	if turn || g.late() {
		if k, found := g.probe(gains); found {
			return k
		}
	}
	k, gain := g.largest(gains)
	if gain > littleGain && !g.closing() {
		return k
	}
	if near, found := g.neighbour(gains); found {
		return near
	}
	if len(g.taken)%2 == 0 {
		return g.farthest()
	}
	return k
}

// start is where a search begins: the cheapest point, or the centre of the space; after
// failures the next cheapest, or a point at random.
func (g *Guided) start() int {
	if g.settings.Prior != nil {
		return g.cheapest()
	}
	if len(g.taken) == 0 {
		return g.space.centre(g.rng)
	}
	return g.anyone()
}

// cheapest is the point of the least price that was not taken; of several whose prices are
// within priceTie of it the nearest to the centre, because what the price does not see is
// best where people look first.
func (g *Guided) cheapest() int {
	low := math.Inf(1)
	for k, p := range g.settings.Prior {
		if !g.taken[k] && priced(p) {
			low = min(low, p)
		}
	}
	var out []int
	for k, p := range g.settings.Prior {
		if !g.taken[k] && priced(p) && p <= low*(1+priceTie) {
			out = append(out, k)
		}
	}
	if out == nil {
		return g.anyone()
	}
	return g.space.nearest(g.space.target(g.rng), out)
}

// anyone is a random point that was not taken.
func (g *Guided) anyone() int {
	k := g.rng.IntN(len(g.space.Points))
	for g.taken[k] {
		k = (k + 1) % len(g.space.Points)
	}
	return k
}

// closing reports whether the evaluations that are left are for the neighbourhood.
func (g *Guided) closing() bool {
	n := g.settings.Evaluations
	return n > 0 && len(g.taken) >= n-n/closingShare
}

// late reports whether each evaluation that is left is needed for a new direction.
func (g *Guided) late() bool {
	n := g.settings.Evaluations
	return n > 0 && g.probes.left() >= n-len(g.taken)
}

// gains are the expected improvements of the pool, as a share of the best time, times
// the probability that a point does not fail.
func (g *Guided) gains(m *surrogate) []float64 {
	mean := m.means()
	low := m.scale(g.best.Seconds)
	out := make([]float64, len(mean))
	for k, x := range m.pool {
		if !g.taken[x] {
			out[k] = improvement(
				low,
				mean[k],
				m.vary[k],
			)
			out[k] *= 1 - g.failures.probability(x)
		}
	}
	return out
}

// largest is the point of the pool with the largest gain that was not taken, and that
// gain; anything, with a gain of 0, where the pool has no such point.
func (g *Guided) largest(gains []float64) (int, float64) {
	best, most := -1, math.Inf(-1)
	for k, x := range g.model.pool {
		if gains[k] > most && !g.taken[x] {
			best, most = x, gains[k]
		}
	}
	if best < 0 {
		return g.anyone(), 0
	}
	return best, most
}

// probe is the point that takes new directions with the largest gain for all of them: the
// expected improvement times their number. A point without any is still tried when
// there is no other in its direction.
func (g *Guided) probe(gains []float64) (int, bool) {
	best, most := -1, -1.0
	for k, x := range g.model.pool {
		if g.taken[x] {
			continue
		}
		n := g.probes.fresh(g.space.Points[x])
		gain := float64(n) * (gains[k] + math.SmallestNonzeroFloat64)
		if n > 0 && gain > most {
			best, most = x, gain
		}
	}
	return best, best >= 0
}

// neighbour is the point of the best one's neighbourhood that was not taken and has
// the largest gain: of single parameters first, then of pairs.
func (g *Guided) neighbour(gains []float64) (int, bool) {
	gain := func(point int) float64 {
		k, there := slices.BinarySearch(g.model.pool, point)
		if !there {
			return 0
		}
		return gains[k]
	}
	x := g.space.Points[g.best.Point]
	for _, around := range [][]int{g.space.neighbours(x), g.space.pairs(x)} {
		around = slices.DeleteFunc(
			around,
			func(k int) bool { return g.taken[k] },
		)
		if len(around) > 0 {
			return slices.MaxFunc(around, func(a, b int) int {
				return cmp.Compare(gain(a), gain(b))
			}), true
		}
	}
	return 0, false
}

// farthest is a point that differs from the observed ones in the most parameters.
func (g *Guided) farthest() int {
	best, most := g.anyone(), -1
	for _, x := range g.model.pool {
		if g.taken[x] {
			continue
		}
		least := len(g.space.Parameters)
		for _, t := range g.trials {
			least = min(
				least,
				differences(g.space.Points[x], g.space.Points[t.Point]),
			)
		}
		if least > most {
			best, most = x, least
		}
	}
	return best
}

// differences are the parameters in which two points differ.
func differences(x, y []int) int {
	n := 0
	for i := range x {
		if x[i] != y[i] {
			n++
		}
	}
	return n
}

// learn brings the surrogate up to what was observed. The covariance is fitted again when
// there is an eighth more to fit it to; then everything is predicted anew. A search that
// is told at once what another one observed in turn comes to the same predictions.
func (g *Guided) learn() {
	m := g.model
	for n := nextFit(g.fitted); n <= len(g.trials); n = nextFit(n) {
		m.setValues(g.trials[:n])
		if len(m.points) > 0 {
			m.fit()
		}
		g.fitted = n
		m.pool = nil
	}
	pool := m.pool
	if pool == nil {
		pool = g.pool()
	}
	m.update(g.trials, pool)
	g.broad.update(g.trials, pool)
}

// nextFit is the number of observations at which the covariance is fitted after it was
// at n; 0 means never.
func nextFit(n int) int {
	if n == 0 {
		return firstFit
	}
	return n + max(2, n/fitEvery)
}

// pool are the points that are predicted: all, or a sample and the neighbours of the
// best one.
func (g *Guided) pool() []int {
	all := len(g.space.Points)
	if all <= maxPool {
		out := make([]int, all)
		for k := range out {
			out[k] = k
		}
		return out
	}
	x := g.space.Points[g.best.Point]
	out := append(
		g.space.neighbours(x),
		g.space.pairs(x)...,
	)
	for range maxPool {
		out = append(out, g.rng.IntN(all))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
