package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cpu/internal/amd64"
	"github.com/tilewright/tilewright/symtile"
)

// BenchmarkOverhead is the share of time that is not spent in the bodies of tile
// instructions: of the default plans of the corpus and of the landscapes, on one
// thread. It compares each kernel with a hollow one.
func BenchmarkOverhead(b *testing.B) {
	ret, err := amd64.Load([]byte{0xc3})
	if err != nil {
		b.Skip(err)
	}
	defer ret.Close()
	empty, err := ret.Func(0)
	if err != nil {
		b.Fatal(err)
	}
	var lines []string
	var shares []float64
	for b.Loop() {
		lines, shares = nil, nil
		backend := New()
		for _, c := range overheadCases(b) {
			plan, err := backend.Default(b.Context(), c.p)
			if err != nil {
				b.Fatal(err)
			}
			plan = plan.With("threads", 1)
			whole, hollow := leastOfTwo(
				b, c.p, fullKernel(b, backend, c.p, plan),
				hollowKernel(b, backend, c.p, plan, empty),
			)
			share, programs := hollow/whole, float64(programsOf(b, c.p, plan))
			lines = append(
				lines,
				fmt.Sprintf("%-28s %-22s %8.0f %10.1f %8.0f %6.2f %%", c.name, plan, programs, whole*1e6, hollow/programs*1e9, 100*share),
			)
			shares = append(shares, share)
		}
	}
	b.Logf("%-28s %-22s %8s %10s %8s %8s\n%s", "fusion", "plan", "programs", "µs", "ns each", "overhead", strings.Join(lines, "\n"))
	slices.Sort(shares)
	b.ReportMetric(100*shares[len(shares)/2], "median-%")
	b.ReportMetric(100*shares[len(shares)-1], "most-%")
	b.ReportMetric(0, "ns/op")
}

type overheadCase struct {
	name string
	p    *symtile.Program
}

func overheadCases(b *testing.B) []overheadCase {
	var cases []overheadCase
	for _, p := range corpusPrograms(b) {
		cases = append(cases, overheadCase{strings.TrimPrefix(p.Fusion.Name, "fused_computation."), p})
	}
	for _, l := range landscapes {
		p, _ := landscape(b, l.text)
		cases = append(cases, overheadCase{"landscape " + l.name, p})
	}
	return cases
}

func programsOf(b *testing.B, p *symtile.Program, plan kernels.Plan) int64 {
	q, err := p.At(plan.Tiles)
	if err != nil {
		b.Fatal(err)
	}
	return q.Programs()
}

func fullKernel(b *testing.B, backend *Backend, p *symtile.Program, plan kernels.Plan) *kernel {
	k, err := backend.compile(p, plan, nil)
	if err != nil {
		b.Fatal(err)
	}
	return k
}

// hollowKernel has in place of every machine function made for the plan one that
// returns, and nothing in place of other instructions: what is left is finding
// tile programs and places, loops over tiles and strips, and the calls.
func hollowKernel(
	b *testing.B, backend *Backend,
	p *symtile.Program, plan kernels.Plan, empty amd64.Func,
) *kernel {
	q, err := p.At(plan.Tiles)
	if err != nil {
		b.Fatal(err)
	}
	l, body := lower(q, plan, New().spec())
	if l.err != nil {
		b.Fatal(l.err)
	}
	body.empty()
	k, err := backend.kernel(l, body, body.compile())
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range l.routines {
		*r.f = empty
	}
	return k
}

// empty takes the bodies from instructions that are not machine code of the plan.
func (s *schedule) empty() {
	for _, i := range s.items {
		if i.loop != nil {
			i.loop.prologue, i.loop.epilogue, i.loop.iterationEnds = nil, nil, nil
			i.loop.body.empty()
		} else if i.rows != nil {
			// Filling results that accumulate in memory is work.
			for _, f := range i.rows.reductions {
				f.initSteps = nil
			}
		} else if i.run != nil {
			i.run = func(*worker) {}
		}
		for _, x := range i.group {
			x.strip = func(*worker, int64, int64) {}
		}
	}
}

// leastOfTwo is the least seconds a run of each of two kernels takes, of rounds
// that take turns.
func leastOfTwo(b *testing.B, p *symtile.Program, x, y *kernel) (a, c float64) {
	defer x.Close()
	defer y.Close()
	bench, err := check.NewBench(context.Background(), p.Fusion, 1, 1)
	if err != nil {
		b.Fatal(err)
	}
	seconds := func(k *kernel) float64 {
		d, err := bench.Run(context.Background(), k)
		if err != nil {
			b.Fatal(err)
		}
		return d.Seconds()
	}
	a, c = math.Inf(1), math.Inf(1)
	for range 12 {
		a, c = min(a, seconds(x)), min(c, seconds(y))
	}
	return a, c
}
