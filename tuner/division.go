package tuner

import (
	"math"
	"time"
)

// A claim is what a fusion may gain from time of its own. After a setup that gains
// nothing, in which plans are ranked and inputs and reference results made, the
// gain of t more is expected to be
//
//	most · (1 − exp(−t/scale))
//
// because the first plans of the ranking are the likeliest to be better, and what
// a race finds late is little.
type claim struct {
	most  float64       // of seconds in a run of the model that can be saved
	setup time.Duration // before the race
	scale time.Duration // of the race in which 1 − 1/e of most is gained
	limit time.Duration // of the race; 0 is none
}

// gain is the expected gain of t, the setup included, in seconds.
func (c claim) gain(t time.Duration) float64 {
	if t <= c.setup {
		return 0
	}
	race := float64(t - c.setup)
	if c.limit > 0 {
		race = min(race, float64(c.limit))
	}
	return c.most * (1 - math.Exp(-race/float64(c.scale)))
}

// at is the time, the setup included, beyond which another second gains less than
// price; 0 where the whole is not worth that.
func (c claim) at(price float64) time.Duration {
	scale := c.scale.Seconds()
	slope := c.most / scale // of the gain at the beginning of the race
	if slope <= price {
		return 0
	}
	race := time.Duration(min(math.MaxInt64/4, scale*math.Log(slope/price)*float64(time.Second)))
	if c.limit > 0 {
		race = min(race, c.limit)
	}
	t := c.setup + race
	if c.gain(t) < price*t.Seconds() {
		return 0
	}
	return t
}

// rate is the gain of a second at the time that is divided to a claim, on average.
func (c claim) rate(t time.Duration) float64 {
	if t <= 0 {
		return 0
	}
	return c.gain(t) / t.Seconds()
}

// divide divides a time among claims so that the last second gains equally much
// wherever it goes: each claim gets its time at one price, and the price is the
// lowest for which the sum is not more than there is. Where the limits of all
// claims fit, each gets its limit.
func divide(total time.Duration, claims []claim) []time.Duration {
	const rounds = 100 // of bisection, in the logarithm of the price
	low, high := 1e-18, 0.0
	for _, c := range claims {
		high = max(high, c.most/c.scale.Seconds())
	}
	if timesAt(low, claims, nil) <= total {
		high = low
	}
	for range rounds {
		if high <= low*(1+1e-9) {
			break
		}
		price := math.Sqrt(low * high)
		if timesAt(price, claims, nil) > total {
			low = price
		} else {
			high = price
		}
	}
	times := make([]time.Duration, len(claims))
	timesAt(high, claims, times)
	return times
}

// timesAt is the sum of the times of claims at a price; into, unless nil, receives
// them.
func timesAt(price float64, claims []claim, into []time.Duration) (sum time.Duration) {
	for k, c := range claims {
		t := c.at(price)
		if into != nil {
			into[k] = t
		}
		sum += min(t, math.MaxInt64/2-sum)
	}
	return sum
}
