package tuner

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/tilewright/tilewright/cache"
)

// The claim of a record is that its winner is within some ratio of the best of all plans
// that were tried. Let b be the plan that is truly the best. The claim is wrong only if the
// winner's interval against b misses; whichever plan wins, that is one of N − 1 intervals,
// so each has the error (1 − c)/(N − 1), and the largest of the winner's upper ends holds
// at confidence c. It covers plans that were dropped, and a winner that was chosen by the
// same samples. The intervals hold whenever one looks (atMost), so that it does not matter
// when a race drops a plan or ends.

const (
	certificateConfidence = 0.95

	// most blocks that the comparisons of dropped plans are completed by
	maxSettling = 40
)

// atMost is an upper end of the median of ratios: whatever the number of ratios at which
// one looks, and however that was chosen, the probability that the median ever lies above
// it is at most alpha. It is +Inf where there are too few.
//
// Were the median above the end, each ratio would lie below it with a probability of at
// most ½. A bet of p on that, for p from ½ to 1 by Jeffreys' prior Beta(½, ½), then is a
// supermartingale, which exceeds 1/alpha with a probability of at most alpha (Ville, 1939;
// Howard, Ramdas, McAuliffe and Sekhon, Time-uniform, nonparametric, nonasymptotic
// confidence sequences, 2021).
func atMost(ratios []float64, alpha float64) float64 {
	s := slices.Sorted(slices.Values(ratios))
	for k, r := range s {
		if logBet(k+1, len(s)) >= -math.Log(alpha) {
			return r
		}
	}
	return math.Inf(1)
}

// logBet is the logarithm of what the bet of atMost is worth when s of n ratios lie below
// the end: 2ⁿ⁺¹ · ∫ pˢ(1−p)ⁿ⁻ˢ dBeta(½, ½) over p from ½ to 1.
func logBet(s, n int) float64 {
	a, b := float64(s)+0.5, float64(n-s)+0.5
	upper := mathext.RegIncBeta(b, a, 0.5) // of p above ½
	return float64(n+1)*math.Ln2 + mathext.Lbeta(a, b) - mathext.Lbeta(0.5, 0.5) + math.Log(upper)
}

// fewestBlocks is the number of blocks after which an upper end at alpha is known.
func fewestBlocks(alpha float64) int {
	n := 1
	for logBet(n, n) < -math.Log(alpha) {
		n++
	}
	return n
}

// regretOf is by how much a winner may be slower than the best of the plans that it was
// compared with, at the confidence of all comparisons together; −1, unknown, where one of
// them has too few blocks.
func regretOf(all []cache.Comparison) float64 {
	worst := 1.0
	for _, x := range all {
		if x.AtMost == 0 {
			return -1
		}
		worst = max(worst, x.AtMost)
	}
	return worst - 1
}
