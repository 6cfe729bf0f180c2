package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cmd/tilewright/internal/packtiming"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/executable"
	"github.com/tilewright/tilewright/symtile/hlo"
	"github.com/tilewright/tilewright/symtile/hlo/origin"
	"github.com/tilewright/tilewright/symtile/layout"
	"github.com/tilewright/tilewright/tuner"
	"github.com/tilewright/tilewright/tuner/report"
)

// moduleJSON is the result of run -json for a whole module. Times are seconds.
type moduleJSON struct {
	// Name of the module, and stable name of the device.
	Module string `json:"module"`
	Device string `json:"device"`
	// Times has one entry a run of the module. Untimed says that the device cannot time:
	// there are none.
	Times   []float64 `json:"times"`
	Untimed bool      `json:"untimed,omitempty"`
	// Units are the kernels and interpreted instructions.
	Units []unitJSON `json:"units"`
	// Allocated is the memory of values of a run in bytes, inputs not included,
	// and Values what they would take without reuse.
	Allocated int64 `json:"allocated"`
	Values    int64 `json:"values"`
	// runJSON's fields of the same names.
	Checked bool     `json:"checked"`
	Allowed float64  `json:"allowed,omitempty"`
	Outputs []string `json:"outputs,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// unitJSON is a kernel, or an instruction that is interpreted.
type unitJSON struct {
	// Name of the fusion or instruction, and its fingerprint, hexadecimal.
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"`
	// From is the operation and the line of the user's program that it comes from.
	From string `json:"from,omitempty"`
	// Plan of the kernel; empty for what is interpreted, for the Reason.
	// Dims are the names of the plan's dimensions, Packed the parameter that is packed
	// once.
	Plan   string            `json:"plan,omitempty"`
	Dims   kernels.PlanNames `json:"dims,omitempty"`
	Stored bool              `json:"stored,omitempty"`
	Packed string            `json:"packed,omitempty"`
	Reason string            `json:"reason,omitempty"`
	// Runs and Seconds are per run of the module, on average.
	Runs    float64 `json:"runs"`
	Seconds float64 `json:"seconds"`
}

// isOneFusion reports whether a module does nothing but compute one fusion of its
// parameters, in their order.
func isOneFusion(m *hlo.Module) bool {
	all := m.Fusions()
	for _, i := range m.Entry.Instrs {
		switch {
		case i.Op == hlo.OpParameter || all[0] == m.Entry:
		case i.Op != hlo.OpFusion || !slices.Equal(i.Operands, m.Entry.Params):
			return false
		}
	}
	return len(all) == 1
}

// module executes a whole module and prints what it took.
func (f runFlags) module(c *call, m *hlo.Module) error {
	if *f.tiling != "" || *f.plan != "" || *f.source || *f.counters {
		_, err := oneFusion(f.file, m, "")
		return cmp.Or(err, usagef("-tiling, -plan, -source and -counters need -fusion: %s has more than one fusion", f.file))
	}
	weights, err := regexp.Compile(*f.weightsOf)
	if err != nil {
		return usagef("-weights-of: %v", err)
	}
	b := f.backend
	e, err := executable.Compile(c.ctx, m, b, executable.Options{
		Plan: c.winners(*f.db, b), Packed: c.packings(*f.db, b, m, weights),
	})
	if err != nil {
		return err
	}
	defer e.Close()
	in, err := f.inputs(c.ctx, m.Entry)
	if err != nil {
		return err
	}
	r := &moduleJSON{Module: m.Name, Device: b.Identity().Name}
	var out []kernels.Buffer
	repeat := *f.repeat
	if r.Untimed = b.Identity().Untimed; r.Untimed {
		repeat = 1
	}
	for range repeat {
		e.GiveBack()
		start := time.Now()
		if out, err = e.Run(c.ctx, in); err != nil {
			return err
		}
		r.Times = append(r.Times, time.Since(start).Seconds())
		if len(r.Times) == 1 {
			r.Allocated, r.Values = e.Memory().Allocated, e.Memory().Values
		}
	}
	r.describe(e, m.Callers())
	if r.Untimed {
		r.forgetTimes()
	}
	if *f.check {
		if err := r.check(c.ctx, m, b, in, out); err != nil {
			return err
		}
	}
	files := runJSON{}
	if err := files.save(out, f.outputs(len(out))); err != nil {
		return err
	}
	r.Outputs, r.Notes = files.Outputs, append(r.Notes, files.Notes...)
	if c.json {
		return c.printJSON(r)
	}
	r.print(c)
	return nil
}

