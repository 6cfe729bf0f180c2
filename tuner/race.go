package tuner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
)

// Parameters of a race.
const (
	minSampleTime    = time.Millisecond       // of a sample: it has as many runs as that takes
	longRun          = 0.1                    // seconds: a run that needs none before it to be warm
	maxBlocks        = 40                     // after which the remaining candidates count as tied
	maxRegretBlocks  = 1000                   // the same where a regret was asked for
	dropConfidence   = 0.99                   // of the interval that drops a candidate
	recordConfidence = 0.95                   // of the intervals in the record
	earlyDropRatio   = 1.5                    // to the best, in each of the first blocks: drops without an interval
	earlyDropBlocks  = 2                      // of these, at least
	storeInterval    = 250 * time.Millisecond // between writes of the samples to the database
	settledBlocks    = 8                      // after which a candidate that is alone is the winner

	minRunTimeout     = 10 * time.Second       // of a compilation, of a run of the default and of a sample
	predictionSlack   = 100                    // times the predicted time of the default: a longer timeout, if that is longer
	maxVerifySlowdown = 30                     // times the default's run: the timeout of a candidate's verification
	minVerifyTimeout  = 500 * time.Millisecond // but not less than this, which a busy machine may take for anything

	longShare = 1.0 / 4 // of the budget, from which on a run is long: to try a plan takes several
	raceShare = 1.0 / 8 // of the budget, which is kept for the race when there are many candidates
)

// A race times candidates in blocks: in each, every remaining one once, in
// shuffled order. Only samples of one block are compared, as ratios, so that slow
// drift of the machine cancels; a later session adds blocks of its own.
type race struct {
	*selection
	bench     *check.Bench
	plausible plausibility
	rng       *rand.Rand
	recheck   *rand.Rand // chooses the samples whose results are compared
	block     int        // number of the current block
	first     int        // number of the first block of this visit
	anew      int        // number of its first block on other arrays, by kernels compiled again; 0 is none
	raced     int        // number of the first block in which all are timed
	watch     watch      // of the device, from the first block on
	ended     string     // why the race ended, as in the certificate

	// defaultOnly says that long runs of the default took the whole budget: the record is
	// provisional.
	defaultOnly bool

	stored time.Time // when the samples were last written

	unreported []Event // about samples that are not stored yet
}

// raceStream separates the random numbers of a race from those of other users
// of the same seed: "race" in ASCII.
const raceStream = 0x72616365

// race verifies and times the candidates and makes the record of the winner.
// When ctx ends, the samples so far are stored.
func (s *selection) race(ctx context.Context) (cache.Record, error) {
	bound, err := cost.LowerBound(s.program, s.tuner.Backend.Device(), 0)
	if err != nil {
		return cache.Record{}, err
	}
	r := &race{
		selection: s,
		plausible: plausibility{bound: bound},
		rng: rand.New(
			rand.NewPCG(uint64(s.tuner.Options.Seed), raceStream),
		),
		recheck: rand.New(
			rand.NewPCG(uint64(s.tuner.Options.Seed), recheckStream),
		),
	}
	defer r.close()
	if err := r.resume(); err != nil {
		return cache.Record{}, err
	}
	if err := r.tooSlow(); err != nil {
		return cache.Record{}, err
	}
	err = r.verifyAll(ctx)
	r.tuner.phase(r.fusion.Name, Racing)
	for again := true; err == nil && again; {
		for err == nil && !r.done() {
			err = r.timeBlock(ctx)
		}
		if err == nil {
			err = r.settle(ctx)
		}
		if err == nil {
			err = r.raceAnew(ctx)
		}
		if err == nil {
			again, err = r.confirm(ctx)
		}
	}
	unkept := r.store()
	if err == nil {
		return r.timedRecord()
	}
	record := r.provisionalRecord(ctx)
	if record.Plan == "" && unkept != nil { // else the record has the samples
		err = errors.Join(err, &UnkeptError{Fusion: s.fusion.Name, Lost: true, Err: unkept})
	}
	return record, err
}

// checkRuns is how many runs of a default plan, about, are its check and its samples.
const checkRuns = 16

