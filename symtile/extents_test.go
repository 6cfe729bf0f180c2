package symtile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/symtile"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// sampledTilings are at most n legal tilings of a program in a shuffled order.
func sampledTilings(p *symtile.Program, n int) []symtile.Tiling {
	all := slices.Collect(p.Space.Sample(n))
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(all), func(i, j int) {
		all[i], all[j] = all[j], all[i]
	})
	return all
}

// The extents of a tiling are those of the concrete program: the same ops, as
// often, with tiles of the same sizes. Tiles of operands of windows may be larger: a
// concrete program leaves out the gaps of a window with one position or one place.
func TestExtentsAreOfTheConcreteProgram(t *testing.T) {
	fusions, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fusions {
		p, err := symtile.Analyze(t.Context(), f.Computation)
		if err != nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			x, err := symtile.NewExtents(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, tiling := range sampledTilings(p, 200) {
				q, err := p.At(tiling)
				if err != nil {
					t.Fatal(err)
				}
				x.Set(tiling)
				if want := float64(q.Programs()); x.Programs() != want {
					t.Fatalf("%v: %v tile programs, want %v", tiling, x.Programs(), want)
				}
				window := slices.ContainsFunc(p.Ops, func(op symtile.Op) bool { return op.Code == symtile.OpUnfold })
				got, want := symbolicOps(p, x, window), concreteOps(q, window)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%v:\ngot  %v\nwant %v", tiling, got, want)
				}
			}
		})
	}
}

// symbolicOps lists what extents tell of every op that is not a duplicate.
func symbolicOps(p *symtile.Program, x *symtile.Extents, withoutSizes bool) (all []string) {
	for n, op := range p.Ops {
		text := fmt.Sprint(op.Instr.Name, " ", op.Code, " ", x.Runs(n))
		if !withoutSizes {
			text += fmt.Sprint(x.Sizes(n), x.Elements(n))
		}
		if !x.Duplicate(n) {
			all = append(all, text)
		}
	}
	return all
}

// concreteOps lists the same of the ops of a concrete program, by walking its loops.
func concreteOps(q *symtile.Program, withoutSizes bool) (all []string) {
	var walk func(body []symtile.Step, runs float64)
	add := func(n int, runs float64) {
		op := q.Ops[n]
		text := fmt.Sprint(op.Instr.Name, " ", op.Code, " ", runs)
		if !withoutSizes {
			text += fmt.Sprint(op.Tile.Sizes(), float64(op.Tile.Elements()))
		}
		all = append(all, text)
	}
	walk = func(body []symtile.Step, runs float64) {
		for _, s := range body {
			if s.Loop == nil {
				add(s.Op, runs)
				continue
			}
			inner := runs
			for _, d := range s.Loop.Dims {
				trips, _ := q.Space.Dims[d].Tiles.Value()
				inner *= float64(trips)
			}
			walk(s.Loop.Body, inner)
			for _, n := range s.Loop.Accumulators {
				add(n, inner)
			}
		}
	}
	walk(q.Body, 1)
	return all
}

// Setting tilings one after the other gives what new extents give each of them.
func TestExtentsDoNotDependOnTheOrder(t *testing.T) {
	fusions, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fusions {
		p, err := symtile.Analyze(t.Context(), f.Computation)
		if err != nil {
			continue
		}
		x, err := symtile.NewExtents(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, tiling := range sampledTilings(p, 20) {
			fresh, err := symtile.NewExtents(p)
			if err != nil {
				t.Fatal(err)
			}
			x.Set(tiling)
			fresh.Set(tiling)
			if got, want := symbolicOps(p, x, false),
				symbolicOps(p, fresh, false); !slices.Equal(got, want) {
				t.Fatalf("%s %v:\ngot  %v\nwant %v", f.Name, tiling, got, want)
			}
		}
	}
}

func TestExtentsDoNotAllocate(t *testing.T) {
	for _, f := range mustFusions(t) {
		p, err := symtile.Analyze(t.Context(), f.Computation)
		if err != nil {
			continue
		}
		x, err := symtile.NewExtents(p)
		if err != nil {
			t.Fatal(err)
		}
		tilings := sampledTilings(p, 50)
		k := 0
		n := testing.AllocsPerRun(100, func() {
			x.Set(tilings[k%len(tilings)])
			k++
		})
		if n >= 1 {
			t.Errorf("%s: %v allocations", f.Name, n)
		}
	}
}

func mustFusions(t testing.TB) []corpus.Fusion {
	t.Helper()
	all, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// BenchmarkExtents evaluates the tilings of a fusion in their order.
func BenchmarkExtents(b *testing.B) {
	for _, f := range mustFusions(b) {
		p, err := symtile.Analyze(b.Context(), f.Computation)
		if err != nil {
			continue
		}
		b.Run(f.Name, func(b *testing.B) {
			x, err := symtile.NewExtents(p)
			if err != nil {
				b.Fatal(err)
			}
			all := slices.Collect(p.Space.Sample(1000))
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				x.Set(all[k%len(all)])
				k++
			}
		})
	}
}