// winners finds plans in a database, and what is on record against them; nil without one.
func (c *call) winners(db string, b kernels.Backend) func(*hlo.Computation) (kernels.Plan, bool, error) {
	if db == "" {
		return nil
	}
	from := cache.Open(db)
	return func(f *hlo.Computation) (kernels.Plan, bool, error) {
		return tuner.Runnable(c.ctx, from, f, b)
	}
}

// packings finds the weights of a module's fusions that a database says to pay packed:
// constants, and the parameters that -weights-of names; nil without a database.
func (c *call) packings(
	db string, b kernels.Backend, m *hlo.Module, named *regexp.Regexp,
) func(*hlo.Computation) (executable.Packed, bool) {
	packer, can := b.(kernels.PackingBackend)
	if db == "" || !can {
		return nil
	}
	// An empty expression would match every name: without one only constants are
	// weights, which they are whatever anybody says.
	weights := packtiming.Weights{}
	if named.String() != "" {
		weights.Named = named
	}
	weights.Add(m)
	from, id := cache.Open(db), kernels.IdentityOf(b)
	return func(f *hlo.Computation) (x executable.Packed, found bool) {
		// One parameter of a fusion is packed, since what two gain together was not
		// measured: the one with the least ratio of those whose interval excludes 1.
		least := 1.0
		// A record that cannot be read is as good as none: the default plan runs then.
		won, _, _ := tuner.Lookup(from, f, id)
		for _, k := range weights.Of(f) {
			pack, ok := packer.Pack(f, k)
			if !ok {
				continue
			}
			s := packtiming.Subject{Fusion: f, Parameter: k, Pack: layout.Pack(pack)}
			kept, err := from.Packings(packtiming.Result{}.Of(s, id))
			for _, p := range kept {
				plan, bad := kernels.ParsePlan(p.PackedPlan)
				if errors.Join(err, bad) != nil || p.Pack != s.Pack.String() || p.Pays() == 0 || p.Ratio[0] >= least {
					continue
				}
				// What the pack gains was measured beside the winner of that time. One that
				// was found since may be as fast without it: then nothing is known to gain,
				// and the fusion is run as it is. tune -weights-of measures it again.
				if r := &won.Record; r.Plan != "" && r.Plan != p.InPlacePlan && r.Seconds <= p.Packed {
					continue
				}
				least, found = p.Ratio[0], true
				x = executable.Packed{Fusion: s.Packed(), Plan: plan, Parameter: k, Move: s.Move}
			}
		}
		return x, found
	}
}

// describe notes what ran. The callers are those of the module that was read; what the
// executable made of it besides comes from where its own instructions say.
func (r *moduleJSON) describe(e *executable.Executable, callers map[*hlo.Computation][]*hlo.Instr) {
	runs := float64(len(r.Times))
	for _, u := range e.Units() {
		print := u.Computation.Fingerprint()
		var dims kernels.PlanNames
		if u.Plan != "" {
			dims = planNames(context.Background(), u.Computation)
		}
		from, _ := origin.First(u.Computation.Sources(callers[u.Computation]))
		r.Units = append(r.Units, unitJSON{
			u.Name, hex.EncodeToString(print[:]), from, u.Plan, dims, u.Stored, u.Packed, u.Reason,
			float64(u.Runs) / runs, u.Time.Seconds() / runs,
		})
		r.Allowed += float64(u.Runs) / runs * check.ToleranceOf(u.Computation).Relative
	}
}