// maxRunShare is how many budgets a run of the default plan may take by its price, which
// is known to be wrong by about as much: verification alone is several runs.
const maxRunShare = 4

// tooSlow is a *TooSlowError of a fusion that the budget has no room for, unless it was
// timed before.
func (r *race) tooSlow() error {
	first := r.candidates[0]
	budget := r.tuner.Options.budget()
	if r.tuner.visit.defaultOnly { // of which that is only the time of its samples
		budget = max(budget, r.tuner.visit.deadline.Sub(r.tuner.now())/checkRuns)
	}
	predicted := first.Seconds
	if _, priced := r.tuner.Backend.(kernels.PricedBackend); !priced {
		predicted = 0 // a number that all plans have
	}
	bound := r.plausible.bound
	if first.trial.Median() > 0 || max(bound, predicted/maxRunShare) < budget.Seconds() {
		return nil
	}
	run := max(bound, predicted)
	return &TooSlowError{r.fusion.Name, time.Duration(run * float64(time.Second)), budget}
}

// resume gives the candidates the samples of an interrupted race.
func (r *race) resume() error {
	earlier, err := r.earlierTrials()
	if err = r.tuner.unlessUnreadable(r.fusion.Name, err); err != nil {
		return err
	}
	if r.tuner.Options.Force {
		earlier = nil
	}
	if r.proposals != nil {
		if err := r.add(r.proposals.known(earlier)); err != nil {
			return err
		}
	}
	for _, x := range r.candidates {
		x.resume(earlier)
		for _, b := range x.trial.Blocks {
			r.block = max(r.block, b+1)
		}
	}
	standard := r.candidates[0]
	if late(standard.trial) { // it has another try
		standard.trial.Failure = ""
		standard.trial.Detail = ""
	}
	standard.eliminated = standard.trial.Failure != "" // the default is never dropped
	if r.tuner.visit.earlier != nil {
		r.reinstateNear()
	}
	r.takeBack()
	return nil
}

// nearBest is the ratio to the best plan up to which what was dropped is raced again in
// another visit: the machine may be in another state.
const nearBest = 1.1

// reinstateNear brings back what was dropped and was nearly as fast as the best.
func (r *race) reinstateNear() {
	best := r.best()
	if best == nil {
		return
	}
	for _, x := range r.candidates {
		near := paired(x, best, recordConfidence).Median <= nearBest
		if x.trial.Dropped && x.trial.Failure == "" && near {
			x.trial.Dropped = false
			x.eliminated = false
		}
	}
}

// takeBack lets plans race on that an earlier run has dropped, where the regret that is asked
// for needs that: what is known of them is too little.
func (r *race) takeBack() {
	within := r.tuner.visit.within
	winner, _ := r.winner()
	if within == 0 || winner == nil {
		return
	}
	alpha := r.pairError()
	for _, x := range r.ran() {
		most := r.compare(winner, x, alpha).AtMost // 0 is unknown
		if x.trial.Dropped && (most == 0 || most > 1+within) {
			x.trial.Dropped, x.eliminated = false, false
		}
	}
}

// resume takes over what an interrupted race found out about a candidate; the
// prediction and the features stay those of today.
func (x *candidate) resume(earlier []cache.Trial) {
	k := slices.IndexFunc(earlier, func(t cache.Trial) bool {
		return t.Plan == x.trial.Plan
	})
	if k < 0 {
		return
	}
	predicted := x.trial.Predicted
	features := x.trial.Features
	x.trial = earlier[k]
	x.trial.Predicted = predicted
	x.trial.Features = features
	x.eliminated = x.trial.Failure != "" || x.trial.Dropped
}

