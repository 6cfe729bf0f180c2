package tuner

import (
	"context"
	"time"

	"github.com/tilewright/tilewright/cache"
)

// provisionalRecord is the record of the best candidate when a race is interrupted:
// the one with the best ratio to the default, if it is better by the margin, without
// the confidence that a race asks for. It is empty unless ctx has ended and a
// candidate was timed.
func (r *race) provisionalRecord(ctx context.Context) cache.Record {
	timed := false
	for _, x := range r.live() {
		timed = timed || len(x.trial.Samples) > 0
		x.eliminated = len(x.trial.Samples) == 0
	}
	best := r.best()
	if ctx.Err() == nil || !timed || best == nil {
		return cache.Record{}
	}
	standard := r.candidates[0]
	gain := paired(standard, best, recordConfidence)
	if !standard.eliminated && gain.Median < 1+r.tuner.Options.margin() {
		best, gain = standard, paired(standard, standard, recordConfidence)
	}
	out := r.recordOf(best, gain)
	out.Provisional = true
	out.Certificate = nil
	return out
}

// earlierTrials are those of an interrupted race, and of a stored winner that is
// raced on.
func (r *race) earlierTrials() ([]cache.Trial, error) {
	return r.tuner.Cache.Evidence(r.key)
}

// confirmation is the time that the last runs of a race take, by which it ends before
// the deadline of a visit; 0 without one.
func (r *race) confirmation() time.Duration {
	if r.tuner.visit.deadline.IsZero() || r.best() == nil {
		return 0
	}
	runs := fewestCompared * (r.candidates[0].trial.Median() + r.best().trial.Median())
	return time.Duration(runs * float64(time.Second))
}

// provisionalCompared is the runs of a provisional winner that are compared at least:
// a default plan of a second would take ten for more, and its race compares it again.
const provisionalCompared = 2

// fewestCompared is the runs of a winner that are compared at least: of long runs as
// many as take another budget.
func (r *race) fewestCompared() int {
	if r.tuner.visit.defaultOnly || r.defaultOnly {
		return provisionalCompared
	}
	room := r.tuner.Options.budget().Seconds() / r.candidates[0].trial.Median()
	return int(max(provisionalCompared, min(fewestCompared, room)))
}

// goodEnough reports whether the regret is known to be at most what is asked for.
func (r *race) goodEnough() bool {
	goal := r.tuner.Options.Regret
	winner, _ := r.winner() // which is the default until another is faster beyond doubt
	if goal <= 0 || winner == nil {
		return false
	}
	regret := r.regret(r.comparisons(winner))
	return regret >= 0 && regret <= goal
}
