package cpu

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/sheet"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestOffers lists the plans of tilings in testdata/offers.txt, on a machine of
// two lanes, a second cache of 64 KiB and a last one of 1 MiB.
//
//	offers tiling=(32,64,1024)
//	HLO
func TestOffers(t *testing.T) {
	datadriven.RunTest(t, "testdata/offers.txt", func(t *testing.T, d *datadriven.TestData) string {
		m, err := hlo.Parse("f", []byte(d.Input))
		if err != nil {
			t.Fatal(err)
		}
		p, err := symtile.Analyze(t.Context(), m.Fusions()[0])
		if err != nil {
			t.Fatal(err)
		}
		x, err := newPricer(p, New().Identity(), unknownPrior())
		if err != nil {
			t.Fatal(err)
		}
		f := x.facts()
		f.lanes, f.spec.last, f.spec.Second = 2, 1<<20, 64<<10
		tiling := listed(t, d, "tiling")
		f.set(tiling, x.count(kernels.Plan{Tiles: tiling}))
		var b strings.Builder
		for _, plan := range f.variants() {
			fmt.Fprintln(&b, plan)
		}
		return b.String()
	})
}

// Both ways to store are offered from twice the second cache on, whatever a hypervisor lists
// of the last one, and none within it.
func TestStreamsWhateverIsListed(t *testing.T) {
	for _, c := range []struct {
		rows, last, past int64
		offered          []int64
	}{
		{256, 32 << 20, 0, nil}, // 1 MiB
		{1024, 4 << 20, 0, throughCache},
		{1024, 32 << 20, 0, pastCaches},
		{1024, 32 << 20, 4 << 20, throughCache},
		{512, 32 << 20, 4 << 20, nil},
		{1024, 480 << 20, 0, pastCaches},
		{4096, 480 << 20, 0, pastCaches},
	} {
		text := fmt.Sprintf("x = f32[%d,1024] parameter(0)\nr = f32[%d,1024] exponential(x)", c.rows, c.rows)
		x, err := newPricer(kerneltest.Program(t, text), New().Identity(), unknownPrior())
		if err != nil {
			t.Fatal(err)
		}
		f := x.facts()
		f.spec.Second, f.spec.last, f.spec.past = 1<<20, c.last, c.past
		if got := offerStreams(f); !slices.Equal(got, c.offered) {
			t.Errorf("%d rows, %d bytes listed: %v, not %v", c.rows, c.last, got, c.offered)
		}
	}
}