// verifyAll verifies every candidate, the default first, and times it once to
// size its samples. The budget begins when the reference's results are there,
// and a part of it is kept for the race.
func (r *race) verifyAll(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	var err error
	seed := r.tuner.Options.Seed
	r.tuner.phase(r.fusion.Name, Preparing)
	r.bench, err = r.verifier.NewBench(ctx, seed, r.coldSpan())
	if err != nil {
		return err
	}
	r.plausible = plausibility{
		backend: r.tuner.Backend,
		rates:   r.tuner.Cache,
		program: r.program,
		seed:    seed,
		bytes:   r.bench.Bytes(),
	}
	r.plausible.bound, err = cost.LowerBound(r.program, r.tuner.Backend.Device(), r.bench.Bytes())
	if err != nil {
		return err
	}
	r.start()
	r.first = r.block
	timed := len(r.candidates[0].trial.Samples) > 0
	for k := 0; ; k++ {
		if r.full(k, timed) {
			r.candidates = r.candidates[:min(k, len(r.candidates))]
			break
		}
		if another, err := r.propose(k); !another || err != nil {
			if err != nil {
				return err
			}
			break
		}
		x := r.candidates[k]
		if !x.eliminated {
			if err := r.admit(ctx, k, x); err != nil {
				return err
			}
		}
		if r.proposals != nil {
			r.proposals.observe(&x.trial)
		}
	}
	r.raced = r.block
	r.watch = newWatch(r.tuner.Backend, r.tuner.now())
	if len(r.live()) == 0 {
		return r.noWinner(ErrNothingRan)
	}
	return nil
}

// full reports whether the budget has no room for candidate k. The default is always
// timed, and another one unless a run of the default is long and the budget is over; if it
// was timed before, by a race that ended there, this race goes on to the other.
func (r *race) full(k int, defaultTimed bool) bool {
	budget := r.tuner.Options.budget()
	switch {
	case k == 0, k == 1 && (defaultTimed || r.candidates[0].eliminated):
		return false
	case k == 1:
		run := r.candidates[0].trial.Median()
		r.defaultOnly = r.remaining() <= 0 && run > longShare*budget.Seconds()
		return r.defaultOnly
	}
	return r.remaining().Seconds() < raceShare*budget.Seconds()
}

// propose makes sure that there is a candidate k, by a proposal where there is none yet;
// false when there is none.
func (r *race) propose(k int) (bool, error) {
	if k < len(r.candidates) {
		return true, nil
	}
	if r.proposals == nil {
		return false, nil
	}
	if k >= r.proposals.size && !r.room() {
		return false, nil
	}
	next, more := r.proposals.next(k)
	if !more {
		return false, nil
	}
	return true, r.add([]cost.Ranked{next})
}

// roomBlocks is how many times the blocks that a claim needs a race takes, about.
const roomBlocks = 4

// room reports whether the time that is left is enough to race more plans than those that
// were asked for, with all that ran. One that is far slower than another is dropped by two
// blocks: a search tries extremes, and one plan of seconds is not to take the room of all.
func (r *race) room() bool {
	blocks := roomBlocks * float64(fewestBlocks(r.pairError()))
	least := math.Inf(1)
	for _, x := range r.ran() {
		least = min(least, x.trial.Median())
	}
	seconds := 0.0
	for _, x := range r.ran() {
		if x.trial.Median() < earlyDropRatio*least {
			seconds += blocks * x.sampleSeconds()
		} else {
			seconds += earlyDropBlocks * x.sampleSeconds()
		}
	}
	return seconds < (r.remaining() - r.confirmation()).Seconds()
}

// admit verifies and times candidate k, and stores what came out.
func (r *race) admit(ctx context.Context, k int, x *candidate) error {
	if err := r.verifyAndTime(ctx, x); err != nil {
		return err
	}
	r.block++ // its first sample is long before those of others: it is paired with none
	if !x.eliminated {
		r.whenStored(Timed{
			r.header(), x.trial.Plan,
			x.trial.Median(), k + 1,
			r.planned(), r.remaining(),
		})
	}
	r.store()
	return nil
}

// coldSpan is the number of bytes of arrays that a sample goes through in turn:
// twice the last cache, so that its inputs come from memory.
func (r *race) coldSpan() int64 {
	span := int64(64 << 20)
	for _, l := range r.tuner.Backend.Device().Levels {
		if l.Bytes > 0 {
			span = 2 * cmp.Or(l.Kept, l.Bytes)
		}
	}
	return span
}

