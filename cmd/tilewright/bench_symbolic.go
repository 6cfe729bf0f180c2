package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tilewright/tilewright/cmd/tilewright/internal/output"
	"github.com/tilewright/tilewright/symtile/index"
)

// benchSymbolicCommand times the simplifier.
var benchSymbolicCommand = command{
	name: "bench-symbolic", args: "WORKLOAD.jsonl OUT.res.jsonl OUT.tsv", short: "time the simplifier on chains of indexing maps",
	long: `Composes and simplifies every chain of maps of a workload, writes the answers and the times, a line a
chain, and prints a summary. A line of the workload is a chain, first map first:

  {"id": "split", "chain": [{"dims": [{"name": "d0", "lo": 0, "hi": 63}], "exprs": ["d0 floordiv 8", "d0 mod 8"],
   "syms": [], "constraints": [{"expr": "d0", "lo": 0, "hi": 59}]}]}

A line of OUT.res.jsonl is {"engine", "id", "pieces": 1, "exprs", "vars": [[lo, hi]…], "ncons", "ops"}: the results over
d0.. and s0.., the narrowed ranges of every dimension and symbol, the constraints left and the operations of the
results. OUT.tsv has nanoseconds a run from an empty ring: simplify is compose and simplify, extract is that and
choosing how the results are written, eval one evaluation of compiled results at a point; then the allocations of a run.

With -isl and -mlir the drivers that make bench-isl and bench-mlir build run in the same rounds, interleaved, and the
summary has the ratios of their times to ours.`,
	run: runBenchSymbolic,
}

// A workChain is one line of a workload: maps that are composed, the first one
// first.
type workChain struct {
	// ID is the same for all engines.
	ID    string    `json:"id"`
	Chain []workMap `json:"chain"`
}

// A workMap is an indexing map of a chain.
type workMap struct {
	// Dimensions and symbols, in the order of the map.
	Dims []workVar `json:"dims"`
	Syms []workVar `json:"syms"`
	// Results, in the syntax of MLIR.
	Exprs []string `json:"exprs"`
	// Constraints on the variables.
	Where []workBound `json:"constraints"`
}

// A workVar is a variable with its inclusive range.
type workVar struct {
	Name string `json:"name"`
	Lo   int64  `json:"lo"`
	Hi   int64  `json:"hi"`
}

// A workBound constrains an expression to an inclusive range.
type workBound struct {
	Expr string `json:"expr"`
	Lo   int64  `json:"lo"`
	Hi   int64  `json:"hi"`
}

// A chainAnswer is a line of the results, by which engines are compared.
type chainAnswer struct {
	// Name of the engine that answers.
	Engine string `json:"engine"`
	ID     string `json:"id"`
	// Number of pieces of the composed map; ours has one.
	Pieces int `json:"pieces"`
	// Results of the composed map.
	Exprs []string `json:"exprs"`
	// Ranges of the variables that remain.
	Vars [][2]int64 `json:"vars"`
	// Number of the constraints that remain.
	NCons int `json:"ncons"`
	// Operations to evaluate the map.
	Ops int `json:"ops"`
}

// chainTimes are the times of a chain, in nanoseconds a run.
type chainTimes struct {
	id string
	// Nanoseconds to compose and simplify; to do that and extract the cheapest
	// form; and to evaluate the compiled results once.
	simplify, extract, eval float64
	// Heap allocations of composing and simplifying.
	allocs float64
}

// A symbolicBench is one run of the command.
type symbolicBench struct {
	// The chains with their names and times, in the order of the workload.
	ids    []string
	chains []*index.Composition
	times  []chainTimes
	// Time of one measurement.
	budget time.Duration
}

// runBenchSymbolic reads the workload, writes the answers and measures.
func runBenchSymbolic(c *call) error {
	c.jsonFlag()
	b := symbolicBench{}
	c.DurationVar(
		&b.budget, "budget", 30*time.Millisecond, "`time` to spend on one measurement; 0s times nothing",
	)
	rounds := c.Int("rounds", 1, "how often everything is measured; medians are kept")
	isl := c.String("isl", "", "`driver` of isl, run in the same rounds")
	mlir := c.String("mlir", "", "`driver` of MLIR, run in the same rounds")
	args, err := c.parse(3, 3)
	if err != nil {
		return err
	}
	if *rounds < 1 || b.budget < 0 {
		return usagef("-rounds must be at least 1, -budget not negative")
	}
	if err := b.load(args[0]); err != nil {
		return err
	}
	if err := writeLines(args[1], b.answers); err != nil {
		return err
	}
	others, err := b.startCompetitors(*isl, *mlir)
	if err != nil {
		return err
	}
	defer others.remove()
	if err := b.measureRounds(*rounds, others); err != nil {
		return err
	}
	if err := writeLines(args[2], b.writeTimes); err != nil {
		return err
	}
	return b.report(c, others)
}

// load parses the workload once; parsing is not measured.
func (b *symbolicBench) load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	for n := 1; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		if err := b.add(lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(b.chains) == 0 {
		return fmt.Errorf("%s has no chains", path)
	}
	return nil
}