// Where the sheet says how large outputs are that are best written past the caches, plans
// without the knob write those so, and are cheaper than plans that do not; but products' outputs.
func TestPastBytes(t *testing.T) {
	s, err := sheet.Find("Emerald Rapids")
	if err != nil {
		t.Fatal(err)
	}
	s.Cores = 2
	x := NewPriced(s)
	for _, c := range []struct {
		text string
		past bool
	}{
		{turned("f32[1024,1024]"), true},
		{turned("f32[512,512]"), false},
		{"x = f32[1024,1024] parameter(0)\nr = f32[1024,1024] exponential(x)", true},
		{`x = f32[1024,64] parameter(0)
y = f32[64,1024] parameter(1)
r = f32[1024,1024] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, false},
	} {
		p := kerneltest.Program(t, c.text)
		plan, err := x.Default(t.Context(), p)
		if err != nil || storesPast(t, x, p, plan) != c.past {
			t.Errorf("%s: %s is written past the caches: not %v (%v)", c.text, plan, c.past, err)
		}
		pricer, err := x.Pricer(p)
		if err != nil {
			t.Fatal(err)
		}
		price := func(plan kernels.Plan) float64 {
			terms := pricer.Terms()
			price := kernels.Price{Seconds: make([]float64, len(terms.Names))}
			if err := pricer.Price(plan, &price); err != nil {
				t.Fatal(err)
			}
			return price.Total(&terms)
		}
		if c.past && price(plan.With("stream", 1)) >= price(plan.With("stream", 0)) {
			t.Errorf("%s: %s is not cheaper past the caches", c.text, plan)
		}
	}
}

// Dots of few terms are offered stores past the caches, which take a part of their time.
func TestStreamsOfDots(t *testing.T) {
	for terms, offered := range map[int64][]int64{32: pastCaches, 512: nil} {
		text := fmt.Sprintf(`x = f32[2048,%[1]d] parameter(0)
y = f32[%[1]d,512] parameter(1)
d = f32[2048,512] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`, terms)
		x, err := newPricer(kerneltest.Program(t, text), New().Identity(), unknownPrior())
		if err != nil {
			t.Fatal(err)
		}
		tiling := symtile.Tiling{512, 256, terms}
		f := x.facts()
		f.spec.Second, f.spec.last = 1<<20, 32<<20
		f.set(tiling, x.count(kernels.Plan{Tiles: tiling}))
		if got := offerStreams(f); !slices.Equal(got, offered) {
			t.Errorf("%d terms: %v, not %v", terms, got, offered)
		}
	}
}

// Rows that compute are offered the narrower vectors, which nothing but a measurement tells
// from the wide ones, where there are wide ones.
func TestWidthsOffered(t *testing.T) {
	for _, c := range []struct {
		text    string
		wide    bool
		offered []int64
	}{
		{"x = f32[64,64] parameter(0)\nr = f32[64,64] exponential(x)", true, narrowRows},
		{"x = f32[64,64] parameter(0)\nr = f32[64,64] exponential(x)", false, nil},
		{"x = f32[64,64] parameter(0)\nr = f32[64,64] transpose(x), dimensions={1,0}", true, nil},
	} {
		b := New()
		b.wide = c.wide
		p := kerneltest.Program(t, c.text)
		x, err := b.pricer(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := offerWidths(x.facts()); !slices.Equal(got, c.offered) {
			t.Errorf("%s, wide %v: %v, not %v", c.text, c.wide, got, c.offered)
		}
		some := false
		for plan := range b.Plans(t.Context(), p) {
			some = some || plan.Knob("width", 0) == 256
		}
		if some != (c.offered != nil) {
			t.Errorf("%s, wide %v: a plan with width=256: %v", c.text, c.wide, some)
		}
	}
}

// What is offered for the corpus has no plan twice, knobs in their ranges, as
// many plans as are allowed, and every tiling without knobs first.
func TestPlansOffered(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		met := map[string]bool{}
		plain := map[string]bool{}
		for plan := range New().Plans(t.Context(), p) {
			if err := CheckKnobs(plan); err != nil {
				t.Fatal(err)
			}
			if text := plan.String(); met[text] {
				t.Fatalf("%s is offered twice", text)
			} else {
				met[text] = true
			}
			if len(plan.Knobs) == 0 {
				plain[fmt.Sprint(plan.Tiles)] = true
			}
		}
		if t.Logf("%d plans of %d tilings", len(met), len(plain)); len(met) > maxOffered || len(plain) > maxTilings || len(plain) == 0 {
			t.Errorf("%d plans of %d tilings", len(met), len(plain))
		}
	})
}

// The order is that of the text, not of maps: the same plans twice.
func TestPlansAreTheSameTwice(t *testing.T) {
	_, p := corpusProgram(t, "layernorm")
	list := func() (text []string) {
		for plan := range New().Plans(t.Context(), p) {
			text = append(text, plan.String())
		}
		return text
	}
	if !slices.Equal(list(), list()) {
		t.Error("the plans of layernorm differ from those before")
	}
}

// The default is the first of the plans that are offered, by the price that they have
// and then by their text, on machines of one lane and of many. A descent misses none
// of these 245 firsts on a Zen 5, with AVX-512 or without, and up to three by the sheets
// of others with vectors of 128 bits.
func TestDefaultIsFirst(t *testing.T) {
	missed := 0
	all := []int{1, 2, 4, 8, 16, 32, 64}
	if testing.Short() {
		all = []int{1, 2, 8}
	}
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		for _, lanes := range all {
			b := New()
			d := b.Identity()
			d.Lanes = lanes
			b.identity = func() kernels.Device { return d }
			def, err := b.Default(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			for plan := range b.Plans(t.Context(), p) {
				if plan.String() != def.String() {
					missed++
					t.Logf("%d lanes: the first plan is %s, the default %s", lanes, plan, def)
				}
				break
			}
		}
	})
	if missed > 4 {
		t.Errorf("the default is not the first plan in %d cases", missed)
	}
}

// What is offered of fusions whose rows are too long for row kernels, and which then
// take scratch, can be compiled: tiles may be larger than the scratch.
func TestLargeTilesFitScratch(t *testing.T) {
	for _, file := range []string{"long_rows.hlo", "long_sums.hlo", "far_rows.hlo", "many_rows.hlo"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, dtype := range []string{"f32", "f64", "s64"} {
			for _, rows := range []string{"64", "1048577", "2097169", "2147483648"} {
				source := strings.NewReplacer("f32", dtype, "ROWS", rows).Replace(string(text))
				t.Run(file+" "+dtype+" "+rows, func(t *testing.T) {
					compileSome(t, kerneltest.Program(t, source))
				})
			}
		}
	}
}

// compileSome lowers and compiles the default plan of a program and one in 16 of those
// that are offered, the first and the last among them.
func compileSome(t *testing.T, p *symtile.Program) {
	b := New()
	def, err := b.Default(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	plans := slices.Collect(b.Plans(t.Context(), p))
	t.Logf("the default of %d plans is %s", len(plans), def)
	some := []kernels.Plan{def, plans[len(plans)-1]}
	for k := 0; k < len(plans); k += 16 {
		some = append(some, plans[k])
	}
	for _, plan := range some {
		q, err := p.At(plan.Tiles)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lowerAndCompile(q, plan, b.spec(), nil); err != nil {
			t.Errorf("%s is offered: %v", plan, err)
		}
	}
}
