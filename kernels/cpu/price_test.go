package cpu

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// pricedDevice is a machine of two lanes with 32 KiB and 512 KiB each, then memory.
var pricedDevice = kernels.Device{
	Name: "test", Backend: "cpu", Revision: "1", Lanes: 2, FLOPS: 1e10,
	Levels: []kernels.Level{
		{Name: "L1", Bytes: 32 << 10, Bandwidth: 1e11},
		{Name: "L2", Bytes: 512 << 10, Bandwidth: 5e10},
		{Name: "memory", Bandwidth: 2e10},
	},
}

// TestCounts shows what plans in testdata/counts.txt do on pricedDevice.
//
//	counts show=(rows,short) plan=(8,128;group=2)
//	HLO
func TestCounts(t *testing.T) {
	datadriven.RunTest(t, "testdata/counts.txt", func(t *testing.T, d *datadriven.TestData) string {
		m, err := hlo.Parse("f", []byte(d.Input))
		if err != nil {
			t.Fatal(err)
		}
		p, err := symtile.Analyze(t.Context(), m.Fusions()[0])
		if err != nil {
			t.Fatal(err)
		}
		x, err := newPricer(p, pricedDevice, unknownPrior())
		if err != nil {
			t.Fatal(err)
		}
		var show []string
		var b strings.Builder
		for _, a := range d.CmdArgs {
			if a.Key == "show" {
				show = a.Vals
				continue
			}
			plan, err := kernels.ParsePlan(strings.ReplaceAll(strings.Join(a.Vals, ","), ";", " "))
			if err != nil {
				return err.Error()
			}
			fmt.Fprintf(&b, "%s:", plan)
			for _, name := range show {
				fmt.Fprintf(&b, " %s %.9g", name, shownCount(x, plan, name))
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}

// shownCount is what a plan does, by a name.
func shownCount(x *pricer, plan kernels.Plan, name string) float64 {
	price := kernels.Price{Seconds: make([]float64, len(x.terms.Names))}
	c := x.count(plan)
	x.price(plan, c, &price)
	k := &c.counts
	seconds := func(term string) float64 { return price.Seconds[slices.Index(x.terms.Names, term)] }
	switch name {
	case "rows":
		return k.rows
	case "short":
		return k.short
	case "strided":
		return k.strided
	case "starts":
		return k.starts
	case "scalar":
		return k.scalar
	case "rounds":
		return k.rounds
	case "masked":
		return k.masked
	case "functions":
		return k.functions
	case "dots":
		return k.dots
	case "programs":
		return k.programs
	case "scratch":
		return k.scratch
	case "L2":
		return c.traffic.through(c, 32<<10, price.Lanes, true, false)
	case "memory":
		return c.traffic.through(c, 512<<10, price.Lanes, true, true)
	}
	return 1e6 * seconds(strings.ReplaceAll(name, "_", " "))
}

// A price is of as many finite terms as there are names; every term has a name, and no two
// have the same.
func TestPricesAreFinite(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		x, err := New().Pricer(p)
		if err != nil {
			t.Fatal(err)
		}
		terms := x.Terms()
		if names := slices.Sorted(slices.Values(terms.Names)); names[0] == "" || len(slices.Compact(names)) != len(terms.Names) {
			t.Errorf("the terms are %q", terms.Names)
		}
		price := kernels.Price{Seconds: make([]float64, len(terms.Names))}
		for tiling := range p.Space.Sample(200) {
			if err := x.Price(kernels.Plan{Tiles: tiling}, &price); err != nil {
				t.Fatal(err)
			}
			for k, s := range price.Seconds {
				if !(s >= 0) || math.IsInf(s, 0) {
					t.Errorf("%v: %s is %v", tiling, terms.Names[k], s)
				}
			}
		}
	})
}

// TestScalarFunctions: a function that Go computes element by element is priced as that, and
// not as the vector code that others have.
func TestScalarFunctions(t *testing.T) {
	seconds := func(op, element string) float64 {
		text := strings.NewReplacer("$t", element, "$op", op).Replace(
			"x = $t[256,256] parameter(0)\nROOT y = $t[256,256] $op")
		p := kerneltest.Program(t, text)
		x, err := New().Pricer(p)
		if err != nil {
			t.Fatal(err)
		}
		terms := x.Terms()
		price := kernels.Price{Seconds: make([]float64, len(terms.Names))}
		if err := x.Price(kernels.Plan{Tiles: symtile.Tiling{32, 256}}, &price); err != nil {
			t.Fatal(err)
		}
		return price.Total(&terms)
	}
	vector := seconds("tanh(x)", "f32")
	for _, scalar := range []float64{
		seconds("erf-inv(x)", "f64"), seconds("power(x, x)", "s32"),
	} {
		if scalar < 8*vector {
			t.Errorf("%v s, tanh of f32 %v s", scalar, vector)
		}
	}
}

func TestPricingDoesNotAllocate(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		x, err := New().Pricer(p)
		if err != nil {
			t.Fatal(err)
		}
		price := kernels.Price{Seconds: make([]float64, len(x.Terms().Names))}
		plans := slices.Collect(New().Plans(t.Context(), p))
		k := 0
		allocs := testing.AllocsPerRun(len(plans), func() {
			if err := x.Price(plans[k%len(plans)], &price); err != nil {
				t.Fatal(err)
			}
			k++
		})
		if allocs >= 1 {
			t.Errorf("%v allocations a plan", allocs)
		}
	})
}

