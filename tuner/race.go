package tuner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// What a race goes by.
const (
	minSampleTime     = time.Millisecond       // a sample lasts at least this long
	maxBlocks         = 40                     // then what is left is a tie
	dropConfidence    = 0.99                   // of the interval that drops a candidate
	recordConfidence  = 0.95                   // of the intervals in the record
	earlyDropRatio    = 1.5                    // ratio in each of the first two blocks that drops without an interval
	storeInterval     = 250 * time.Millisecond // samples are stored at least this often
	minRunTimeout     = 10 * time.Second       // of a run of the default, and of a sample
	predictionSlack   = 100                    // or as many times what the model predicts, if that is longer
	maxVerifySlowdown = 30                     // times the default's run that a run of another candidate may take in the gate
	minVerifyTimeout  = 100 * time.Millisecond // but at least this
)

// A candidate is a candidate in a race.
type candidate struct {
	cost.Ranked
	kernel     kernels.Kernel
	batch      int
	trial      cache.Trial
	eliminated bool // failed or dropped
}

// A race times candidates in blocks: in each, every live one once, in shuffled
// order. Only samples of one block are compared, as ratios, so slow drift of
// the machine cancels; a later session adds blocks of its own.
type race struct {
	tuner      *Tuner
	fusion     *hlo.Computation
	key        cache.Key
	candidates []*candidate // the default first
	bench      *check.Bench
	rng        *rand.Rand
	block      int
	end        time.Time
	storedAt   time.Time
}

func (t *Tuner) race(
	ctx context.Context, c *hlo.Computation,
	p *symtile.Program, ranked []cost.Ranked,
) (cache.Record, error) {
	entrants, err := t.candidates(p, ranked)
	if err != nil {
		return cache.Record{}, err
	}
	r := &race{
		tuner:  t,
		fusion: c,
		key:    t.key(c),
		rng:    rand.New(rand.NewPCG(uint64(t.Options.Seed), 0x72616365)),
	}
	defer r.close()
	if err := r.addCandidates(entrants); err != nil {
		return cache.Record{}, err
	}
	if err := r.verifyAll(ctx, p); err != nil {
		return cache.Record{},
			errors.Join(err, r.storeTrials())
	}
	for !r.done() {
		if err := r.round(ctx); err != nil {
			return cache.Record{},
				errors.Join(err, r.storeTrials())
		}
	}
	return r.record()
}

// addCandidates makes racers and gives them the samples of an interrupted race.
func (r *race) addCandidates(entrants []cost.Ranked) error {
	before, err := r.tuner.Cache.Trials(r.key)
	if err != nil {
		return err
	}
	if r.tuner.Options.Force {
		before = nil
	}
	for _, e := range entrants {
		x, err := newCandidate(e)
		if err != nil {
			return err
		}
		k := slices.IndexFunc(before, func(t cache.Trial) bool {
			return t.Plan == x.trial.Plan
		})
		if k >= 0 {
			x.trial.Samples = before[k].Samples
			x.trial.Blocks = before[k].Blocks
			x.trial.Clocks = before[k].Clocks
			x.trial.Failure = before[k].Failure
			x.trial.Detail = before[k].Detail
			x.trial.Dropped = before[k].Dropped
			x.eliminated = x.trial.Failure != "" || x.trial.Dropped
		}
		for _, b := range x.trial.Blocks {
			r.block = max(r.block, b+1)
		}
		r.candidates = append(r.candidates, x)
	}
	r.candidates[0].eliminated = r.candidates[0].trial.Failure != "" // the default races to the end
	return nil
}

