package cpu

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// BenchmarkCompile is the cost of making a kernel of a plan: of plansOfEach plans
// of every fusion of the corpus, in random order. It reports the median and the 90th
// percentile of all, and those of the least times of the plans, which other work on the
// machine disturbs less.
func BenchmarkCompile(b *testing.B) {
	const plansOfEach = 12
	type task struct {
		p    *symtile.Program
		plan kernels.Plan
	}
	var tasks []task
	backend := New()
	for _, p := range corpusPrograms(b) {
		n := 0
		for plan := range backend.Plans(b.Context(), p) {
			if n++; n > plansOfEach {
				break
			}
			tasks = append(tasks, task{p, plan})
		}
	}
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(tasks), func(i, j int) {
		tasks[i], tasks[j] = tasks[j], tasks[i]
	})
	var all []time.Duration
	least := slices.Repeat([]time.Duration{time.Hour}, len(tasks))
	b.ReportAllocs()
	for b.Loop() {
		for n, t := range tasks {
			begin := time.Now()
			k, err := backend.Compile(context.Background(), t.p, t.plan)
			all = append(all, time.Since(begin))
			if err != nil {
				b.Fatal(err)
			}
			k.Close()
			least[n] = min(least[n], all[len(all)-1])
		}
	}
	slices.Sort(all)
	slices.Sort(least)
	report := func(times []time.Duration, k int, unit string) {
		b.ReportMetric(float64(times[k].Nanoseconds())/1e3, unit)
	}
	report(all, len(all)/2, "median-µs")
	report(all, len(all)*9/10, "p90-µs")
	report(least, len(least)/2, "least-median-µs")
	report(least, len(least)*9/10, "least-p90-µs")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(len(all)), "µs/plan")
	b.ReportMetric(0, "ns/op")
}

// corpusPrograms are all fusions of the corpus.
func corpusPrograms(b *testing.B) (programs []*symtile.Program) {
	all, err := corpus.Fusions()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range all {
		p, err := symtile.Analyze(b.Context(), f.Computation)
		if err != nil {
			b.Fatal(err)
		}
		programs = append(programs, p)
	}
	return programs
}
