package cache

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// supersedes is the rule of Put: whether r replaces old. The first line that tells
// two records apart decides, and each says the same whichever comes first:
//
//   - a checked record beats an unchecked one;
//   - one that was timed beats one that was predicted;
//   - records from different safe contexts are not comparable: the newer one
//     is nearer to what lookups will run on;
//   - of different plans, the record whose race the other's plan was in and lost;
//   - of different plans, the one faster beyond noise: disjoint intervals of
//     the speedup over the same default, or, without those, disjoint middle
//     halves of the winner's samples;
//   - the one with more than twice the samples of its winner;
//   - the newer one.
func (r Record) supersedes(old Record) bool {
	for _, rule := range precedence {
		if by := rule(&r, &old); by != 0 {
			return by > 0
		}
	}
	return true // the same evidence
}

// precedence holds the rules of beats; each is positive when the first record has
// the better claim, 0 when it can't tell, and antisymmetric.
var precedence = [...]func(a, b *Record) int{
	func(a, b *Record) int { return compareBool(a.Checked, b.Checked) },
	func(a, b *Record) int { return compareBool(!a.Untimed, !b.Untimed) },
	bySafeContext,
	ifPlansDiffer(byRace),
	ifPlansDiffer(byTime),
	bySamples,
	func(a, b *Record) int { return a.When.Compare(b.When) },
	func(a, b *Record) int {
		return cmp.Compare(
			len(a.winnerSamples()), len(b.winnerSamples()),
		)
	},
	func(a, b *Record) int { return strings.Compare(b.Plan, a.Plan) },
	func(a, b *Record) int { return cmp.Compare(b.Seconds, a.Seconds) },
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func bySafeContext(a, b *Record) int {
	if len(SafeDiff(a.Safe, b.Safe)) == 0 {
		return 0
	}
	return a.When.Compare(b.When)
}

func ifPlansDiffer(rule func(a, b *Record) int) func(a, b *Record) int {
	return func(a, b *Record) int {
		if a.Plan == b.Plan {
			return 0
		}
		return rule(a, b)
	}
}

func byRace(a, b *Record) int {
	return compareBool(
		a.measuredAgainst(b.Plan), b.measuredAgainst(a.Plan),
	)
}

// measuredAgainst says whether plan was measured beside r's winner, in the same block, or
// failed.
func (r *Record) measuredAgainst(plan string) bool {
	other := r.trial(plan)
	winner := r.trial(r.Plan)
	if other == nil {
		return false
	}
	return other.Failure != "" ||
		winner != nil && slices.ContainsFunc(other.Blocks, func(b int) bool {
			return slices.Contains(winner.Blocks, b)
		})
}

func (r *Record) trial(plan string) *Trial {
	k := slices.IndexFunc(r.Trials, func(t Trial) bool {
		return t.Plan == plan
	})
	if k < 0 {
		return nil
	}
	return &r.Trials[k]
}

// winnerSamples are the winner's.
func (r *Record) winnerSamples() []float64 {
	if t := r.trial(r.Plan); t != nil {
		return t.Samples
	}
	return nil
}

// byTime compares speeds where they differ beyond noise.
func byTime(a, b *Record) int {
	if a.Speedup[0] > 0 &&
		b.Speedup[0] > 0 && a.Default == b.Default {
		return disjoint(a.speedupInterval(), b.speedupInterval())
	}
	return disjoint(
		interquartile(b.winnerSamples()), interquartile(a.winnerSamples()),
	)
}

// speedupInterval is the interval of Speedup; an upper end of 0 means unknown.
func (r *Record) speedupInterval() [2]float64 {
	hi := r.Speedup[2]
	if hi == 0 {
		hi = math.Inf(1)
	}
	return [2]float64{r.Speedup[1], hi}
}

// interquartile is the interquartile interval; of fewer than four samples, everything.
func interquartile(samples []float64) [2]float64 {
	n := len(samples)
	if n < 4 {
		return [2]float64{0, math.Inf(1)}
	}
	s := slices.Sorted(slices.Values(samples))
	return [2]float64{s[n/4], s[n-1-n/4]}
}

// disjoint orders intervals that do not overlap.
func disjoint(a, b [2]float64) int {
	return compareBool(a[0] > b[1], b[0] > a[1])
}

func bySamples(a, b *Record) int {
	n := len(a.winnerSamples())
	m := len(b.winnerSamples())
	return compareBool(n > 2*m, m > 2*n)
}

const (
	maxNameBytes = 1 << 10 // bytes of a device, backend or revision
	maxPlanBytes = 1 << 12
)

// plausible refuses records that cannot be true.
func (r *Record) plausible() error {
	switch {
	case r.Plan == "" || len(r.Plan) > maxPlanBytes:
		return errors.New("a record needs a plan")
	case !isDuration(r.Seconds):
		return fmt.Errorf("%v seconds is not a time", r.Seconds)
	case r.DefaultSeconds != 0 && !isDuration(r.DefaultSeconds):
		return fmt.Errorf("%v seconds is not a time of the default", r.DefaultSeconds)
	case r.Regret != -1 && !(r.Regret >= 0) ||
		math.IsInf(r.Regret, 0):
		return fmt.Errorf("%v is not a regret", r.Regret)
	case r.Legal < 0:
		return fmt.Errorf("%d is not a number of plans", r.Legal)
	case r.When.Year() < 0 || r.When.Year() > 9999:
		return fmt.Errorf("%v is not a date", r.When)
	}
	for _, s := range r.Speedup {
		if !(s >= 0) || math.IsInf(s, 0) {
			return fmt.Errorf("%v is not a speedup", s)
		}
	}
	return errors.Join(
		r.Key.plausible(), plausible(r.Trials),
	)
}

func (k *Key) plausible() error {
	for _, s := range [...]string{k.Device, k.Backend, k.Codegen} {
		if len(s) > maxNameBytes {
			return fmt.Errorf("%.20q… is too long for a key", s)
		}
	}
	if k.Device == "" || k.Backend == "" {
		return errors.New("a record needs a device and a backend")
	}
	return nil
}

func plausible(ts []Trial) error {
	for _, t := range ts {
		if err := t.plausible(); err != nil {
			return fmt.Errorf("trial of plan %.60q: %w", t.Plan, err)
		}
	}
	return nil
}

func (t *Trial) plausible() error {
	switch {
	case t.Plan == "" || len(t.Plan) > maxPlanBytes:
		return errors.New("a trial needs a plan")
	case len(t.Blocks) != 0 &&
		len(t.Blocks) != len(t.Samples):
		return fmt.Errorf(
			"%d samples in %d blocks", len(t.Samples), len(t.Blocks),
		)
	case len(t.Clocks) != 0 &&
		len(t.Clocks) != len(t.Samples):
		return fmt.Errorf(
			"%d clocks of %d samples", len(t.Clocks), len(t.Samples),
		)
	case math.IsNaN(t.Predicted) ||
		math.IsInf(t.Predicted, 0):
		return fmt.Errorf("a prediction of %v seconds", t.Predicted)
	case len(t.Features) > 0 &&
		!json.Valid(t.Features):
		return errors.New("its features are not JSON")
	}
	for _, s := range t.Samples {
		if !isDuration(s) {
			return fmt.Errorf("%v seconds is not a time", s)
		}
	}
	for _, h := range t.Clocks {
		if h != 0 && !isDuration(h) {
			return fmt.Errorf("%v Hz is not a clock", h)
		}
	}
	for _, b := range t.Blocks {
		if b < 0 || b > maxBlockNumber {
			return fmt.Errorf("%d is not a block", b)
		}
	}
	return nil
}

func isDuration(s float64) bool { return s > 0 && !math.IsInf(s, 0) }
