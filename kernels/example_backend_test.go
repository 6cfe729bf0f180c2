package kernels_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/tuner"
)

// An interpreter is a complete backend. It offers every tiling of a program, and its
// kernels compute with the reference interpreter, whatever the tiling. A real backend
// differs in Compile and in the description of its device.
type interpreter struct{}

// Identity costs nothing: lookups call it.
func (interpreter) Identity() kernels.Device {
	return kernels.Device{Name: "interpreter", Backend: "example", Revision: "1", Lanes: 1}
}

// Device adds the rates of the device, which bound the times that are plausible.
func (b interpreter) Device() kernels.Device {
	d := b.Identity()
	d.FLOPS = 1e11
	d.Levels = []kernels.Level{{Name: "memory", Bandwidth: 1e11}}
	return d
}

// Plans are the legal tilings with one knob, unroll.
func (interpreter) Plans(ctx context.Context, p *symtile.Program) iter.Seq[kernels.Plan] {
	return func(yield func(kernels.Plan) bool) {
		for tiling := range p.Space.Tilings() {
			plan := kernels.Plan{Tiles: tiling}
			if !yield(plan) || !yield(plan.With("unroll", 4)) {
				return
			}
		}
	}
}

// Default is the first of the plans.
func (b interpreter) Default(ctx context.Context, p *symtile.Program) (kernels.Plan, error) {
	for plan := range b.Plans(context.Background(), p) {
		return plan, nil
	}
	return kernels.Plan{}, fmt.Errorf("%s has no tiling", p.Fusion.Name)
}

// Compile refuses plans that are not legal or have unknown knobs.
func (interpreter) Compile(_ context.Context, p *symtile.Program, plan kernels.Plan) (kernels.Kernel, error) {
	if err := p.Check(plan.Tiles); err != nil {
		return nil, &kernels.Rejected{Plan: plan, Reason: err.Error()}
	}
	for _, knob := range plan.Knobs {
		if knob.Name != "unroll" {
			return nil, &kernels.Rejected{Plan: plan, Reason: "there is no knob " + knob.Name}
		}
	}
	return kernel{p.Fusion}, nil
}

type kernel struct{ fusion *hlo.Computation }

func (k kernel) Source() string { return k.fusion.Canonical() }

func (k kernel) Close() error { return nil }

// Run computes the outputs and returns how long that took.
func (k kernel) Run(_ context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	begin := time.Now()
	results, err := reference.Interpret(k.fusion, in)
	if err != nil {
		return 0, err
	}
	for n := range results {
		copy(out[n].Data, results[n].Data)
	}
	return time.Since(begin), nil
}

// A backend is five methods, and its kernels three. Everything else follows: here a
// fusion is tuned on it, which verifies, times and stores its plans.
func Example_backend() {
	dir, err := os.MkdirTemp("", "kernels")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	m, err := hlo.Parse("double.hlo", []byte(`
		x = f32[8,16] parameter(0)
		ROOT y = f32[8,16] add(x, x)`))
	if err != nil {
		log.Fatal(err)
	}

	t := &tuner.Tuner{
		Backend: interpreter{},
		Cache:   cache.Open(filepath.Join(dir, "winners.db")),
		Options: tuner.Options{Candidates: 3, Budget: 100 * time.Millisecond},
	}
	r, err := t.Tune(context.Background(), m.Entry)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("plans:", r.Record.Legal, "tried:", len(r.Record.Trials), "checked:", r.Record.Checked)

	p, err := symtile.Analyze(context.Background(), m.Entry)
	if err != nil {
		log.Fatal(err)
	}
	_, err = t.Backend.Compile(context.Background(), p, kernels.Plan{Tiles: symtile.Tiling{8, 99}})
	fmt.Println(err)
	// Output:
	// plans: 40 tried: 3 checked: true
	// plan 8,99: tiling [8 99]: size 99 of d1 is outside [1, 16]
}