// verifyAndTime verifies a candidate and then takes its first sample. Its
// failure is its own; the error is that of ctx, or a *HungError.
func (r *race) verifyAndTime(ctx context.Context, x *candidate) error {
	timeout := r.verifyTimeout()
	err := r.verify(ctx, x, r.runTimeout(), timeout)
	if err == nil {
		err = r.firstSample(ctx, x, check.Bounded(x.kernel, timeout))
	}
	hung := r.leave(x, err)
	if ctx.Err() != nil {
		return endedBy(ctx, hung)
	}
	if err != nil {
		e := r.failed(x, err)
		standard := r.candidates[0]
		if x == standard && late(x.trial) {
			x.trial.Detail = fmt.Sprintf(
				"a run of it had not ended after %v: it was stopped",
				timeout.Round(time.Second),
			)
			e.Detail = x.trial.Detail
		}
		r.whenStored(e)
	}
	return hung
}

// firstSample warms a kernel up by one run, sizes the samples by the time of
// that run, takes one sample and sizes the following ones by it. A long run is a sample.
func (r *race) firstSample(
	ctx context.Context, x *candidate, k kernels.Kernel,
) error {
	warmUp, err := r.bench.Sample(ctx, k, 1)
	if err != nil {
		return err
	}
	sample := warmUp
	if warmUp.Seconds < longRun {
		runs := check.RunsPerSample(warmUp.Seconds, minSampleTime)
		if sample, err = r.leastSample(ctx, k, runs); err != nil {
			return err
		}
	}
	if err := r.bench.CompareLast(ctx, x.kernel, x.witness); err != nil {
		return err
	}
	if err := r.suspect(ctx, x, min(warmUp.Seconds, sample.Seconds)); err != nil {
		return err
	}
	x.addSample(sample, r.block)
	return nil
}

// firstSamples are taken of a plan whose samples are short, of which the shortest counts: the
// search learns from it, and other work makes a sample longer, never shorter. There are more
// of them, up to mostSamples, until the two shortest agree: one that nothing disturbed
// can be repeated. What is tried then depends less on what else ran.
const (
	firstSamples = 3
	mostSamples  = 12
	samplesAgree = 1.03 // the ratio of the two shortest
	shortSample  = 5 * minSampleTime
)

// leastSample is the shortest of some samples of n runs, or a long one.
func (r *race) leastSample(
	ctx context.Context, k kernels.Kernel, n int,
) (least kernels.Timing, err error) {
	second := math.Inf(1)
	for taken := 0; taken < mostSamples; taken++ {
		agree := taken >= firstSamples && second <= samplesAgree*least.Seconds
		if agree || taken > 0 && least.Seconds*float64(n) >= shortSample.Seconds() {
			break
		}
		sample, err := r.bench.Sample(ctx, k, n)
		if err != nil {
			return least, err
		}
		switch {
		case taken == 0:
			least = sample
		case sample.Seconds < least.Seconds:
			second, least = least.Seconds, sample
		default:
			second = min(second, sample.Seconds)
		}
	}
	return least, nil
}

// suspect decides whether a time of a candidate can be true; what that takes is not part of
// the budget.
func (r *race) suspect(ctx context.Context, x *candidate, seconds float64) error {
	began := r.tuner.now()
	err := r.plausible.check(ctx, x.Plan, x.kernel, r.verifyTimeout(), seconds)
	r.end = r.end.Add(r.tuner.now().Sub(began))
	return err
}

// verifyTimeout is how long a run of a candidate may take during its
// verification, once the default's time is known: a plan that is many times
// slower need not be timed.
func (r *race) verifyTimeout() time.Duration {
	standard := r.candidates[0].trial.Median()
	if standard == 0 {
		return r.runTimeout()
	}
	slow := time.Duration(maxVerifySlowdown * standard * float64(time.Second))
	return min(r.runTimeout(), max(minVerifyTimeout, slow))
}

// runTimeout is how long anything may take that does not hang.
func (r *race) runTimeout() time.Duration {
	predicted := r.candidates[0].Seconds
	return max(minRunTimeout, time.Duration(predictionSlack*predicted*float64(time.Second)))
}

// addSample adds a sample, and sizes the next one by the shortest so far: a sample of few
// runs, because the one that sized it waited for a processor, begins with cold caches and a
// worker that sleeps, and its plan would seem slow as long as the race lasts.
func (x *candidate) addSample(t kernels.Timing, block int) {
	x.trial.Add(t.Seconds, t.Hertz, block)
	least := slices.Min(x.trial.Samples)
	x.batch = check.RunsPerSample(least, minSampleTime)
}