// verifyAll compiles and checks every racer, and times it once to size its
// samples: compile, check, time, in that order, always. The default goes
// first, and an eighth of the budget is kept for the race. The budget begins when
// the reference's results are there.
func (r *race) verifyAll(ctx context.Context, p *symtile.Program) error {
	span := int64(64 << 20)
	levels := r.tuner.Backend.Device().Levels
	for _, l := range levels {
		if l.Bytes > 0 {
			span = 2 * l.Bytes
		}
	}
	verifier, err := check.NewVerifier(
		r.fusion, r.tuner.Options.Seed,
	)
	if err != nil {
		return err
	}
	r.bench, err = check.NewBench(
		r.fusion, r.tuner.Options.Seed, span,
	)
	if err != nil {
		return err
	}
	r.end = r.tuner.Options.now().Add(
		r.tuner.Options.budget(),
	)
	r.tuner.emit(Event{
		Kind:   "start",
		Fusion: r.fusion.Name,
		Of:     len(r.candidates),
		Left:   r.secondsLeft(),
	})
	model := cost.Roofline(r.tuner.Backend.Device())
	for k, x := range r.candidates {
		if x.eliminated {
			continue
		}
		if k > 1 &&
			r.secondsLeft() < r.tuner.Options.budget().Seconds()/8 {
			r.candidates = r.candidates[:k]
			break
		}
		if err := r.verify(ctx, p, verifier, model, x); err != nil {
			return err
		}
		if x.eliminated {
			r.tuner.emit(Event{
				Kind:   "failed",
				Fusion: r.fusion.Name,
				Plan:   x.trial.Plan,
				Reason: x.trial.Failure + ": " + x.trial.Detail,
			})
			continue
		}
		r.tuner.emit(Event{
			Kind:    "tried",
			Fusion:  r.fusion.Name,
			Plan:    x.trial.Plan,
			Seconds: x.trial.Median(),
			Tried:   k + 1,
			Of:      len(r.candidates),
			Left:    r.secondsLeft(),
		})
	}
	r.block++
	if !slices.ContainsFunc(r.candidates, func(x *candidate) bool {
		return !x.eliminated
	}) {
		return ErrNothingRan
	}
	return nil
}

// verify takes one racer through the gate. Its failures are its own; the error is
// ctx's.
func (r *race) verify(
	ctx context.Context, p *symtile.Program,
	v *check.Verifier, model *cost.Model, x *candidate,
) error {
	k, err := r.compile(ctx, p, x)
	if err == nil {
		x.kernel, k = k, check.Bounded(k, r.verifyTimeout())
		err = v.For(x.Plan, r.tuner.Backend.Identity().TF32Allowed()).Verify(ctx, k)
	}
	var got kernels.Timing
	if err == nil {
		got, err = r.bench.Sample(ctx, k, 1) // the first run warms up
	}
	least := model.LowerBound(x.Features)
	if err == nil && got.Seconds >= least {
		x.batch = check.RunsPerSample(got.Seconds, minSampleTime)
		got, err = r.bench.Sample(ctx, k, x.batch)
	} else if err == nil {
		err = errImplausible
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && got.Seconds < model.LowerBound(x.Features) {
		err = errImplausible
	}
	if err != nil {
		x.fail(err)
		return nil
	}
	x.batch = check.RunsPerSample(got.Seconds, minSampleTime)
	x.addSample(got, r.block)
	return nil
}

func (r *race) compile(
	ctx context.Context, p *symtile.Program, x *candidate,
) (kernels.Kernel, error) {
	limited, cancel := context.WithTimeout(ctx, r.runTimeout())
	defer cancel()
	return r.tuner.Backend.Compile(limited, p, x.Plan)
}

// verifyTimeout is how long a candidate may run in the gate, once it is known what the
// default takes: one that is thirty times slower need not be timed.
func (r *race) verifyTimeout() time.Duration {
	def := r.candidates[0].trial.Median()
	if def == 0 {
		return r.runTimeout()
	}
	return min(
		r.runTimeout(),
		max(minVerifyTimeout, time.Duration(maxVerifySlowdown*def*float64(time.Second))),
	)
}

// runTimeout is how long anything may take that is not hung.
func (r *race) runTimeout() time.Duration {
	return max(
		minRunTimeout,
		time.Duration(predictionSlack*r.candidates[0].Seconds*float64(time.Second)),
	)
}

var errImplausible = errors.New("faster than the device can be: it cannot have done the work")

func (x *candidate) addSample(t kernels.Timing, block int) {
	x.trial.Add(t.Seconds, t.Hertz, block)
}

func (x *candidate) fail(err error) {
	var rejected *kernels.Rejected
	var wrong *check.WrongResult
	x.eliminated, x.trial.Detail = true, err.Error()
	switch {
	case errors.As(err, &rejected):
		x.trial.Failure = "rejected"
	case errors.As(err, &wrong):
		x.trial.Failure = "wrong"
	case errors.Is(err, errImplausible):
		x.trial.Failure = "implausible"
	case errors.Is(err, context.DeadlineExceeded):
		x.trial.Failure = "timeout"
		x.trial.Detail = "far slower than the default, or hung: it was stopped"
	default:
		x.trial.Failure = "error"
	}
}

// round times every live racer once.
func (r *race) round(ctx context.Context) error {
	for _, k := range r.rng.Perm(len(r.candidates)) {
		x := r.candidates[k]
		if x.eliminated || x.kernel == nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, r.runTimeout())
		got, err := r.bench.Sample(
			limited, x.kernel, x.batch,
		)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			x.fail(err)
			r.tuner.emit(Event{
				Kind:   "failed",
				Fusion: r.fusion.Name,
				Plan:   x.trial.Plan,
				Reason: x.trial.Failure + ": " + x.trial.Detail,
			})
			continue
		}
		x.addSample(got, r.block)
	}
	r.block++
	best := r.best()
	if best == nil {
		return ErrNothingRan
	}
	r.dropSlower(best)
	if now := r.tuner.Options.now(); now.Sub(r.storedAt) >= storeInterval {
		r.storedAt = now
		if err := r.storeTrials(); err != nil {
			return err
		}
	}
	r.tuner.emit(Event{
		Kind:    "block",
		Fusion:  r.fusion.Name,
		Block:   r.block,
		Live:    len(r.live()),
		Plan:    best.trial.Plan,
		Seconds: best.trial.Median(),
		Ratio:   paired(r.candidates[0], best, recordConfidence).Median,
		Left:    r.secondsLeft(),
	})
	return nil
}

