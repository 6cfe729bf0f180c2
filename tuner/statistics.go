package tuner

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
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
// every block, of which there were at least earlyDropBlocks.
func farSlower(x, best *candidate) bool {
	a, b := commonBlocks(x, best)
	for k := range a {
		if a[k] < earlyDropRatio*b[k] {
			return false
		}
	}
	return len(a) >= earlyDropBlocks
}

// ties are the remaining candidates that cannot be told from x: its ratio is within the
// resolution, and the interval contains 1, or the sessions of the race contradict each other.
func (r *race) ties(x *candidate) []*candidate {
	var ties []*candidate
	resolution := r.resolution()
	for _, y := range r.live() {
		ratio := paired(y, x, recordConfidence)
		slower := ratio.Lo > 1 && slices.Min(r.medians(y, x)) > 1
		equal := !slower && ratio.Hi >= 1 && ratio.Median < 1+resolution
		if y == x || equal {
			ties = append(ties, y)
		}
	}
	return ties
}

// A session is the blocks that were timed on the same arrays by the same kernels: a
// visit, or a part of it (raceAnew). Between sessions the pages of arrays and the places of
// code change, and the state of the machine may: what holds in one session only is luck.

// sessionBlocks are the fewest blocks of which the median counts as a session's.
const sessionBlocks = 3

// medians are those of x's time over y's in each session that has some blocks of both, or
// that of all blocks where none has enough; 1 where they have none in common.
func (r *race) medians(x, y *candidate) []float64 {
	var out []float64
	for _, s := range r.sessions(x, y) {
		if len(s.x) >= sessionBlocks {
			out = append(out, medianOf(s.ratios()))
		}
	}
	if len(out) == 0 {
		out = append(out, paired(x, y, recordConfidence).Median)
	}
	return out
}

// A session has the samples of two candidates in the blocks that both were in.
type session struct{ x, y []float64 }

// ratios are those of the blocks.
func (s *session) ratios() []float64 {
	out := make([]float64, len(s.x))
	for k, t := range s.x {
		out[k] = t / s.y[k]
	}
	return out
}

// sessions are the common blocks of earlier visits, and of both parts of this one.
func (r *race) sessions(x, y *candidate) (all [3]session) {
	times := make(map[int]float64, len(y.trial.Blocks))
	for k, block := range y.trial.Blocks {
		times[block] = y.trial.Samples[k]
	}
	for k, block := range x.trial.Blocks {
		s := &all[1]
		switch {
		case block < r.first:
			s = &all[0]
		case r.anew > 0 && block >= r.anew:
			s = &all[2]
		}
		if t, both := times[block]; both {
			s.x = append(s.x, x.trial.Samples[k])
			s.y = append(s.y, t)
		}
	}
	return all
}

