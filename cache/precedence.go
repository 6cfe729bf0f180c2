package cache

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// supersedes reports whether r replaces old in the database. The first of the
// following rules that distinguishes the two records decides. Each rule is
// antisymmetric, so the outcome does not depend on which record came first:
//
//   - a verified record beats one that is not;
//   - a timed record beats a predicted one;
//   - of records from different safe contexts, whose times are not comparable,
//     the newer one wins, as it is nearer to what lookups will run on; a date in
//     the future says nothing;
//   - the winner of a race that ended beats a provisional one;
//   - of records with different plans, the one whose race the other's plan was
//     in and lost wins;
//   - of records with different plans, the one that is faster beyond noise wins:
//     the intervals of the speed-up over the same default are disjoint, or,
//     without those, the interquartile ranges of the winners' samples;
//   - the record with more than twice the samples of its winner wins;
//   - the newer record wins.
func (r Record) supersedes(old Record) bool {
	for _, rule := range precedence {
		if by := rule(&r, &old); by != 0 {
			return by > 0
		}
	}
	return true // the two are equal
}

// precedence holds the rules of supersedes. A rule is positive when the first
// record wins, negative when the second does and 0 when it does not distinguish
// them. The last three make the order total.
var precedence = [...]func(a, b *Record) int{
	func(a, b *Record) int { return compareBool(a.Checked, b.Checked) },
	func(a, b *Record) int { return compareBool(!a.Untimed, !b.Untimed) },
	bySafeContext,
	func(a, b *Record) int { return compareBool(!a.Provisional, !b.Provisional) },
	ifPlansDiffer(byRace),
	ifPlansDiffer(byTime),
	bySamples,
	byDate,
	func(a, b *Record) int {
		return cmp.Compare(
			len(a.winnerSamples()), len(b.winnerSamples()),
		)
	},
	func(a, b *Record) int { return strings.Compare(b.Plan, a.Plan) },
	func(a, b *Record) int { return cmp.Compare(b.Seconds, a.Seconds) },
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// bySafeContext prefers the newer of two records from different safe contexts.
func bySafeContext(a, b *Record) int {
	if len(SafeDiff(a.Safe, b.Safe)) == 0 {
		return 0
	}
	return byDate(a, b)
}

// clockSkew is how far the clocks of two machines may be apart.
const clockSkew = 24 * time.Hour

// byDate prefers the newer record. A date in the future comes from a clock that was
// wrong: it counts as the oldest.
func byDate(a, b *Record) int {
	return a.date().Compare(b.date())
}

// date is the record's date, or the zero time where that is in the future.
func (r *Record) date() time.Time {
	if r.When.After(time.Now().Add(clockSkew)) {
		return time.Time{}
	}
	return r.When
}

// ifPlansDiffer restricts a rule to records with different plans.
func ifPlansDiffer(rule func(a, b *Record) int) func(a, b *Record) int {
	return func(a, b *Record) int {
		if a.Plan == b.Plan {
			return 0
		}
		return rule(a, b)
	}
}

// byRace prefers the record that was measured against the plan of the other.
func byRace(a, b *Record) int {
	return compareBool(a.measuredAgainst(b.Plan), b.measuredAgainst(a.Plan))
}

// measuredAgainst reports whether a plan failed, or was timed in a block in which
// the winner of r was timed too.
func (r *Record) measuredAgainst(plan string) bool {
	other := r.trial(plan)
	if other == nil {
		return false
	}
	if other.Failure != "" {
		return true
	}
	winner := r.trial(r.Plan)
	if winner == nil {
		return false
	}
	together := map[int]bool{}
	for _, block := range winner.Blocks {
		together[block] = true
	}
	return slices.ContainsFunc(other.Blocks, func(block int) bool {
		return together[block]
	})
}

// trial is the trial of a plan, nil when there is none.
func (r *Record) trial(plan string) *Trial {
	k := slices.IndexFunc(r.Trials, func(t Trial) bool {
		return t.Plan == plan
	})
	if k < 0 {
		return nil
	}
	return &r.Trials[k]
}

// winnerSamples are the samples of the winning plan.
func (r *Record) winnerSamples() []float64 {
	if t := r.trial(r.Plan); t != nil {
		return t.Samples
	}
	return nil
}

// byTime prefers the faster record where the difference is beyond noise.
func byTime(a, b *Record) int {
	if a.Speedup[0] > 0 &&
		b.Speedup[0] > 0 && a.Default == b.Default {
		return disjoint(a.speedupInterval(), b.speedupInterval())
	}
	return disjoint(interquartile(b.winnerSamples()), interquartile(a.winnerSamples()))
}

// speedupInterval is the interval of Speedup; an upper end of 0 means unknown.
func (r *Record) speedupInterval() [2]float64 {
	hi := r.Speedup[2]
	if hi == 0 {
		hi = math.Inf(1)
	}
	return [2]float64{r.Speedup[1], hi}
}

// interquartile is the interquartile range of samples, in seconds; for fewer than
// four samples it contains every time.
func interquartile(samples []float64) [2]float64 {
	n := len(samples)
	if n < 4 {
		return [2]float64{0, math.Inf(1)}
	}
	s := slices.Sorted(slices.Values(samples))
	return [2]float64{s[n/4], s[n-1-n/4]}
}

// disjoint orders two intervals that do not overlap; it is 0 for those that do.
func disjoint(a, b [2]float64) int {
	return compareBool(a[0] > b[1], b[0] > a[1])
}

// bySamples prefers the record with more than twice the samples of its winner.
func bySamples(a, b *Record) int {
	n := len(a.winnerSamples())
	m := len(b.winnerSamples())
	return compareBool(n > 2*m, m > 2*n)
}
