package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/kernels/executable"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/partition"
	"github.com/tilewright/tilewright/tuner"
)

// withFusions is a module with fusions, those that the command line makes.
func withFusions(m *hlo.Module) *hlo.Module {
	split, err := partition.Module(context.Background(), m, partition.Options{})
	if err != nil {
		panic(err) // a context that never ends
	}
	return split.Module
}

// execute times a whole model by its winners and by XLA, in turns, and then the
// fusions that take longest. Both use all processors. Ours includes what the
// reference interprets, and XLA's is what jax.jit would run of the same text; the
// inputs are alike in kind, not in their elements, which no model looks at in a way
// that changes its work. A model whose arguments are large is left out: its inputs
// and outputs are in memory twice.
func (o options) execute(ctx context.Context, m model, r *row, jax *rival) {
	if o.rounds == 0 {
		return
	}
	parsed, err := hlo.Parse(m.Name, m.Text)
	if err != nil {
		return // loading has noted it
	}
	split := withFusions(parsed)
	if n := argumentBytes(split.Entry); n > o.maxBytes {
		r.notef("not executed: its arguments take %.1f GB", float64(n)/1e9)
		return
	}
	b := cpu.New()
	db := cache.Open(o.database(m.Name))
	e, err := executable.Compile(ctx, split, b, executable.Options{
		Plan: winners(db, b),
	})
	if err != nil {
		r.notef("executable: %v", err)
		return
	}
	defer e.Close()
	in, err := inputs(split.Entry)
	if err != nil {
		r.notef("inputs: %v", err)
		return
	}
	file := filepath.Join(o.scratch, m.Name)
	ours := func() error {
		_, err := e.Run(ctx, in)
		e.GiveBack() // as XLA's arrays are deleted
		return err
	}
	r.ours, r.jax, err = inTurns(o.rounds, ours, jax, file)
	if err != nil {
		r.notef("executed: %v", err)
		return
	}
	r.rivals(ctx, o, e, jax)
}

// winners finds the plans of fusions in a database. One that was not reached in the
// time of tuning has none there and takes its default plan.
func winners(db *cache.DB, b kernels.Backend) func(*hlo.Computation) (kernels.Plan, bool, error) {
	return func(c *hlo.Computation) (kernels.Plan, bool, error) {
		return tuner.Runnable(context.Background(), db, c, b)
	}
}

// argumentBytes are the bytes of a computation's parameters.
func argumentBytes(c *hlo.Computation) (n int64) {
	for _, p := range c.Params {
		n += p.Shape.Bytes()
	}
	return n
}

// inputs are small numbers that are no zeros; whole numbers are 0 or 1, which are
// in range as indices.
func inputs(c *hlo.Computation) ([]kernels.Buffer, error) {
	rng := rand.New(rand.NewPCG(1, 1))
	var all []kernels.Buffer
	for _, p := range c.Params {
		b, err := kernels.NewBuffer(p.Shape)
		if err != nil {
			return nil, err
		}
		for n := range p.Shape.Elements() {
			if p.Shape.DType.IsFloat() {
				b.SetFloat(n, 0.01+0.19*rng.Float64())
			} else {
				b.SetInt(n, rng.Int64N(2))
			}
		}
		all = append(all, b)
	}
	return all, nil
}

// inTurns runs ours and the rival's once to warm up, then in turns, and returns
// their medians. Without a rival its time is 0; so it is with an error of it.
func inTurns(
	rounds int, ours func() error, jax *rival, file string,
) (our, their float64, err error) {
	if err := ours(); err != nil {
		return 0, 0, err
	}
	var a, b []float64
	for range rounds {
		start := time.Now()
		if err := ours(); err != nil {
			return 0, 0, err
		}
		a = append(a, time.Since(start).Seconds())
		if jax == nil || err != nil {
			continue
		}
		var times []float64
		times, err = jax.ask(request{File: file, Runs: 1})
		b = append(b, times...)
	}
	if jax != nil {
		jax.ask(request{File: file, Drop: true})
	}
	if err != nil {
		err = fmt.Errorf("XLA: %w", err)
	}
	return median(a), median(b), err
}

// median of some times; 0 of none. It sorts them.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// rivals times the fusions that take longest in the model alone, beside XLA's
// programs for the same text.
func (r *row) rivals(ctx context.Context, o options, e *executable.Executable, jax *rival) {
	units := slices.DeleteFunc(e.Units(), func(u executable.Unit) bool {
		return u.Plan == "" || u.Runs == 0
	})
	slices.SortFunc(units, func(x, y executable.Unit) int {
		return cmp.Compare(y.Time, x.Time)
	})
	for _, u := range units[:min(o.fusions, len(units))] {
		if err := r.rival(ctx, o, u, jax); err != nil {
			r.notef("%s beside XLA: %v", u.Name, err)
		}
	}
}

// alone compiles the kernel of a unit again, and returns it with a function that
// runs it once on arrays of its own.
func alone(ctx context.Context, u executable.Unit) (kernels.Kernel, func() error, error) {
	plan, err := kernels.ParsePlan(u.Plan)
	if err != nil {
		return nil, nil, err
	}
	p, err := symtile.Analyze(ctx, u.Computation)
	if err != nil {
		return nil, nil, err
	}
	in, err := inputs(u.Computation)
	if err != nil {
		return nil, nil, err
	}
	var out []kernels.Buffer
	for _, s := range kernels.OutputShapes(u.Computation) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, b)
	}
	k, err := cpu.New().Compile(ctx, p, plan)
	return k, func() error {
		_, err := k.Run(ctx, in, out)
		return err
	}, err
}

// rival times one fusion alone, beside XLA's program for its canonical text. In the
// model its inputs are where the operation before has left them, in a cache or not;
// alone they are those of the run before. Both programs are timed in the latter way.
func (r *row) rival(ctx context.Context, o options, u executable.Unit, jax *rival) error {
	text := "HloModule fusion\n" + u.Computation.Canonical()
	file := filepath.Join(o.scratch, "fusion.hlo")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		return err
	}
	k, ours, err := alone(ctx, u)
	if err != nil {
		return err
	}
	defer k.Close()
	our, their, err := inTurns(o.rounds, ours, jax, file)
	stored := "default plan"
	if u.Stored {
		stored = "winner"
	}
	r.notef(
		"%s (%s %s): %.3g s in the model, alone %.3g s, XLA %.3g s",
		u.Name, stored, u.Plan,
		u.Time.Seconds()/float64(u.Runs), our, their,
	)
	return err
}