// forgetTimes drops what a simulator took: it is no time of the device.
func (r *moduleJSON) forgetTimes() {
	r.Times = []float64{}
	for k := range r.Units {
		r.Units[k].Seconds = 0
	}
}

// check compares the outputs with those of the reference. What is allowed is the
// sum of what each kernel that ran may differ, and what other roundings do to an
// element where the reference can say.
func (r *moduleJSON) check(
	ctx context.Context, m *hlo.Module, b kernels.Backend, in, out []kernels.Buffer,
) error {
	oracle, err := executable.Compile(ctx, m, b, executable.Options{Interpret: true})
	if err != nil {
		return err
	}
	want, err := oracle.Run(ctx, in)
	if err != nil {
		return err
	}
	allowed := check.Tolerance{Relative: r.Allowed, Units: 1}
	wrong, err := allowed.Agree(
		ctx, m.Entry, in, out, want,
		func(ctx context.Context, n int) ([]kernels.Buffer, error) {
			return perturbed(ctx, m, b, in, int64(n)+1)
		},
	)
	if err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	r.Checked = true
	return nil
}

// perturbed evaluates a module by the reference with other roundings.
func perturbed(
	ctx context.Context, m *hlo.Module, b kernels.Backend, in []kernels.Buffer, seed int64,
) ([]kernels.Buffer, error) {
	o := executable.Options{Interpret: true, Perturb: seed}
	e, err := executable.Compile(ctx, m, b, o)
	if err != nil {
		return nil, err
	}
	return e.Run(ctx, in)
}

// print prints the result for people, with the units that take longest.
func (r *moduleJSON) print(c *call) {
	fmt.Fprintf(c.out, "%s on %s\n", r.Module, r.Device)
	if r.Untimed {
		fmt.Fprintln(c.out, "it ran; the device times nothing")
	} else {
		fmt.Fprintf(c.out, "best of %d runs: %s\n", len(r.Times), report.Seconds(slices.Min(r.Times)))
	}
	stored, interpreted := 0, 0
	for _, u := range r.Units {
		if u.Stored {
			stored++
		}
		if u.Plan == "" {
			interpreted++
		}
	}
	fmt.Fprintf(
		c.out, "%d distinct kernels, %d of them by stored plans; %d instructions are interpreted\n",
		len(r.Units)-interpreted, stored, interpreted,
	)
	fmt.Fprintf(
		c.out, "memory of values: %.1f MB, %.1f MB without reuse\n",
		float64(r.Allocated)/1e6, float64(r.Values)/1e6,
	)
	longest := slices.SortedFunc(slices.Values(r.Units), func(x, y unitJSON) int {
		return cmp.Compare(y.Seconds, x.Seconds)
	})
	if !r.Untimed && len(r.Times) > 1 {
		fmt.Fprintf(c.out, "times of a run on average, over the %d:\n", len(r.Times))
	}
	t := c.table()
	for _, u := range longest[:min(len(longest), 10)] {
		took := report.Seconds(u.Seconds)
		if r.Untimed {
			took = "-"
		}
		how := cmp.Or(u.Dims.Stored(u.Plan), u.Reason)
		if u.Packed != "" {
			how += ", " + u.Packed + " packed once"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s times\t%s\t%s\n", u.Name, took, timesText(u.Runs), how, u.From)
	}
	t.Flush()
	if r.Checked {
		fmt.Fprintf(c.out, "agrees with the reference (within %.2g of the largest element)\n", r.Allowed)
	}
	for _, name := range r.Outputs {
		fmt.Fprintf(c.out, "wrote %s\n", name)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(c.out, "note: %s\n", note)
	}
}
