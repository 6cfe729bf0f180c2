// Package kerneltest has what the tests of several backends need: programs from texts
// and files, verifiers of their kernels, and times of repeated runs. It is not part of
// any program.
//
// Functions that can fail take the test and end it, so that a test says only what it is
// about.
package kerneltest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// Program analyzes the text of a computation. A text that is not valid, or that cannot
// be tiled, is logged.
func Program(t testing.TB, text string) *symtile.Program {
	t.Helper()
	m, err := hlo.Parse("test", []byte(text+"\n"))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := symtile.Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// Verifier returns a verifier of the kernels of a program; its inputs depend on seed.
func Verifier(t testing.TB, p *symtile.Program, seed int64) *check.Verifier {
	t.Helper()
	v, err := check.NewVerifier(context.Background(), p.Physical, seed)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Blocks has the parts of a file that empty lines separate.
func Blocks(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n\n")
}

// EachProgram runs a subtest for every block of a file, which is the text of a
// computation. The text is logged where the subtest fails.
func EachProgram(
	t *testing.T, file string, run func(t *testing.T, p *symtile.Program, v *check.Verifier),
) {
	t.Helper()
	for _, text := range Blocks(t, file) {
		p := Program(t, text)
		v := Verifier(t, p, 3)
		t.Run(p.Fusion.Name, func(t *testing.T) {
			run(t, p, v)
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// Best is the shortest of n times, in seconds: the time with the least interference by
// other processes.
func Best(n int, run func() time.Duration) float64 {
	best := run()
	for range n - 1 {
		best = min(best, run())
	}
	return best.Seconds()
}

// BenchmarkDefaults measures how long a backend takes to choose the default plan of each
// fusion of the corpus, from its analysed program: the best time of each, of which
// it reports the 90th percentile and the longest in milliseconds. Fusions that
// cannot be tiled are left out.
func BenchmarkDefaults(b *testing.B, choose func(*symtile.Program) error) {
	fusions, err := corpus.Fusions()
	if err != nil {
		b.Fatal(err)
	}
	var programs []*symtile.Program
	for _, f := range fusions {
		if p, err := symtile.Analyze(b.Context(), f.Computation); err == nil {
			programs = append(programs, p)
		}
	}
	best := make([]time.Duration, len(programs))
	for b.Loop() {
		for k, p := range programs {
			begin := time.Now()
			if err := choose(p); err != nil {
				b.Fatal(err)
			}
			if took := time.Since(begin); best[k] == 0 || took < best[k] {
				best[k] = took
			}
		}
	}
	slices.Sort(best)
	n := len(best)
	b.ReportMetric(best[n*9/10].Seconds()*1e3, "ms-p90")
	b.ReportMetric(best[n-1].Seconds()*1e3, "ms-max")
}
