package tuner

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
)

// A KnobCheck reports which knob of a plan a backend does not have, or which value is
// out of its range.
type KnobCheck func(kernels.Plan) error

// Legality holds stored plans against the fusions that they are for. It may be used
// from several goroutines.
type Legality struct {
	// Knobs has the check of the knobs of each code generator that is known, by backend
	// and revision. Knobs of others are not checked.
	Knobs map[[2]string]KnobCheck

	mu       sync.Mutex
	programs map[cache.Fingerprint]*symtile.Program // the last few
}

// maxPrograms bounds the programs that a Legality keeps. An export is sorted by
// fusion, so that the records of one follow each other.
const maxPrograms = 64

// Imported is a check for cache.DB.Import: Check, after which nobody has compared the
// plan with the reference here, so that Checked is cleared. Dims are set.
func (l *Legality) Imported(ctx context.Context) func(*cache.Record) error {
	return func(r *cache.Record) error {
		r.Checked = false
		p, err := l.check(ctx, r)
		if err == nil {
			r.Dims = p.DimNames()
		}
		return err
	}
}

// Check refuses a record whose text is not that of its fingerprint, or which has a
// plan that is none, has sizes that are not legal for the fusion, or knobs that the
// code generator does not have. Trials that failed may have any plan. The error is of
// the record, or the cause of ctx.
func (l *Legality) Check(ctx context.Context, r *cache.Record) error {
	_, err := l.check(ctx, r)
	return err
}

// check is Check, with the program of the fusion.
func (l *Legality) check(ctx context.Context, r *cache.Record) (*symtile.Program, error) {
	if sha256.Sum256([]byte(r.Canonical)) != r.Fusion {
		return nil, fmt.Errorf("%.60q: its canonical text is of another fusion than its fingerprint", r.Name)
	}
	if err := consistent(r); err != nil {
		return nil, fmt.Errorf("%.60q: %w", r.Name, err)
	}
	p, err := l.program(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%.60q: its fusion: %w", r.Name, err)
	}
	knobs := l.Knobs[[2]string{r.Backend, r.Codegen}]
	for _, x := range plansOf(r) {
		plan, err := kernels.ParsePlan(x.text)
		if err == nil && x.ran {
			err = legal(p, plan, knobs)
		}
		if err != nil {
			return nil, fmt.Errorf("%.60q: plan %.60q: %w", r.Name, x.text, err)
		}
	}
	return p, nil
}

// consistent refuses a record whose times are not between the samples that it has of the
// winner and of the default, or whose gain is more than any two of them have, or not
// between its own bounds.
func consistent(r *cache.Record) error {
	winner, err := within("the winner", r.Trials, r.Plan, r.Seconds)
	if err != nil {
		return err
	}
	base, err := within("the default", r.Trials, r.Default, r.DefaultSeconds)
	if err != nil {
		return err
	}
	gain, lo, hi := r.Speedup[0], r.Speedup[1], r.Speedup[2]
	if winner != nil && base != nil {
		most := slices.Max(base) / slices.Min(winner)
		if gain > most {
			return fmt.Errorf("a gain of %.4g, and of %.4g at most by its samples", gain, most)
		}
	}
	if lo > gain || hi != 0 && hi < gain {
		return fmt.Errorf("a gain of %.4g, which is not from %.4g to %.4g", gain, lo, hi)
	}
	return nil
}

// within are the samples of a plan, nil where there are none; the time of the plan has to
// be between them.
func within(what string, trials []cache.Trial, plan string, seconds float64) ([]float64, error) {
	k := slices.IndexFunc(trials, func(t cache.Trial) bool { return t.Plan == plan })
	if k < 0 || len(trials[k].Samples) == 0 || seconds == 0 {
		return nil, nil
	}
	samples := trials[k].Samples
	if seconds < slices.Min(samples) || seconds > slices.Max(samples) {
		return nil, fmt.Errorf("%s takes %.4g s, which is not between its samples", what, seconds)
	}
	return samples, nil
}

// legal reports what is wrong with a plan that is said to have run.
func legal(p *symtile.Program, plan kernels.Plan, knobs KnobCheck) error {
	if err := p.Check(plan.Tiles); err != nil || knobs == nil {
		return err
	}
	return knobs(plan)
}

// A storedPlan is the text of a plan of a record.
type storedPlan struct {
	text string
	ran  bool // the record says so
}

// plansOf are the plans of a record, the winner first.
func plansOf(r *cache.Record) []storedPlan {
	all := []storedPlan{{r.Plan, true}}
	for _, text := range r.Ties {
		all = append(all, storedPlan{text, true})
	}
	if r.Default != "" {
		all = append(all, storedPlan{r.Default, r.DefaultFailure() == ""})
	}
	for _, t := range r.Trials {
		all = append(all, storedPlan{t.Plan, t.Failure == ""})
	}
	return all
}

// program is the tile program of a record's fusion.
func (l *Legality) program(ctx context.Context, r *cache.Record) (*symtile.Program, error) {
	l.mu.Lock()
	p := l.programs[r.Fusion]
	l.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := kernels.ProgramOfText(ctx, r.Canonical)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.programs == nil || len(l.programs) == maxPrograms {
		l.programs = map[cache.Fingerprint]*symtile.Program{}
	}
	l.programs[r.Fusion] = p
	return p, nil
}
