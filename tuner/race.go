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
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// What a race goes by.
const (
	sampleSpan  = time.Millisecond       // a sample lasts at least this long
	mostBlocks  = 40                     // then what is left is a tie
	confidence  = 0.99                   // of the interval that drops a candidate
	stated      = 0.95                   // of the intervals in the record
	hopeless    = 1.5                    // ratio in each of the first two blocks that drops without an interval
	flushEvery  = 250 * time.Millisecond // samples are stored at least this often
	runDeadline = 10 * time.Second       // of a run of the default, and of a sample
	trust       = 100                    // or as many times what the model predicts, if that is longer
	patience    = 30                     // times the default's run that a run of another candidate may take in the gate
	leastWait   = 100 * time.Millisecond // but at least this
)

// A racer is a candidate in a race.
type racer struct {
	cost.Ranked
	kernel kernels.Kernel
	batch  int
	trial  cache.Trial
	out    bool // failed or dropped
}

// A race times candidates in blocks: in each, every live one once, in shuffled
// order. Only samples of one block are compared, as ratios, so slow drift of
// the machine cancels; a later session adds blocks of its own.
type race struct {
	t       *Tuner
	c       *hlo.Computation
	key     cache.Key
	racers  []*racer // the default first
	bench   *kernels.Bench
	rng     *rand.Rand
	block   int
	end     time.Time
	flushed time.Time
}

func (t *Tuner) race(ctx context.Context, c *hlo.Computation, p *symtile.Program, ranked []cost.Ranked) (cache.Record, error) {
	entrants, err := t.entrants(p, ranked)
	if err != nil {
		return cache.Record{}, err
	}
	r := &race{t: t, c: c, key: t.key(c), rng: rand.New(rand.NewPCG(uint64(t.Options.Seed), 0x72616365))}
	defer r.close()
	if err := r.enter(entrants); err != nil {
		return cache.Record{}, err
	}
	if err := r.qualify(ctx, p); err != nil {
		return cache.Record{}, errors.Join(err, r.flush())
	}
	for !r.over() {
		if err := r.lap(ctx); err != nil {
			return cache.Record{}, errors.Join(err, r.flush())
		}
	}
	return r.record()
}

// enter makes racers and gives them the samples of an interrupted race.
func (r *race) enter(entrants []cost.Ranked) error {
	before, err := r.t.Cache.Trials(r.key)
	if err != nil {
		return err
	}
	if r.t.Options.Force {
		before = nil
	}
	for _, e := range entrants {
		x, err := newRacer(e)
		if err != nil {
			return err
		}
		if k := slices.IndexFunc(before, func(t cache.Trial) bool { return t.Plan == x.trial.Plan }); k >= 0 {
			x.trial.Samples, x.trial.Blocks, x.trial.Clocks = before[k].Samples, before[k].Blocks, before[k].Clocks
			x.trial.Failure, x.trial.Detail, x.trial.Dropped = before[k].Failure, before[k].Detail, before[k].Dropped
			x.out = x.trial.Failure != "" || x.trial.Dropped
		}
		for _, b := range x.trial.Blocks {
			r.block = max(r.block, b+1)
		}
		r.racers = append(r.racers, x)
	}
	r.racers[0].out = r.racers[0].trial.Failure != "" // the default races to the end
	return nil
}

// qualify compiles and checks every racer, and times it once to size its
// samples: compile, check, time, in that order, always. The default goes
// first, and an eighth of the budget is kept for the race. The budget begins when
// the reference's results are there.
func (r *race) qualify(ctx context.Context, p *symtile.Program) error {
	span := int64(64 << 20)
	levels := r.t.Backend.Device().Levels
	for _, l := range levels {
		if l.Bytes > 0 {
			span = 2 * l.Bytes
		}
	}
	verifier, err := kernels.NewVerifier(r.c, r.t.Options.Seed)
	if err != nil {
		return err
	}
	if r.bench, err = kernels.NewBench(r.c, r.t.Options.Seed, span); err != nil {
		return err
	}
	r.end = r.t.Options.now().Add(r.t.Options.budget())
	r.t.emit(Event{Kind: "start", Fusion: r.c.Name, Of: len(r.racers), Left: r.left()})
	model := cost.Roofline(r.t.Backend.Device())
	for k, x := range r.racers {
		if x.out {
			continue
		}
		if k > 1 && r.left() < r.t.Options.budget().Seconds()/8 {
			r.racers = r.racers[:k]
			break
		}
		if err := r.try(ctx, p, verifier, model, x); err != nil {
			return err
		}
		if x.out {
			r.t.emit(Event{Kind: "failed", Fusion: r.c.Name, Plan: x.trial.Plan, Reason: x.trial.Failure + ": " + x.trial.Detail})
			continue
		}
		r.t.emit(Event{Kind: "tried", Fusion: r.c.Name, Plan: x.trial.Plan, Seconds: x.trial.Median(), Tried: k + 1, Of: len(r.racers), Left: r.left()})
	}
	r.block++
	if !slices.ContainsFunc(r.racers, func(x *racer) bool { return !x.out }) {
		return errNobody
	}
	return nil
}