// dropSlower takes out racers that are slower than the best beyond doubt. The
// default stays: it is what the winner has to beat.
func (r *race) dropSlower(best *candidate) {
	for _, x := range r.live() {
		if x == best || x == r.candidates[0] {
			continue
		}
		p := paired(x, best, dropConfidence)
		if p.Lo > 1 || farSlower(x, best) {
			x.eliminated = true
			x.trial.Dropped = true
			r.tuner.emit(Event{
				Kind:   "dropped",
				Fusion: r.fusion.Name,
				Plan:   x.trial.Plan,
				Ratio:  p.Median,
			})
		}
	}
}

// farSlower says whether x was far slower in every block, and there were two.
func farSlower(x, best *candidate) bool {
	a, b := commonBlocks(x, best)
	for k := range a {
		if a[k] < earlyDropRatio*b[k] {
			return false
		}
	}
	return len(a) >= 2
}

func (r *race) live() []*candidate {
	var live []*candidate
	for _, x := range r.candidates {
		if !x.eliminated {
			live = append(live, x)
		}
	}
	return live
}

// best is the live racer with the least median ratio to the default, or of
// seconds when the default fell out.
func (r *race) best() *candidate {
	live := r.live()
	if len(live) == 0 {
		return nil
	}
	def := r.candidates[0]
	return slices.MinFunc(live, func(a, b *candidate) int {
		if def.eliminated {
			return cmp.Compare(
				a.trial.Median(), b.trial.Median(),
			)
		}
		return cmp.Compare(
			paired(a, def, recordConfidence).Median,
			paired(b, def, recordConfidence).Median,
		)
	})
}

// done says whether there is nothing left to find out: the budget is spent, one
// racer is left beside the default and beats it or loses to it beyond doubt, or
// enough blocks say that the rest are ties.
func (r *race) done() bool {
	laps := 0
	for _, x := range r.candidates {
		laps = max(laps, len(x.trial.Samples))
	}
	if laps < 2 {
		return false
	}
	if r.secondsLeft() <= 0 || laps >= maxBlocks {
		return true
	}
	live := r.live()
	if len(live) > 2 ||
		len(live) == 2 && live[0] != r.candidates[0] {
		return false
	}
	p := paired(
		live[0], live[len(live)-1], dropConfidence,
	)
	return len(live) == 1 && laps >= 8 ||
		p.Lo > 1 || p.Hi < 1
}

func (r *race) secondsLeft() float64 {
	return r.end.Sub(r.tuner.Options.now()).Seconds()
}

// paired is the interval of x's time over y's, from the blocks both were in.
func paired(x, y *candidate, confidence float64) check.PairedInterval {
	if x == y {
		return check.PairedInterval{Median: 1, Lo: 1, Hi: 1}
	}
	a, b := commonBlocks(x, y)
	return check.Paired(a, b, confidence)
}