func TestPriceRefusesUnknownKnobs(t *testing.T) {
	_, p := corpusProgram(t, "softmax")
	x, err := New().Pricer(p)
	if err != nil {
		t.Fatal(err)
	}
	price := kernels.Price{Seconds: make([]float64, len(x.Terms().Names))}
	plan := kernels.Plan{Tiles: symtile.Tiling{32, 512, 512, 512}}
	if err := x.Price(plan.With("warps", 4), &price); err == nil {
		t.Error("warps=4 has a price")
	}
}

// BenchmarkDefaultPlan is the time that the default plan of a fusion takes, from its analysed
// program: the 90th percentile of the corpus and the longest.
func BenchmarkDefaultPlan(b *testing.B) {
	backend := New()
	kerneltest.BenchmarkDefaults(b, func(p *symtile.Program) error {
		_, err := backend.Default(b.Context(), p)
		return err
	})
}

// TestPriceAgain: a pricer that has priced other plans before gives each plan the price that
// a fresh one gives it.
func TestPriceAgain(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		used, err := New().Pricer(p)
		if err != nil {
			t.Fatal(err)
		}
		terms := used.Terms()
		got := kernels.Price{Seconds: make([]float64, len(terms.Names))}
		want := kernels.Price{Seconds: make([]float64, len(terms.Names))}
		n := 0
		for plan := range New().Plans(t.Context(), p) {
			if err := used.Price(plan, &got); err != nil {
				t.Fatal(err)
			}
			if n++; n%41 != 0 {
				continue
			}
			fresh, err := New().Pricer(p)
			if err == nil {
				err = fresh.Price(plan, &want)
			}
			if err != nil || !slices.Equal(got.Seconds, want.Seconds) || got.Lanes != want.Lanes || got.Scratch != want.Scratch {
				t.Fatalf("%s: %v, at first %v (%v)", plan, got, want, err)
			}
			if n > 1000 {
				break
			}
		}
	})
}