// timeBlock times every remaining candidate once and drops those that are
// slower than the best beyond doubt.
func (r *race) timeBlock(ctx context.Context) error {
	if err := r.timeCounted(ctx, r.live()); err != nil {
		return err
	}
	best := r.best()
	if best == nil {
		return r.noWinner(ErrNothingRan)
	}
	r.dropSlower(best)
	r.whenStored(BlockDone{
		EventHeader: r.header(),
		Block:       r.block,
		Candidates:  len(r.live()),
		Best:        best.trial.Plan,
		Seconds:     best.trial.Median(),
		Ratio:       paired(r.candidates[0], best, recordConfidence).Median,
		Remaining:   r.remaining(),
	})
	if r.tuner.now().Sub(r.stored) >= storeInterval {
		r.store()
	}
	return nil
}

// timeCounted times candidates in one block, and leaves it out if something else ran.
func (r *race) timeCounted(ctx context.Context, all []*candidate) error {
	if err := r.timeAll(ctx, all); err != nil {
		return err
	}
	if ok, disturbed := r.watch.counts(r.tuner.now()); !ok {
		for _, x := range all {
			leaveOut(&x.trial, r.block)
		}
		r.whenStored(LeftOut{r.header(), r.block, disturbed})
	}
	r.block++
	return nil
}