// try takes one racer through the gate. Its failures are its own; the error is
// ctx's.
func (r *race) try(ctx context.Context, p *symtile.Program, v *kernels.Verifier, model *cost.Model, x *racer) error {
	k, err := r.compile(ctx, p, x)
	if err == nil {
		x.kernel, k = k, kernels.Bounded(k, r.wait())
		err = v.For(r.t.Backend.Identity(), x.Plan).Verify(ctx, k)
	}
	var got kernels.Timing
	if err == nil {
		got, err = r.bench.Sample(ctx, k, 1) // the first run warms up
	}
	if least := model.LowerBound(x.Features); err == nil && got.Seconds >= least {
		x.batch = kernels.Batch(got.Seconds, sampleSpan)
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
	x.batch = kernels.Batch(got.Seconds, sampleSpan)
	x.add(got, r.block)
	return nil
}

func (r *race) compile(ctx context.Context, p *symtile.Program, x *racer) (kernels.Kernel, error) {
	limited, cancel := context.WithTimeout(ctx, r.deadline())
	defer cancel()
	return r.t.Backend.Compile(limited, p, x.Plan)
}

// wait is how long a candidate may run in the gate, once it is known what the
// default takes: one that is thirty times slower need not be timed.
func (r *race) wait() time.Duration {
	def := r.racers[0].trial.Median()
	if def == 0 {
		return r.deadline()
	}
	return min(r.deadline(), max(leastWait, time.Duration(patience*def*float64(time.Second))))
}

// deadline is how long anything may take that is not hung.
func (r *race) deadline() time.Duration {
	return max(runDeadline, time.Duration(trust*r.racers[0].Seconds*float64(time.Second)))
}

var errImplausible = errors.New("faster than the device can be: it cannot have done the work")

func (x *racer) add(t kernels.Timing, block int) {
	x.trial.Add(t.Seconds, t.Hertz, block)
}

func (x *racer) fail(err error) {
	var rejected *kernels.Rejected
	var wrong *kernels.Wrong
	x.out, x.trial.Detail = true, err.Error()
	switch {
	case errors.As(err, &rejected):
		x.trial.Failure = "rejected"
	case errors.As(err, &wrong):
		x.trial.Failure = "wrong"
	case errors.Is(err, errImplausible):
		x.trial.Failure = "implausible"
	case errors.Is(err, context.DeadlineExceeded):
		x.trial.Failure, x.trial.Detail = "timeout", "far slower than the default, or hung: it was stopped"
	default:
		x.trial.Failure = "error"
	}
}

// lap times every live racer once.
func (r *race) lap(ctx context.Context) error {
	for _, k := range r.rng.Perm(len(r.racers)) {
		x := r.racers[k]
		if x.out || x.kernel == nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, r.deadline())
		got, err := r.bench.Sample(limited, x.kernel, x.batch)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			x.fail(err)
			r.t.emit(Event{Kind: "failed", Fusion: r.c.Name, Plan: x.trial.Plan, Reason: x.trial.Failure + ": " + x.trial.Detail})
			continue
		}
		x.add(got, r.block)
	}
	r.block++
	best := r.best()
	if best == nil {
		return errNobody
	}
	r.drop(best)
	if now := r.t.Options.now(); now.Sub(r.flushed) >= flushEvery {
		r.flushed = now
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.t.emit(Event{Kind: "block", Fusion: r.c.Name, Block: r.block, Live: len(r.live()), Plan: best.trial.Plan,
		Seconds: best.trial.Median(), Ratio: paired(r.racers[0], best, stated).Median, Left: r.left()})
	return nil
}

// drop takes out racers that are slower than the best beyond doubt. The
// default stays: it is what the winner has to beat.
func (r *race) drop(best *racer) {
	for _, x := range r.live() {
		if x == best || x == r.racers[0] {
			continue
		}
		p := paired(x, best, confidence)
		if p.Lo > 1 || twiceHopeless(x, best) {
			x.out, x.trial.Dropped = true, true
			r.t.emit(Event{Kind: "dropped", Fusion: r.c.Name, Plan: x.trial.Plan, Ratio: p.Median})
		}
	}
}

// twiceHopeless says whether x was far slower in every block, and there were two.
func twiceHopeless(x, best *racer) bool {
	a, b := common(x, best)
	for k := range a {
		if a[k] < hopeless*b[k] {
			return false
		}
	}
	return len(a) >= 2
}

func (r *race) live() []*racer {
	var live []*racer
	for _, x := range r.racers {
		if !x.out {
			live = append(live, x)
		}
	}
	return live
}

// best is the live racer with the least median ratio to the default, or of
// seconds when the default fell out.
func (r *race) best() *racer {
	live := r.live()
	if len(live) == 0 {
		return nil
	}
	def := r.racers[0]
	return slices.MinFunc(live, func(a, b *racer) int {
		if def.out {
			return cmp.Compare(a.trial.Median(), b.trial.Median())
		}
		return cmp.Compare(paired(a, def, stated).Median, paired(b, def, stated).Median)
	})
}