// medianOf is that of some numbers, of which there is at least one.
func medianOf(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// beats reports whether x is faster than y beyond doubt in all blocks together, by more than
// the resolution, and in each session by the margin, undisturbed too; and not only because
// other work takes lanes that y would have, or of where the cores of lanes are.
func (r *race) beats(x, y *candidate) bool {
	if r.favours(x, y) || r.withinHandover(x, y) {
		return false
	}
	gain := paired(y, x, recordConfidence)
	margin := 1 + r.tuner.Options.margin()
	return gain.Lo > 1 &&
		gain.Median >= 1+r.resolution() &&
		slices.Min(r.medians(y, x)) >= margin &&
		r.undisturbed(y, x) >= margin
}

// favours reports whether other work may be why x seems faster than y: it ran in the blocks
// that count, and x takes fewer lanes. A plan of n lanes that has only m of them takes n/m
// times as long, at most, so that a larger difference is not due to that. Which of the two
// a quiet machine would prefer is not known then.
func (r *race) favours(x, y *candidate) bool {
	fewer, more := x.Price.Lanes, y.Price.Lanes
	if fewer < 1 || fewer >= more || !r.busy() {
		return false
	}
	seems := paired(y, x, recordConfidence).Median
	return seems > 1 && seems < more/fewer
}

// withinHandover reports whether two plans differ in lanes, and by so little that where
// the lanes' cores are decides which one is faster.
func (r *race) withinHandover(x, y *candidate) bool {
	b, ok := r.tuner.Backend.(kernels.HandoverBackend)
	a, c := x.Price.Lanes, y.Price.Lanes
	if !ok || a < 1 || c < 1 || a == c {
		return false
	}
	return math.Abs(x.trial.Median()-y.trial.Median()) < b.Handover()
}

// shortShare is the share of samples that are shorter than those by which undisturbed times
// are compared: few, since most may be disturbed, and not the shortest, which is luck.
const shortShare = 1.0 / 8

// undisturbed is x's time over y's when nothing else runs, in the session where that is least:
// the ratio of short samples of each. Other work, and a thread that wakes late, make samples
// longer and never shorter, but not those of all plans by as much, so that the median ratio
// of a busy machine is another one. It is 1 where no session has enough blocks of both.
func (r *race) undisturbed(x, y *candidate) float64 {
	least := math.Inf(1)
	for _, s := range r.sessions(x, y) {
		if len(s.x) >= sessionBlocks {
			least = min(least, shortOf(s.x)/shortOf(s.y))
		}
	}
	if math.IsInf(least, 1) {
		return 1
	}
	return least
}

// shortOf is a short one of some samples, of which there is at least one.
func shortOf(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	return s[int(shortShare*float64(len(s)))]
}

// untold reports whether a winner cannot be told from another plan that ran, in a way that
// would hold in another session: their ratio is within the resolution, or that of their short
// samples is on a busy machine, or other work favours the one of fewer lanes, or the places
// of cores decide, or the winner does not beat it in spite of a full race, or it was dropped by a few blocks and the interval of all contains 1.
func (r *race) untold(winner, x *candidate) bool {
	both, _ := commonBlocks(x, winner)
	ratio := paired(x, winner, recordConfidence)
	switch {
	case len(both) == 0:
		return false
	case r.favours(winner, x), r.favours(x, winner), r.withinHandover(winner, x):
		return true
	case ratio.Median < 1+r.resolution(),
		r.busy() && len(both) >= sessionBlocks && r.undisturbed(x, winner) < 1+r.resolution():
		return true
	case x.trial.Dropped: // the interval of too few blocks begins at 0
		return ratio.Lo > 0 && ratio.Lo <= 1
	}
	return !r.beats(winner, x)
}

// busyShare is the share of blocks that are left out from which on a machine counts as busy:
// at most half are.
const busyShare = 0.4

// busy reports whether other work ran in about as many blocks of a visit as could be left
// out, so that it ran in some of those that count, too.
func (r *race) busy() bool {
	visits := append(slices.Clone(r.tuner.visit.earlier), r.watch.state)
	return slices.ContainsFunc(visits, func(v cache.Visit) bool {
		return v.LeftOut > 0 && float64(v.LeftOut) >= busyShare*float64(v.Blocks)
	})
}

// priorSessions is the weight of the assumption that sessions differ by half of the margin,
// in sessions.
const priorSessions = 2

// resolution is the relative difference of two plans that another session would not turn
// round: two standard deviations of what sessions differ by, of all plans together, and the
// margin before that is known. What the noise of blocks makes of it is taken off.
func (r *race) resolution() float64 {
	half := r.tuner.Options.margin() / 2
	n, sum := float64(priorSessions), 0.0
	for _, x := range r.ran() {
		free, squares := r.spread(x)
		n += free
		sum += squares
	}
	sum = priorSessions*half*half + max(0, sum)
	return 2 * max(half, math.Sqrt(sum/n))
}

// spread is how much a candidate's ratios to the default differ between sessions: the degrees
// of freedom, and the sum of squares of logarithms.
func (r *race) spread(x *candidate) (free, squares float64) {
	standard := r.candidates[0]
	if x == standard {
		return 0, 0
	}
	var logs []float64
	mean, noise := 0.0, 0.0
	for _, s := range r.sessions(x, standard) {
		if ratios := s.ratios(); len(ratios) >= sessionBlocks {
			m := math.Log(medianOf(ratios))
			logs = append(logs, m)
			mean += m
			noise += medianVariance(ratios)
		}
	}
	if len(logs) < 2 {
		return 0, 0
	}
	n := float64(len(logs))
	for _, m := range logs {
		squares += (m - mean/n) * (m - mean/n)
	}
	free = n - 1
	return free, squares - free*noise/n
}

// medianVariance is about that of the logarithm of the median of ratios: π/2 of the
// variance of a mean, of which the interquartile range of normal numbers is 1.35 deviations.
func medianVariance(ratios []float64) float64 {
	s := slices.Sorted(slices.Values(ratios))
	n := len(s)
	deviation := math.Log(s[3*n/4]/s[n/4]) / 1.35
	return math.Pi / 2 * deviation * deviation / float64(n)
}

// finite replaces an unknown upper end, which JSON does not have, by 0.
func finite(x float64) float64 {
	if math.IsInf(x, 0) {
		return 0
	}
	return x
}

// ran are the candidates that were timed and did not fail.
func (r *race) ran() (all []*candidate) {
	for _, x := range r.candidates {
		if x.trial.Failure == "" && len(x.trial.Samples) > 0 {
			all = append(all, x)
		}
	}
	return all
}

// pairError is the error of one comparison, of those of all plans that ran.
func (r *race) pairError() float64 {
	return (1 - certificateConfidence) / float64(max(1, len(r.ran())-1))
}

// compare is the winner's time over x's, over all visits: the largest upper end of those
// that have one. A machine that has two states is judged in both. Where a regret is asked for
// (visit.within), all blocks count together unless this visit contradicts them: an end of the
// few blocks of an earlier run would stay whatever is measured now.
func (r *race) compare(winner, x *candidate, alpha float64) cache.Comparison {
	earlier, now := r.ratios(winner, x)
	visits := [][]float64{earlier, now}
	all := slices.Concat(earlier, now)
	out := cache.Comparison{Plan: x.trial.Plan, Blocks: len(all)}
	if len(all) == 0 {
		return out
	}
	out.Ratio = check.Paired(all, ones(len(all)), certificateConfidence).Median
	switch {
	case r.tuner.visit.within > 0 && atLeast(now, alpha) <= atMost(all, alpha):
		visits = [][]float64{all}
	case len(earlier) >= fewestBlocks(alpha/2) && len(now) >= fewestBlocks(alpha/2):
		alpha /= 2 // the claim is about both
	}
	for _, ratios := range visits {
		if end := atMost(ratios, alpha); !math.IsInf(end, 1) {
			out.AtMost = max(out.AtMost, end)
		}
		least := atLeast(ratios, alpha)
		if least > 0 && (out.AtLeast == 0 || least < out.AtLeast) {
			out.AtLeast = least
		}
	}
	return out
}

// atLeast is a lower end of the median of ratios; 0 where there are too few.
func atLeast(ratios []float64, alpha float64) float64 {
	return 1 / atMost(inverses(ratios), alpha)
}

// inverses are those of ratios, in their order.
func inverses(ratios []float64) []float64 {
	out := make([]float64, len(ratios))
	for k, r := range ratios {
		out[k] = 1 / r
	}
	return out
}

// ratios are those of the common blocks, of earlier visits and of this one.
func (r *race) ratios(x, y *candidate) (earlier, now []float64) {
	times := make(map[int]float64, len(y.trial.Blocks))
	for k, block := range y.trial.Blocks {
		times[block] = y.trial.Samples[k]
	}
	for k, block := range x.trial.Blocks {
		t, both := times[block]
		switch {
		case !both:
		case block < r.first:
			earlier = append(earlier, x.trial.Samples[k]/t)
		default:
			now = append(now, x.trial.Samples[k]/t)
		}
	}
	return earlier, now
}

// ones are so many ones.
func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// comparisons are those of a winner with all others that ran.
func (r *race) comparisons(winner *candidate) []cache.Comparison {
	alpha := r.pairError()
	all := []cache.Comparison{}
	for _, x := range r.ran() {
		if x != winner {
			all = append(all, r.compare(winner, x, alpha))
		}
	}
	return all
}

// regret is that of comparisons; it is unknown where there was nothing but the default.
func (r *race) regret(all []cache.Comparison) float64 {
	if r.defaultOnly || r.tuner.visit.defaultOnly {
		return -1
	}
	return regretOf(all)
}

// settle completes the comparisons of the winner with plans that were dropped early, the
// fastest first, while there is time. The error is that of ctx, or a *HungError.
func (r *race) settle(ctx context.Context) error {
	need := fewestBlocks(r.pairError())
	for range maxSettling {
		winner, _ := r.winner()
		if winner == nil {
			return nil
		}
		lacking := r.lacking(winner, need)
		if len(lacking) == 0 {
			return nil
		}
		for _, x := range r.live() {
			if !slices.Contains(lacking, x) {
				lacking = append(lacking, x) // may be the winner of the next visit
			}
		}
		if err := r.timeCounted(ctx, lacking); err != nil {
			return err
		}
	}
	return nil
}

// lacking are the dropped candidates that have too few blocks with a winner and that the
// time that is left is enough for: to time them as often as they need, beside the others.
func (r *race) lacking(winner *candidate, need int) []*candidate {
	var all []*candidate
	for _, x := range r.ran() {
		if x == winner || x.kernel == nil {
			continue
		}
		if _, now := r.ratios(winner, x); len(now) < need {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Compare(a.sampleSeconds(), b.sampleSeconds())
	})
	left := (r.remaining() - r.confirmation()).Seconds() / float64(need)
	for _, x := range r.live() {
		if !slices.Contains(all, x) {
			left -= x.sampleSeconds()
		}
	}
	for k, x := range all {
		if left -= x.sampleSeconds(); left < 0 {
			return all[:k]
		}
	}
	return all
}

// sampleSeconds is about what a sample of a candidate takes.
func (x *candidate) sampleSeconds() float64 {
	return max(minSampleTime.Seconds(), x.trial.Median()*float64(max(1, x.batch)))
}

// moreTried is another number of plans that a user may think of trying: what they are expected
// to gain is in a certificate.
const moreTried = 100

// certificate is the evidence for the regret of a winner.
func (r *race) certificate(winner *candidate) *cache.Certificate {
	c := &cache.Certificate{
		Confidence:  certificateConfidence,
		Comparisons: r.comparisons(winner),
		Visits:      r.visits(),
		Ended:       r.ended,
		Untried:     max(0, r.legal-int64(len(r.candidates))),
	}
	if r.proposals != nil {
		c.GainOf = min(moreTried, c.Untried)
		c.Gain = r.proposals.search.Gain(int(c.GainOf))
	}
	return c
}

// visits are the sessions of which blocks count, those of this run before this one too.
func (r *race) visits() []cache.Visit {
	return append(slices.Clone(r.tuner.visit.earlier), r.watch.end())
}
