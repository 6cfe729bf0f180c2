package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// Columns of our own times. The first one is what the times of other engines are
// compared with.
const (
	// Composing, simplifying and choosing how the results are written, from an empty
	// ring.
	columnOurs = "tilewright"
	// The same without the choice.
	columnSimplify = "tilewright simplify"
	// One evaluation of the compiled results at a point.
	columnEval = "tilewright eval"
	// Heap allocations of a run, a number and not a time.
	columnAllocs = "tilewright allocs"
)

// A timing has the nanoseconds of a run by column and chain, one number a round.
type timing map[string]map[string][]float64

// add enters the number of one round.
func (t timing) add(column, id string, ns float64) {
	if t[column] == nil {
		t[column] = map[string][]float64{}
	}
	of := t[column]
	of[id] = append(of[id], ns)
}

// medians are the medians of the rounds of a column, by chain.
func (t timing) medians(column string) map[string]float64 {
	out := map[string]float64{}
	for id, ns := range t[column] {
		out[id] = median(slices.Clone(ns))
	}
	return out
}

// measureSolver times one chain.
func (t timing) measureSolver(p *problem, budget time.Duration) {
	ns, allocs := measure(budget, func() { p.solver.Solve() })
	t.add(columnOurs, p.ID, ns)
	t.add(columnAllocs, p.ID, allocs)
	code := p.solver.Compile()
	var at []int64
	for _, in := range p.solver.Ranges() {
		at = append(at, in.Lo)
	}
	out := make([]int64, code.Results())
	scratch := make([]int64, code.ScratchLen())
	eval := func() { code.Eval(at, out, scratch) }
	ns, _ = measure(budget/3, eval)
	t.add(columnEval, p.ID, ns)
	ns, _ = measure(budget, p.solver.Simplify)
	t.add(columnSimplify, p.ID, ns)
}

// batches is the number of means whose median is the result of a measurement.
const batches = 11

// measure runs f for about the budget. It returns the median nanoseconds, and the
// heap allocations, of a run.
func measure(budget time.Duration, f func()) (ns, allocs float64) {
	f()
	f()
	start := time.Now()
	f()
	once := time.Since(start) + 1
	// As many runs a batch as the budget has room for.
	n := max(int(budget/batches/once), 1)
	n = min(n, 100000)
	means := make([]float64, 0, batches)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range batches {
		start := time.Now()
		for range n {
			f()
		}
		total := time.Since(start).Nanoseconds()
		means = append(means, float64(total)/float64(n))
	}
	runtime.ReadMemStats(&after)
	mallocs := float64(after.Mallocs - before.Mallocs)
	return median(means), mallocs / float64(batches*n)
}

// median is the upper median of numbers, which it sorts.
func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// geomean is the geometric mean of numbers above 0.
func geomean(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += math.Log(x)
	}
	return math.Exp(total / float64(len(v)))
}

// A columnSummary is what one column came to over the chains.
type columnSummary struct {
	name string
	// Nanoseconds over all chains that have a time.
	median, geomean, most float64
	// Geometric mean of the ratios to our time.
	ratio float64
	// Chains where the column is not slower than we are, the worst one first.
	slower []slowness
	// The chain with the least ratio.
	least slowness
}

// A slowness is the ratio of a time of another engine to ours.
type slowness struct {
	id    string
	ratio float64
}

// summary summarises a column; own are our times by chain.
func (t timing) summary(column string, own map[string]float64) columnSummary {
	out := columnSummary{name: column}
	var all, ratios []float64
	var by []slowness
	for id, ns := range t.medians(column) {
		if ns <= 0 || own[id] <= 0 {
			continue
		}
		all = append(all, ns)
		ratios = append(ratios, ns/own[id])
		by = append(by, slowness{id, ns / own[id]})
	}
	if len(all) == 0 {
		return out
	}
	slices.SortFunc(by, func(a, b slowness) int {
		return cmp.Or(cmp.Compare(a.ratio, b.ratio), cmp.Compare(a.id, b.id))
	})
	out.least = by[0]
	for _, x := range by {
		if x.ratio <= 1 {
			out.slower = append(out.slower, x)
		}
	}
	out.median, out.most = median(all), slices.Max(all)
	out.geomean, out.ratio = geomean(all), geomean(ratios)
	return out
}

// mostSlower is the number of chains that are named where we are slower.
const mostSlower = 20

// printTimes prints a line a column, those of other engines with their ratios to our
// times, and the chains where another engine that simplifies is not slower.
func (s *session) printTimes(out io.Writer) {
	us := s.engines[0]
	own := us.times.medians(columnOurs)
	if len(own) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	const header = "\tmedian ns\tgeomean ns\tmost ns\ttimes ours\tleast\tnot slower than we are"
	fmt.Fprintln(w, header)
	var slower []columnSummary
	for _, e := range s.engines {
		for _, column := range slices.Sorted(maps.Keys(e.times)) {
			if column == columnAllocs {
				continue
			}
			c := e.times.summary(column, own)
			c.print(w, e != us)
			if column == islGist || column == mlirRanged {
				slower = append(slower, c)
			}
		}
	}
	w.Flush()
	for _, c := range slower {
		for _, x := range c.slower[:min(len(c.slower), mostSlower)] {
			fmt.Fprintf(out, "%s takes %.2f times our time on %s\n", c.name, x.ratio, x.id)
		}
	}
}

// print prints a line of the table.
func (c columnSummary) print(w io.Writer, ratios bool) {
	fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f", c.name, c.median, c.geomean, c.most)
	if ratios {
		const format = "\t%.1f\t%.2f (%s)\t%d"
		fmt.Fprintf(w, format, c.ratio, c.least.ratio, c.least.id, len(c.slower))
	}
	fmt.Fprintln(w)
}
