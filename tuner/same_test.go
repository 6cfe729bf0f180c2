package tuner

import (
	"context"
	"hash/fnv"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
)

// A clocked backend has the plans, prices and kernels of the CPU, and times of its own: a
// function of the fusion, the plan and the number of the run, by which its clock advances.
type clocked struct {
	kernels.PricedBackend
	now time.Time
}

func (b *clocked) Compile(ctx context.Context, p *symtile.Program, plan kernels.Plan) (kernels.Kernel, error) {
	k, err := b.PricedBackend.Compile(ctx, p, plan)
	if err != nil {
		return nil, err
	}
	return &clockedKernel{k, b, p.Fusion.Name + plan.String(), 0}, nil
}

// A clockedKernel takes 1 to 2 ms, and up to 4 % more by the run.
type clockedKernel struct {
	kernels.Kernel
	b    *clocked
	text string
	runs int
}

func (k *clockedKernel) Run(ctx context.Context, in, out []kernels.Buffer) (time.Duration, error) {
	if _, err := k.Kernel.Run(ctx, in, out); err != nil {
		return 0, err
	}
	k.runs++
	h := fnv.New64a()
	h.Write([]byte(k.text))
	plan := float64(h.Sum64()%1000) / 1000
	h.Write([]byte{byte(k.runs), byte(k.runs >> 8)})
	noise := float64(h.Sum64()>>20%1000) / 1000
	d := time.Duration(1e6 * (1 + plan) * (1 + 0.04*noise))
	k.b.now = k.b.now.Add(d)
	return d, nil
}

// tuneAll tunes programs in their order, and returns what each of them tried and the
// winner, by the name of the fusion.
func tuneAll(t *testing.T, db string, o Options, all ...*symtile.Program) map[string][]string {
	t.Helper()
	b := &clocked{cpu.New(), time.Unix(1e9, 0)}
	o.Seed, o.Force, o.Candidates = 7, true, 10
	tn := &Tuner{Backend: b, Cache: cache.Open(db), Options: o, clock: func() time.Time { return b.now }}
	tried := map[string][]string{}
	for _, p := range all {
		r, err := tn.Tune(t.Context(), p.Fusion)
		if err != nil {
			t.Fatal(err)
		}
		checkPrices(t, &r.Record)
		list := []string{"winner " + r.Record.Plan}
		for _, x := range r.Record.Trials {
			list = append(list, x.Plan)
		}
		tried[p.Fusion.Name] = list
	}
	return tried
}

// checkPrices holds the terms that a record explains against its predictions.
func checkPrices(t *testing.T, r *cache.Record) {
	t.Helper()
	if r.Prices == nil || len(r.Prices.Explained) == 0 {
		t.Fatalf("%s: nothing is explained", r.Name)
	}
	for _, x := range r.Prices.Explained {
		k := slices.IndexFunc(r.Trials, func(y cache.Trial) bool { return y.Plan == x.Plan })
		sum := 0.0
		for _, term := range x.Terms {
			sum += term.Seconds
		}
		if k < 0 || math.Abs(sum-r.Trials[k].Predicted) > 1e-9*sum {
			t.Errorf("%s, %s: the terms are %v, in all %v", r.Name, x.Plan, x.Terms, sum)
		}
	}
	if r.Prices.Regret1 < 1 || r.Prices.Kendall < -1 || r.Prices.Kendall > 1 {
		t.Errorf("%s: %+v", r.Name, r.Prices)
	}
}

// TestSameTwice tunes fusions twice with the same seed and times: what is tried and what
// wins are the same, also where the database has winners of other fusions and the order is
// another one. With Learn the prices are corrected by what is stored.
func TestSameTwice(t *testing.T) {
	all := programs(t)
	for k, p := range all {
		p.Fusion.Name = string(rune('a' + k))
	}
	folder := t.TempDir()
	first := tuneAll(t, filepath.Join(folder, "1.db"), Options{}, all[:3]...)
	db := filepath.Join(folder, "2.db")
	tuneAll(t, db, Options{}, all[3:]...)
	second := tuneAll(t, db, Options{}, all[2], all[1], all[0])
	for name, tried := range first {
		if !slices.Equal(tried, second[name]) {
			t.Errorf("%s: tried and won\n%q, then\n%q", name, tried, second[name])
		}
	}
	learning := &Tuner{Backend: cpu.New(), Cache: cache.Open(db), Options: Options{Learn: true}}
	model, err := learning.model()
	if err != nil || model.Fitted() < 16 {
		t.Errorf("with Learn the prices are corrected by %d samples, %v", model.Fitted(), err)
	}
}