// commonBlocks lists the samples of the blocks that both have.
func commonBlocks(x, y *candidate) (a, b []float64) {
	at := make(map[int]float64, len(y.trial.Blocks))
	for k, block := range y.trial.Blocks {
		at[block] = y.trial.Samples[k]
	}
	for k, block := range x.trial.Blocks {
		if s, ok := at[block]; ok {
			a = append(a, x.trial.Samples[k])
			b = append(b, s)
		}
	}
	return a, b
}

// record names the winner: the best, or of those that cannot be told from it
// the one that uses least, if it beats the default by the margin beyond doubt;
// else the default.
func (r *race) record() (cache.Record, error) {
	best := r.best()
	if best == nil {
		return cache.Record{}, ErrNothingRan
	}
	winner := slices.MinFunc(r.ties(best), func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(a.Features.Lanes, b.Features.Lanes),
			cmp.Compare(a.Features.Scratch, b.Features.Scratch),
			a.Plan.Compare(b.Plan),
		)
	})
	def := r.candidates[0]
	if gain := paired(def, winner, recordConfidence); !def.eliminated &&
		(gain.Median < 1+r.tuner.Options.margin() || gain.Lo <= 1) {
		winner = def
	}
	gain := paired(def, winner, recordConfidence)
	out := cache.Record{
		Key: r.key, Name: r.fusion.Name,
		Canonical: r.fusion.Canonical(),
		Safe:      r.tuner.Backend.Device().Safe,
		Plan:      winner.trial.Plan, Default: def.trial.Plan,
		Seconds:        winner.trial.Median(),
		DefaultSeconds: def.trial.Median(),
		Speedup:        [3]float64{gain.Median, gain.Lo, finite(gain.Hi)},
		Regret:         r.regret(winner), Checked: true,
		Evidence: clockEvidence(r.tuner.Backend, winner.trial.Clocks),
		When:     r.tuner.Options.now().UTC().Truncate(time.Second),
		By:       Version,
	}
	for _, x := range r.ties(winner) {
		if x != winner {
			out.Ties = append(out.Ties, x.trial.Plan)
		}
	}
	for _, x := range r.candidates {
		out.Trials = append(out.Trials, x.trial)
	}
	r.tuner.emit(Event{
		Kind:    "winner",
		Fusion:  r.fusion.Name,
		Plan:    out.Plan,
		Seconds: out.Seconds,
		Ratio:   gain.Median,
	})
	return out, nil
}

// clockEvidence is what a backend saw of its device, and the clocks of the winner's
// samples; nil of a backend that sees nothing.
func clockEvidence(b kernels.Backend, winner []float64) json.RawMessage {
	w, ok := b.(kernels.SampleObserver)
	if !ok {
		return nil
	}
	saw := w.SampleQuality()
	if !saw.Known() {
		return nil
	}
	saw.Winner = kernels.ClockStatsOf(winner)
	text, err := json.Marshal(saw)
	if err != nil {
		return nil // a number JSON cannot say
	}
	return text
}

// finite replaces an unknown upper end, which JSON cannot say, by 0.
func finite(x float64) float64 {
	if math.IsInf(x, 0) {
		return 0
	}
	return x
}

// ties are the live racers that cannot be told from x.
func (r *race) ties(x *candidate) []*candidate {
	var ties []*candidate
	for _, y := range r.live() {
		p := paired(y, x, recordConfidence)
		if y == x ||
			p.Lo <= 1 && p.Hi >= 1 &&
				p.Median < 1+r.tuner.Options.margin() {
			ties = append(ties, y)
		}
	}
	return ties
}

// regret bounds how much slower the winner can be than the best of the tried,
// at the stated confidence: the greatest upper end of winner over candidate.
// It is −1, unknown, when there were too few blocks to say.
func (r *race) regret(winner *candidate) float64 {
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

// storeTrials stores what was measured so far.
func (r *race) storeTrials() error {
	trials := make([]cache.Trial, 0, len(r.candidates))
	for _, x := range r.candidates {
		if len(x.trial.Samples) > 0 ||
			x.trial.Failure != "" {
			trials = append(trials, x.trial)
		}
	}
	return r.tuner.Cache.PutTrials(r.key, trials)
}

func (r *race) close() {
	for _, x := range r.candidates {
		if x.kernel != nil {
			x.kernel.Close() // a kernel that was measured has nothing left to say
		}
	}
}