// over says whether there is nothing left to find out: the budget is spent, one
// racer is left beside the default and beats it or loses to it beyond doubt, or
// enough blocks say that the rest are ties.
func (r *race) over() bool {
	laps := 0
	for _, x := range r.racers {
		laps = max(laps, len(x.trial.Samples))
	}
	if laps < 2 {
		return false
	}
	if r.left() <= 0 || laps >= mostBlocks {
		return true
	}
	live := r.live()
	if len(live) > 2 || len(live) == 2 && live[0] != r.racers[0] {
		return false
	}
	p := paired(live[0], live[len(live)-1], confidence)
	return len(live) == 1 && laps >= 8 || p.Lo > 1 || p.Hi < 1
}

func (r *race) left() float64 { return r.end.Sub(r.t.Options.now()).Seconds() }

// paired is the interval of x's time over y's, from the blocks both were in.
func paired(x, y *racer, confidence float64) kernels.PairedInterval {
	if x == y {
		return kernels.PairedInterval{Median: 1, Lo: 1, Hi: 1}
	}
	a, b := common(x, y)
	return kernels.Paired(a, b, confidence)
}

// common lists the samples of the blocks that both have.
func common(x, y *racer) (a, b []float64) {
	at := make(map[int]float64, len(y.trial.Blocks))
	for k, block := range y.trial.Blocks {
		at[block] = y.trial.Samples[k]
	}
	for k, block := range x.trial.Blocks {
		if s, ok := at[block]; ok {
			a, b = append(a, x.trial.Samples[k]), append(b, s)
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
		return cache.Record{}, errNobody
	}
	winner := slices.MinFunc(r.ties(best), func(a, b *racer) int {
		return cmp.Or(cmp.Compare(a.Features.Lanes, b.Features.Lanes), cmp.Compare(a.Features.Scratch, b.Features.Scratch), a.Plan.Compare(b.Plan))
	})
	def := r.racers[0]
	if gain := paired(def, winner, stated); !def.out && (gain.Median < 1+r.t.Options.margin() || gain.Lo <= 1) {
		winner = def
	}
	gain := paired(def, winner, stated)
	out := cache.Record{
		Key: r.key, Name: r.c.Name, Canonical: r.c.Canonical(), Safe: r.t.Backend.Device().Safe,
		Plan: winner.trial.Plan, Default: def.trial.Plan, Seconds: winner.trial.Median(), DefaultSeconds: def.trial.Median(),
		Speedup: [3]float64{gain.Median, gain.Lo, finite(gain.Hi)}, Regret: r.regret(winner), Checked: true,
		Evidence: evidence(r.t.Backend, winner.trial.Clocks),
		When:     r.t.Options.now().UTC().Truncate(time.Second), By: Version,
	}
	for _, x := range r.ties(winner) {
		if x != winner {
			out.Ties = append(out.Ties, x.trial.Plan)
		}
	}
	for _, x := range r.racers {
		out.Trials = append(out.Trials, x.trial)
	}
	r.t.emit(Event{Kind: "winner", Fusion: r.c.Name, Plan: out.Plan, Seconds: out.Seconds, Ratio: gain.Median})
	return out, nil
}

// evidence is what a backend saw of its device, and the clocks of the winner's
// samples; nil of a backend that sees nothing.
func evidence(b kernels.Backend, winner []float64) json.RawMessage {
	w, ok := b.(interface{ Saw() kernels.Evidence })
	if !ok {
		return nil
	}
	saw := w.Saw()
	if !saw.Seen() {
		return nil
	}
	saw.Winner = kernels.ClocksOf(winner)
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
func (r *race) ties(x *racer) []*racer {
	var ties []*racer
	for _, y := range r.live() {
		if p := paired(y, x, stated); y == x || p.Lo <= 1 && p.Hi >= 1 && p.Median < 1+r.t.Options.margin() {
			ties = append(ties, y)
		}
	}
	return ties
}

// regret bounds how much slower the winner can be than the best of the tried,
// at the stated confidence: the greatest upper end of winner over candidate.
// It is −1, unknown, when there were too few blocks to say.
func (r *race) regret(winner *racer) float64 {
	worst := 0.0
	for _, x := range r.live() {
		if x == winner {
			continue
		}
		hi := paired(winner, x, stated).Hi
		if math.IsInf(hi, 1) {
			return -1
		}
		worst = max(worst, hi-1)
	}
	return worst
}

// flush stores what was measured so far.
func (r *race) flush() error {
	trials := make([]cache.Trial, 0, len(r.racers))
	for _, x := range r.racers {
		if len(x.trial.Samples) > 0 || x.trial.Failure != "" {
			trials = append(trials, x.trial)
		}
	}
	return r.t.Cache.PutTrials(r.key, trials)
}

func (r *race) close() {
	for _, x := range r.racers {
		if x.kernel != nil {
			x.kernel.Close() // a kernel that was measured has nothing left to say
		}
	}
}
