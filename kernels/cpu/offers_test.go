package cpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// TestOffers lists the plans of tilings in testdata/offers.txt, on a machine of
// two lanes and a last cache of 1 MiB.
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
		x, err := newPricer(p, New().Identity())
		if err != nil {
			t.Fatal(err)
		}
		f := x.facts()
		f.lanes, f.spec.last = 2, 1<<20
		tiling := listed(t, d, "tiling")
		f.set(tiling, x.count(kernels.Plan{Tiles: tiling}))
		var b strings.Builder
		for _, plan := range f.variants() {
			fmt.Fprintln(&b, plan)
		}
		return b.String()
	})
}

// What is offered for the corpus has no plan twice, knobs in their ranges, as
// many plans as are allowed, and every tiling without knobs first.
func TestPlansOffered(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		met := map[string]bool{}
		plain := map[string]bool{}
		for plan := range New().Plans(t.Context(), p) {
			if err := checkKnobs(plan); err != nil {
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
// and then by their text, on machines of one lane and of many. A descent misses two of
// these 245 firsts, and four without machine code, where vectors are shorter.
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