// timeAll times candidates once each, in shuffled order.
func (r *race) timeAll(ctx context.Context, all []*candidate) error {
	for _, k := range r.rng.Perm(len(all)) {
		if x := all[k]; x.trial.Failure == "" && x.kernel != nil {
			if err := r.timeOnce(ctx, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// timeOnce takes one sample of a candidate; the error is that of ctx, or a *HungError.
func (r *race) timeOnce(ctx context.Context, x *candidate) error {
	limited, cancel := context.WithTimeout(ctx, r.runTimeout())
	defer cancel()
	sample, err := r.bench.Sample(limited, x.kernel, x.batch)
	if err == nil && r.recheck.IntN(recheckEvery) == 0 {
		err = r.recheckNow(limited, x)
	}
	hung := r.leave(x, err)
	if ctx.Err() != nil {
		return endedBy(ctx, hung)
	}
	if err != nil {
		r.whenStored(r.failed(x, err))
		r.reinstate()
		return hung
	}
	x.addSample(sample, r.block)
	return nil
}

// dropSlower takes out candidates that are slower than the best beyond doubt.
// The default stays: the winner is compared with it.
func (r *race) dropSlower(best *candidate) {
	need := fewestBlocks(r.pairError())
	for _, x := range r.live() {
		if x == best || x == r.candidates[0] {
			continue
		}
		ratio := paired(x, best, dropConfidence)
		if ratio.Lo > 1 && r.blocks() >= need || farSlower(x, best) {
			x.eliminated = true
			x.trial.Dropped = true
			r.whenStored(Dropped{
				r.header(), x.trial.Plan, ratio.Median,
			})
		}
	}
}

// live are the candidates that remain.
func (r *race) live() []*candidate {
	var live []*candidate
	for _, x := range r.candidates {
		if !x.eliminated {
			live = append(live, x)
		}
	}
	return live
}

// best is the remaining candidate with the smallest median ratio to the
// default, or with the smallest median when the default failed.
func (r *race) best() *candidate {
	live := r.live()
	if len(live) == 0 {
		return nil
	}
	standard := r.candidates[0]
	return slices.MinFunc(live, func(a, b *candidate) int {
		if standard.eliminated {
			return cmp.Compare(a.trial.Median(), b.trial.Median())
		}
		return cmp.Compare(
			paired(a, standard, recordConfidence).Median,
			paired(b, standard, recordConfidence).Median)
	})
}

// done reports whether there is nothing left to find out, and notes why: the budget is
// spent, the regret is as low as was asked for, one candidate remains beside the default
// and beats it or loses to it beyond doubt, or the blocks are so many that the rest are
// ties. Where a regret was asked for, blocks are taken until the budget is spent.
func (r *race) done() bool {
	blocks := r.blocks()
	if blocks < 1 {
		return r.defaultOnly || r.overrun()
	}
	switch {
	case r.remaining() <= r.confirmation():
		r.ended = cache.EndedBudget
	case r.goodEnough():
		r.ended = cache.EndedRegret
	case blocks >= r.mostBlocks():
		r.ended = cache.EndedBlocks
	case r.settled(blocks):
		r.ended = cache.EndedSettled
	default:
		return false
	}
	return true
}

// blocks is the number of blocks of this visit that count.
func (r *race) blocks() int { return r.block - r.raced - r.watch.state.LeftOut }

// overrun reports whether checking has taken so much more than the budget that not even one
// block is timed: then nothing is compared, and the default stays.
func (r *race) overrun() bool {
	budget := r.tuner.Options.budget().Seconds()
	if r.remaining().Seconds() > -raceShare*budget {
		return false
	}
	r.ended = cache.EndedBudget
	return true
}

// mostBlocks is the number of blocks after which a race ends.
func (r *race) mostBlocks() int {
	if r.tuner.Options.Regret > 0 {
		return maxRegretBlocks
	}
	return maxBlocks
}

// settled reports whether no further block can change the winner.
func (r *race) settled(blocks int) bool {
	live := r.live()
	switch {
	case len(live) == 0:
		return true // there is no winner
	case len(live) > 2, len(live) == 2 && live[0] != r.candidates[0],
		blocks < fewestBlocks(r.pairError()):
		return false
	}
	ratio := paired(live[0], live[len(live)-1], dropConfidence)
	return len(live) == 1 && blocks >= settledBlocks ||
		ratio.Lo > 1 || ratio.Hi < 1
}

// winner is the best candidate, or of those that cannot be told from it the default or
// else the one of the lowest price, if it beats the default by the margin beyond doubt,
// with its gain; otherwise the fastest that does, and where none does the default. It is nil
// when none remains.
func (r *race) winner() (*candidate, check.PairedInterval) {
	best := r.best()
	if best == nil {
		return nil, check.PairedInterval{}
	}
	standard := r.candidates[0]
	winner := slices.MinFunc(r.ties(best), r.firstOfTied)
	if winner != standard && !standard.eliminated && !r.beats(winner, standard) {
		winner = r.fastestOver(standard)
	}
	return winner, paired(standard, winner, recordConfidence)
}

// fastestOver is the fastest of the remaining candidates that beat the default, or the
// default: other work may have made the best of all blocks.
func (r *race) fastestOver(standard *candidate) *candidate {
	fastest, most := standard, 1.0
	for _, x := range r.live() {
		if gain := r.undisturbed(standard, x); gain > most && r.beats(x, standard) {
			fastest, most = x, gain
		}
	}
	return fastest
}

// Parameters of the blocks on other arrays.
const (
	anewBlocks = 10        // which tell a winner from its default beyond doubt, and three more
	anewBytes  = 256 << 20 // of the arrays of a bench: larger ones are not allocated twice
)

// raceAnew times the winner, if it is not the default, beside that and what ties with it, on
// other arrays and by kernels that are compiled and verified again: where the pages of an
// array and the code lie is luck, which all blocks before had in common.
func (r *race) raceAnew(ctx context.Context) error {
	winner, _ := r.winner()
	standard := r.candidates[0]
	if winner == nil || winner == standard || r.anew > 0 || r.bench.Bytes() > anewBytes {
		return nil
	}
	again := r.ties(winner)
	if !slices.Contains(again, standard) && !standard.eliminated {
		again = append(again, standard)
	}
	seconds := 0.0
	for _, x := range again {
		seconds += anewBlocks * x.sampleSeconds()
	}
	if seconds > (r.remaining() - r.confirmation()).Seconds() {
		return nil
	}
	var err error
	r.bench, err = r.verifier.NewBench(ctx, r.tuner.Options.Seed, r.coldSpan())
	if err != nil {
		return err
	}
	for _, x := range again {
		if err := r.compileAnew(ctx, x); err != nil {
			return err
		}
	}
	r.anew = r.block
	for range anewBlocks {
		if err := r.timeCounted(ctx, again); err != nil {
			return err
		}
	}
	return nil
}

// compileAnew replaces the kernel of a candidate. Its failure is its own; the error is that
// of ctx, or a *HungError.
func (r *race) compileAnew(ctx context.Context, x *candidate) error {
	x.kernel.Close() // an error would change nothing about what was measured
	x.kernel = nil
	err := r.verify(ctx, x, r.runTimeout(), r.verifyTimeout())
	hung := r.leave(x, err)
	if ctx.Err() != nil {
		return endedBy(ctx, hung)
	}
	if err != nil {
		r.whenStored(r.failed(x, err))
		r.reinstate()
	}
	return hung
}

// timedRecord is the record of the winner.
func (r *race) timedRecord() (cache.Record, error) {
	winner, gain := r.winner()
	if winner == nil {
		return cache.Record{}, r.noWinner(ErrNothingRan)
	}
	out := r.recordOf(winner, gain)
	out.Provisional = r.defaultOnly
	return out, nil
}

// recordOf is the record of a winner with its gain over the default.
func (r *race) recordOf(winner *candidate, gain check.PairedInterval) cache.Record {
	standard := r.candidates[0]
	out := r.record(winner, standard)
	out.Seconds = winner.trial.Median()
	if standard.trial.Failure != "" {
		gain = check.Paired(nil, nil, recordConfidence) // a plan that is wrong has no speed
	} else {
		out.DefaultSeconds = standard.trial.Median()
	}
	out.Speedup = [3]float64{
		gain.Median, gain.Lo, finite(gain.Hi),
	}
	out.Certificate = r.certificate(winner)
	out.Regret = r.regret(out.Certificate.Comparisons)
	if r.bench != nil { // else nothing was timed in this process
		out.Roof = roofOf(r.tuner.Cache, r.tuner.Backend, r.program, r.bench.Bytes(), out.Seconds)
		if out.Roof != nil {
			out.Roof.Contradicted = r.plausible.contradicted
		}
	}
	out.Prices = r.prices(winner)
	out.Evidence = clockEvidence(r.tuner.Backend, winner.trial.Clocks)
	for _, x := range r.ran() {
		if x != winner && r.untold(winner, x) {
			out.Ties = append(out.Ties, x.trial.Plan)
		}
	}
	return out
}

// firstOfTied orders plans that are equally fast: the default, then by price. Not by what
// they take of the device: on a busy machine one lane ties with two, and is slower on a
// quiet one.
func (r *race) firstOfTied(a, b *candidate) int {
	standard := func(x *candidate) int {
		if x == r.candidates[0] {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(standard(a), standard(b)),
		cmp.Compare(a.Seconds, b.Seconds),
		a.Plan.Compare(b.Plan))
}

// clockEvidence is what a backend recorded of its device's clock, with the
// clocks of the winner's samples; nil for a backend that records nothing.
func clockEvidence(b kernels.Backend, winner []float64) json.RawMessage {
	w, ok := b.(kernels.SampleObserver)
	if !ok {
		return nil
	}
	evidence := w.SampleQuality()
	if !evidence.Known() {
		return nil
	}
	evidence.Winner = kernels.ClockStatsOf(winner)
	text, err := json.Marshal(evidence)
	if err != nil {
		return nil // a number that JSON does not have
	}
	return text
}

// whenStored reports an event once the samples that it is about are stored: what
// has been reported survives the process.
func (r *race) whenStored(e Event) {
	r.unreported = append(r.unreported, e)
}

// store writes the samples so far, to the database or to its journal, and reports
// the events that are about them. The time that it takes does not count. A failure
// is reported and does not end the race: the last write decides.
func (r *race) store() error {
	r.stored = r.tuner.now()
	trials := make([]cache.Trial, 0, len(r.candidates))
	for _, x := range r.candidates {
		if len(x.trial.Samples) > 0 || x.trial.Failure != "" {
			trials = append(trials, x.trial)
		}
	}
	if len(trials) == 0 {
		return nil
	}
	err := r.tuner.Cache.KeepTrials(r.key, trials)
	if err != nil {
		r.emit(Unkept{r.header(), err.Error()})
	}
	for _, e := range r.unreported {
		r.emit(e)
	}
	r.unreported = nil
	r.end = r.end.Add(r.tuner.now().Sub(r.stored))
	return err
}
