// Package tuner is the story: lookup, rank, race, keep.
package tuner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Version is this tool's, in records.
const Version = "tilewright 0.1"

// Options of a tuning run; the zero value is right.
type Options struct {
	Candidates int              // plans measured per fusion; 0 means 16
	Budget     time.Duration    // time of measuring a fusion, that of its reference results apart; 0 means 10 s
	Seed       int64            // of inputs, explorers and the order of measuring
	Margin     float64          // what a plan must beat the default by; 0 means 0.02
	Force      bool             // measure again although a winner is stored
	Observe    func(Event)      // called in order, from one goroutine; may be nil
	Now        func() time.Time // for tests; nil means time.Now
}

func (o Options) candidates() int { return orDefault(o.Candidates, 16) }
func (o Options) budget() time.Duration {
	return orDefault(o.Budget, 10*time.Second)
}
func (o Options) margin() float64 { return orDefault(o.Margin, 0.02) }

func (o Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

func orDefault[T comparable](v, zeroMeans T) T {
	var zero T
	if v == zero {
		return zeroMeans
	}
	return v
}

// A Tuner tunes fusions on one backend.
type Tuner struct {
	Backend kernels.Backend
	Cache   *cache.DB
	Model   *cost.Model // nil means the roofline, fitted to the samples in Cache
	Options Options
}

// A Result of tuning one fusion.
type Result struct {
	Record  cache.Record
	Hit     bool     // nothing was measured
	SafeGap []string // how the safe context of a hit differs from now
}

// Lookup is the compiler's door: it never compiles, runs or writes.
func (t *Tuner) Lookup(c *hlo.Computation) (Result, bool, error) {
	r, found, err := t.Cache.Get(t.key(c))
	if !found || err != nil {
		return Result{}, false, err
	}
	return Result{
		Record:  r,
		Hit:     true,
		SafeGap: cache.SafeDiff(r.Safe, t.Backend.Identity().Safe),
	}, true, nil
}

func (t *Tuner) key(c *hlo.Computation) cache.Key {
	d := t.Backend.Identity()
	return cache.Key{
		Fusion:  c.Fingerprint(),
		Device:  d.Name,
		Backend: d.Backend,
		Codegen: d.Revision,
	}
}

// Tune is Lookup that fills the gap by measuring. A fusion that cannot be tiled
// is a *symtile.Untileable. When ctx ends, what was measured is kept and a
// later call goes on from there.
func (t *Tuner) Tune(ctx context.Context, c *hlo.Computation) (Result, error) {
	if r, found, err := t.Lookup(c); err != nil ||
		found && !t.Options.Force {
		if found {
			t.emit(Event{
				Kind:    "hit",
				Fusion:  c.Name,
				Plan:    r.Record.Plan,
				Seconds: r.Record.Seconds,
			})
		}
		return r, err
	}
	program, err := symtile.Analyze(c)
	if err != nil {
		t.emit(Event{
			Kind:   "refused",
			Fusion: c.Name,
			Reason: err.Error(),
		})
		return Result{}, err
	}
	plans := slices.Collect(t.Backend.Plans(program))
	ranked, err := t.rank(program, plans)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	t.emit(Event{
		Kind:   "ranked",
		Fusion: c.Name,
		Legal:  int64(len(plans)),
	})
	decide := t.race
	if t.Backend.Device().Untimed {
		decide = t.chooseByModel
	}
	record, err := decide(ctx, c, program, ranked)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	record.Legal = int64(len(plans))
	if _, err := t.Cache.Put(record); err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	return Result{Record: record}, nil
}

// rank orders plans by the model, fitted to what is stored when none was given.
func (t *Tuner) rank(
	p *symtile.Program, plans []kernels.Plan,
) ([]cost.Ranked, error) {
	m, err := t.model()
	if err != nil {
		return nil, err
	}
	return m.Rank(p, plans)
}

func (t *Tuner) model() (*cost.Model, error) {
	if t.Model != nil {
		return t.Model, nil
	}
	return FitStored(t.Cache, t.Backend.Device())
}

// FitStored fits the roofline of a device to the samples its records hold.
func FitStored(db *cache.DB, d kernels.Device) (*cost.Model, error) {
	var samples []cost.Sample
	for r, err := range db.All() {
		if err != nil {
			return nil, err
		}
		if r.Device == d.Name &&
			r.Backend == d.Backend && r.Codegen == d.Revision {
			samples = append(samples, StoredSamples(r)...)
		}
	}
	return cost.Roofline(d).Fit(samples)
}

// StoredSamples is what a record's trials teach a cost model: the median of
// each plan that was timed.
func StoredSamples(r cache.Record) []cost.Sample {
	var out []cost.Sample
	for _, t := range r.Trials {
		var f cost.Features
		if t.Failure == "" && len(t.Samples) > 0 &&
			json.Unmarshal(t.Features, &f) == nil {
			out = append(out, cost.Sample{
				Group:    fmt.Sprintf("%x", r.Fusion[:8]),
				Features: f,
				Seconds:  t.Median(),
			})
		}
	}
	return out
}

// candidates chooses who races: the default, the cheapest by the model, and one
// in eight drawn at random from the better half, so that the model also learns
// where it is wrong.
func (t *Tuner) candidates(
	p *symtile.Program, ranked []cost.Ranked,
) ([]cost.Ranked, error) {
	def, err := t.Backend.Default(p)
	if err != nil {
		return nil, err
	}
	m, err := t.model()
	if err != nil {
		return nil, err
	}
	first, err := m.Rank(p, []kernels.Plan{def})
	if err != nil {
		return nil, err
	}
	chosen := map[string]bool{def.String(): true}
	out := first
	take := func(r cost.Ranked) {
		text := r.Plan.String()
		if !chosen[text] &&
			len(out) < t.Options.candidates() {
			chosen[text] = true
			out = append(out, r)
		}
	}
	explorers := t.Options.candidates() / 8
	for _, r := range ranked[:min(len(ranked), t.Options.candidates()-1-explorers)] {
		take(r)
	}
	rng := rand.New(rand.NewPCG(
		uint64(t.Options.Seed), uint64(len(ranked)),
	))
	for n := 0; n < 4*explorers && len(ranked) > 0; n++ {
		take(ranked[rng.IntN((len(ranked)+1)/2)])
	}
	for _, r := range ranked {
		take(r)
	}
	return out, nil
}

// ErrNothingRan is when not even the default runs.
var ErrNothingRan = errors.New("no plan could be compiled, verified and timed")

// ErrNothingVerified is the same where nothing is timed.
var ErrNothingVerified = errors.New("no plan could be compiled and verified")
