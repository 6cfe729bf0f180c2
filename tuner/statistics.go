package tuner

import (
	"math"

	"github.com/tilewright/tilewright/kernels/check"
)

// paired is the interval of x's time over y's, from the blocks that both were
// in.
func paired(x, y *candidate, confidence float64) check.PairedInterval {
	if x == y {
		return check.PairedInterval{Median: 1, Lo: 1, Hi: 1}
	}
	a, b := commonBlocks(x, y)
	return check.Paired(a, b, confidence)
}

// commonBlocks lists the samples of the blocks that both were in.
func commonBlocks(x, y *candidate) (a, b []float64) {
	sampleOf := make(map[int]float64, len(y.trial.Blocks))
	for k, block := range y.trial.Blocks {
		sampleOf[block] = y.trial.Samples[k]
	}
	for k, block := range x.trial.Blocks {
		if s, ok := sampleOf[block]; ok {
			a = append(a, x.trial.Samples[k])
			b = append(b, s)
		}
	}
	return a, b
}

// farSlower reports whether x was slower than the best by earlyDropRatio in
// every block, of which there were at least two.
func farSlower(x, best *candidate) bool {
	a, b := commonBlocks(x, best)
	for k := range a {
		if a[k] < earlyDropRatio*b[k] {
			return false
		}
	}
	return len(a) >= 2
}

// ties are the remaining candidates that cannot be told from x: the interval of
// their ratio contains 1 and its median is within the margin.
func (r *race) ties(x *candidate) []*candidate {
	var ties []*candidate
	for _, y := range r.live() {
		ratio := paired(y, x, recordConfidence)
		equal := ratio.Lo <= 1 && ratio.Hi >= 1 &&
			ratio.Median < 1+r.tuner.Options.margin()
		if y == x || equal {
			ties = append(ties, y)
		}
	}
	return ties
}

// regret bounds how much slower the winner can be than the best candidate: the
// largest upper end, at recordConfidence, of the winner's time over another's,
// minus 1. It is −1, unknown, when there were too few blocks, or nothing but the default.
func (r *race) regret(winner *candidate) float64 {
	if r.defaultOnly || r.tuner.visit.defaultOnly {
		return -1
	}
	worst := 0.0
	for _, x := range r.live() {
		if x == winner {
			continue
		}
		hi := paired(winner, x, recordConfidence).Hi
		if math.IsInf(hi, 1) {
			return -1
		}
		worst = max(worst, hi-1)
	}
	return worst
}

// finite replaces an unknown upper end, which JSON does not have, by 0.
func finite(x float64) float64 {
	if math.IsInf(x, 0) {
		return 0
	}
	return x
}
