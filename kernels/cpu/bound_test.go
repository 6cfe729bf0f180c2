package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// forRandomPrograms calls check for programs of a few operations that have tiles.
func forRandomPrograms(t *testing.T, n int, check func(p *symtile.Program, text string)) {
	rng := rand.New(rand.NewPCG(15, 5))
	for range n {
		text := randomProgram(rng, 1+rng.IntN(5))
		m, err := hlo.Parse("random", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if p, err := symtile.Analyze(t.Context(), m.Entry); err == nil {
			check(p, text)
		}
	}
}

// checkBounds compares the bounds of all beginnings of some tilings with the prices of all
// plans of these. It returns by how much the best bounds are below, over the tilings.
func checkBounds(t *testing.T, p *symtile.Program, n int) (share float64) {
	s, err := New().newSearch(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBounds(s)
	if err != nil {
		t.Fatal(err)
	}
	whole := wholeTiling(p.Space.Dims)
	tilings := 0
	for tiling := range s.program.Space.Sample(n) {
		best := s.plans(tiling, 1<<20)
		slices.SortFunc(best, pricedPlan.compare)
		last := 0.0
		for k := range len(tiling) + 1 {
			at := slices.Concat(tiling[:k], whole[k:])
			open := symtile.DimSet(0)
			for d := k; d < len(at); d++ {
				open |= 1 << d
			}
			if last = b.below(at, open); last > best[0].seconds*(1+1e-9) {
				t.Errorf("%v: tilings that begin with %v cost at least %v, %s costs %v", tiling, tiling[:k], last, best[0].plan, best[0].seconds)
				return 0
			}
		}
		tilings++
		share += last / best[0].seconds
	}
	return share / float64(tilings)
}

// A lower bound is above the price of no plan.
func TestBoundsAreBelow(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		t.Logf("bounds are %.2f of prices", checkBounds(t, p, 500))
	})
	forRandomPrograms(t, 400, func(p *symtile.Program, text string) {
		if checkBounds(t, p, 60); t.Failed() {
			t.Fatal(text)
		}
	})
}

// checkOffer compares what is offered with a list of all plans: no plan is cheaper than
// those that are said to be the cheapest, and none is legal that is not counted.
func checkOffer(t *testing.T, p *symtile.Program) (offer kernels.Offer) {
	b := New()
	offer, err := b.Offer(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.newSearch(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s.offered = map[kernels.Knob]bool{}
	var all []pricedTiling
	for tiling := range s.program.Space.Tilings() {
		all = append(all, s.tiling(tiling))
	}
	if n := int64(len(all)) * s.settings(); n < offer.Legal || int64(len(all)) <= maxListed && n > offer.Legal {
		t.Errorf("%d plans, counted are %d", n, offer.Legal)
	}
	if len(offer.Plans) == 0 || offer.Proven == 0 {
		return offer
	}
	price := func(plan kernels.Plan) float64 {
		return s.seconds(plan, s.count(plan))
	}
	last := price(offer.Plans[offer.Proven-1])
	offered := map[string]bool{}
	for _, plan := range offer.Plans {
		offered[plan.String()] = true
	}
	for _, x := range s.worthwhile(all) {
		if !s.runs(x.tiling) {
			continue
		}
		for _, y := range s.plans(x.tiling, math.MaxInt) {
			if y.seconds < last && !offered[y.plan.String()] {
				t.Fatalf("%s costs %v, the last of the %d cheapest %v", y.plan, y.seconds, offer.Proven, last)
			}
		}
	}
	return offer
}

// What is said to be the cheapest of all plans is: as a list of all plans has it.
func TestCheapestAreProven(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		if testing.Short() && p.Space.Count() > maxListed {
			t.Skip("many tilings are listed")
		}
		offer := checkOffer(t, p)
		t.Logf("%d tilings, %d plans, %d offered, %d proven", p.Space.Count(), offer.Legal, len(offer.Plans), offer.Proven)
		if offer.Proven == 0 {
			t.Error("no plan is proven to be the cheapest")
		}
	})
	forRandomPrograms(t, 300, func(p *symtile.Program, text string) {
		if p.Space.Count() > 2048 {
			return
		}
		if checkOffer(t, p); t.Failed() {
			t.Fatal(text)
		}
	})
}