// add parses one line of the workload.
func (b *symbolicBench) add(line []byte) error {
	var w workChain
	if err := json.Unmarshal(line, &w); err != nil {
		return err
	}
	if len(w.Chain) == 0 {
		return fmt.Errorf("%s: a chain needs a map", w.ID)
	}
	var maps []index.MapSource
	for _, m := range w.Chain {
		maps = append(maps, m.source())
	}
	chain, err := index.NewComposition(maps...)
	if err != nil {
		return fmt.Errorf("%s: %w", w.ID, err)
	}
	b.ids = append(b.ids, w.ID)
	b.chains = append(b.chains, chain)
	return nil
}

// source converts a map of the workload for package index.
func (m workMap) source() index.MapSource {
	d := index.MapSource{
		Dims:    variables(m.Dims),
		Ranges:  variables(m.Syms),
		Results: m.Exprs,
	}
	for _, w := range m.Where {
		d.Where = append(d.Where, index.BoundSource{
			Expr: w.Expr,
			In:   index.Interval{Lo: w.Lo, Hi: w.Hi},
		})
	}
	return d
}

// variables converts the variables of a line.
func variables(vs []workVar) (out []index.Variable) {
	for _, v := range vs {
		out = append(out, index.Variable{
			Name: v.Name,
			Lo:   v.Lo,
			Hi:   v.Hi,
		})
	}
	return out
}

// writeLines writes a file through a buffer.
func writeLines(path string, write func(io.Writer) error) error {
	return output.Replace(path, func(w *bufio.Writer) error { return write(w) })
}

// answers writes the composed map of every chain.
func (b *symbolicBench) answers(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i, c := range b.chains {
		a := chainAnswer{
			Engine: "tilewright",
			ID:     b.ids[i],
			Pieces: 1,
			Ops:    c.Solve(),
		}
		if err := c.Err(); err != nil {
			return fmt.Errorf("%s: %w", a.ID, err)
		}
		a.Exprs, a.NCons = c.Texts(), c.Constraints()
		for _, in := range c.Ranges() {
			a.Vars = append(a.Vars, [2]int64{in.Lo, in.Hi})
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

// measureRounds measures all chains in rounds, ours and the competitors' in
// turn, so that the drift of the machine affects all of them.
func (b *symbolicBench) measureRounds(rounds int, others competitors) error {
	if b.budget == 0 {
		rounds = 0
	}
	samples := make([][]chainTimes, len(b.chains))
	for range rounds {
		for i, c := range b.chains {
			samples[i] = append(
				samples[i],
				b.measureChain(b.ids[i], c),
			)
		}
		if err := others.run(b.budget); err != nil {
			return err
		}
	}
	for _, s := range samples {
		b.times = append(b.times, medianTimes(s))
	}
	return nil
}

// medianTimes takes the median of each time.
func medianTimes(s []chainTimes) chainTimes {
	if len(s) == 0 {
		return chainTimes{}
	}
	of := func(field func(chainTimes) float64) float64 {
		var v []float64
		for _, t := range s {
			v = append(v, field(t))
		}
		return median(v)
	}
	return chainTimes{
		id:       s[0].id,
		simplify: of(func(t chainTimes) float64 { return t.simplify }),
		extract:  of(func(t chainTimes) float64 { return t.extract }),
		eval:     of(func(t chainTimes) float64 { return t.eval }),
		allocs:   of(func(t chainTimes) float64 { return t.allocs }),
	}
}

// median is the upper median of numbers, which it sorts.
func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// measureChain times a chain from an empty ring: composing and simplifying, the
// same with the extraction of the cheapest form, and one evaluation of the
// compiled results.
func (b *symbolicBench) measureChain(id string, c *index.Composition) chainTimes {
	t := chainTimes{id: id}
	t.simplify, _ = measure(b.budget, c.Simplify)
	t.extract, t.allocs = measure(b.budget, func() {
		c.Solve()
	})
	at := make([]int64, 0, 16)
	for _, in := range c.Ranges() {
		at = append(at, in.Lo)
	}
	code := c.Compile()
	out := make([]int64, code.Results())
	scratch := make([]int64, code.ScratchLen())
	t.eval, _ = measure(b.budget/3, func() {
		code.Eval(at, out, scratch)
	})
	return t
}

// batches is the number of means whose median is the result of a measurement.
const batches = 11

// measure runs f for about the budget and returns the median nanoseconds and
// the heap allocations of a run.
func measure(budget time.Duration, f func()) (ns, allocs float64) {
	f()
	f()
	start := time.Now()
	f()
	n := min(
		max(int(budget/batches/(time.Since(start)+1)), 1),
		100000,
	)
	means := make([]float64, 0, batches)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range batches {
		start := time.Now()
		for range n {
			f()
		}
		means = append(
			means,
			float64(time.Since(start).Nanoseconds())/float64(n),
		)
	}
	runtime.ReadMemStats(&after)
	return median(means),
		float64(after.Mallocs-before.Mallocs) / float64(batches*n)
}

// writeTimes writes the times as a table, a line a chain.
func (b *symbolicBench) writeTimes(w io.Writer) error {
	fmt.Fprintln(w, "id\tsimplify\textract\tallocs\teval")
	for _, t := range b.times {
		_, err := fmt.Fprintf(
			w, "%s\t%.0f\t%.0f\t%.2f\t%.1f\n",
			t.id, t.simplify, t.extract,
			t.allocs, t.eval,
		)
		if err != nil {
			return err
		}
	}
	return nil
}