// A gather reads rows of its table, not the table: a plan that takes whole rows is cheaper than
// one that takes a column of all of them, which takes 250 times as long on a Zen 5.
func TestGatherReadsRows(t *testing.T) {
	text, err := os.ReadFile("testdata/gather_rows.hlo")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := New().Default(t.Context(), kerneltest.Program(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Tiles[1] < 64 {
		t.Errorf("the default is %s: rows of a few elements", plan)
	}
}

// Parts of a contraction without a loop widen the whole operand each: eight of them take
// more than twice as long as one. An operand of f32 is read where it lies, by each part its own
// terms, and so is one of bf16 whose pairs are multiplied.
func TestPartsMakeOperandsAgain(t *testing.T) {
	seconds := func(dtype string, knobs ...kernels.Knob) float64 {
		text := strings.ReplaceAll(`x = $t[4,4096] parameter(0)
w = $t[4096,14336] parameter(1)
ROOT d = $t[4,14336] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, "$t", dtype)
		x, err := newPricer(kerneltest.Program(t, text), pricedDevice, unknownPrior())
		if err != nil {
			t.Fatal(err)
		}
		terms := x.Terms()
		price := kernels.Price{Seconds: make([]float64, len(terms.Names))}
		plan := kernels.Plan{Tiles: symtile.Tiling{4, 14336, 4096}, Knobs: knobs}
		if err := x.Price(plan, &price); err != nil {
			t.Fatal(err)
		}
		return price.Total(&terms)
	}
	parts, pairs := kernels.Knob{Name: "splitk", Value: 8}, kernels.Knob{Name: "bf16", Value: 1}
	if one, eight := seconds("bf16"), seconds("bf16", parts); eight < 2*one {
		t.Errorf("eight parts %v s, one %v s", eight, one)
	}
	for _, in := range [][2]float64{
		{seconds("f32"), seconds("f32", parts)},
		{seconds("bf16", pairs), seconds("bf16", pairs, parts)},
	} {
		if in[1] > 1.5*in[0] {
			t.Errorf("eight parts that make nothing again %v s, one %v s", in[1], in[0])
		}
	}
}

// TestColumnSumsAreDivided: two lanes sum a half of the rows each and join two rows, rather
// than read a half of each row. On one lane of a
// Zen 4 halves of rows of 4 KiB take 1.8 times as long (BenchmarkSums, plan 512,8192).
func TestColumnSumsAreDivided(t *testing.T) {
	if !vector.Supported() {
		t.Skip("reductions are divided where there is machine code for them")
	}
	for _, rows := range []int{768, 8192} {
		p := kerneltest.Program(t, fmt.Sprintf(`x = f32[%d,1024] parameter(0)
zero = f32[] constant(0)
ROOT s = f32[1024] reduce(x, zero), dimensions={0}, to_apply=add`, rows))
		x := xeon(t, listedByHypervisor)
		for plan := range x.Plans(t.Context(), p) {
			if plan.Knob("splitk", 1) < 2 || plan.Tiles[0] != 1024 {
				t.Errorf("%d rows: the default is %v", rows, plan)
			}
			break
		}
	}
}

// TestStoredOperands: what reductions of bf16 and f16 widen in scratch stays in the first cache
// where rows allow it, and is never more than a lane's second cache holds.
func TestStoredOperands(t *testing.T) {
	const text = `x = %[1]s[1024,1024] parameter(0)
zero = %[1]s[] constant(0)
r = %[1]s[1024] reduce(x, zero), dimensions={%[2]d}, to_apply=maximum`
	for _, name := range []string{"Emerald Rapids", "Zen 4"} {
		s, err := sheet.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Cores = 2
		x := NewPriced(s)
		for _, kind := range []string{"bf16", "f16"} {
			for d := range 2 {
				p := kerneltest.Program(t, fmt.Sprintf(text, kind, d))
				plan, err := x.Default(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				bytes := 4 * plan.Tiles[0] * plan.Tiles[1]
				if most := s.L2Bytes / 2; bytes > most || d == 1 && bytes > s.L1Bytes {
					t.Errorf("%s, %s along %d: %s has %d bytes in scratch", name, kind, d, plan, bytes)
				}
			}
		}
	}
}

// TestWholeProducts: a lane computes a large product as one tile, whose result is made in the
// output and is no scratch, and two lanes halves of its columns, which each packs alone. Of 1024
// cubed these take 0.98 of the time of tiles of 512 by 256 of f32, as long of bf16, and 0.97 and 0.98 of
// bytes (Zen 4); of f32 and bf16 a Xeon's core took 0.95 and 0.43 of tiles of 512 by 512.
func TestWholeProducts(t *testing.T) {
	for _, name := range []string{"Emerald Rapids", "Zen 4"} {
		s, err := sheet.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for lanes, columns := range map[int]int64{1: 1024, 2: 512} {
			s.Cores, s.L3Cores = lanes, 2
			x := NewPriced(s)
			for kind, to := range map[string]string{"f32": "f32", "bf16": "f32", "s8": "s32"} {
				p := kerneltest.Program(t, productText(kind, to, []int{1024, 1024, 1024}))
				plan, err := x.Default(t.Context(), p)
				if want := (symtile.Tiling{1024, columns, 1024}); err != nil || !slices.Equal(plan.Tiles, want) {
					t.Errorf("%s of %d lanes, %s: %s, not %v (%v)", name, lanes, kind, plan, want, err)
				}
			}
		}
	}
}

// TestUnderflows: exponentials vanish where the sheet says what numbers too small for a
// denormal one take, which is Intel's; AMD's cores compute as before.
func TestUnderflows(t *testing.T) {
	for _, s := range sheet.Known() {
		vanishes := NewPriced(s).backend.spec().vanishes
		if vanishes != (s.Vendor == "GenuineIntel") {
			t.Errorf("%s: exponentials vanish: %v", s.Name, vanishes)
		}
	}
}
