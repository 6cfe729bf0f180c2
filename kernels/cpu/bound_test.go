package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/kerneltest"
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
	var all []pricedTiling
	for tiling := range s.program.Space.Tilings() {
		all = append(all, s.tiling(tiling))
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

// checkCount compares the number of legal plans with the plans that can be lowered, of all
// tilings with all that their knobs offer.
func checkCount(t *testing.T, p *symtile.Program) (offer kernels.Offer) {
	b := New()
	offer, err := b.Offer(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.newSearch(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	legal := int64(0)
	for tiling := range s.program.Space.Tilings() {
		q, err := p.At(tiling)
		if err != nil {
			t.Fatal(err)
		}
		s.facts.set(tiling, s.count(kernels.Plan{Tiles: tiling}))
		for _, plan := range s.facts.variants() {
			if s.each && !WalksDigits(q) {
				continue
			}
			if _, err := lowerAndCompile(q, plan, s.spec, nil); err == nil {
				legal++
			}
		}
	}
	if offer.Legal > legal || !offer.MoreLegal && offer.Legal != legal {
		t.Errorf("%d plans are said to be legal (more: %t), %d are", offer.Legal, offer.MoreLegal, legal)
	}
	if offer.Legal < int64(len(offer.Plans)) {
		t.Errorf("%d plans are said to be legal, %d are offered", offer.Legal, len(offer.Plans))
	}
	return offer
}

// As many plans are legal as are said to be; of a space that is not listed, at least.
func TestLegalPlansAreCounted(t *testing.T) {
	exact := 0
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		if p.Space.Count() > 400 {
			t.Skip("many tilings are lowered")
		}
		if offer := checkCount(t, p); !offer.MoreLegal {
			exact++
		}
	})
	if exact == 0 {
		t.Error("no number is exact")
	}
	// The last tilings need more scratch than there is.
	checkCount(t, kerneltest.Program(t, `x = f32[8192,16384] parameter(0)
y = f32[8192,16384] sine(x)
z = f32[16384,8192] transpose(y), dimensions={1,0}
w = f32[16384,8192] cosine(z)
v = f32[8192,16384] transpose(w), dimensions={1,0}
`))
	forRandomPrograms(t, 60, func(p *symtile.Program, text string) {
		if p.Space.Count() > 200 {
			return
		}
		if checkCount(t, p); t.Failed() {
			t.Fatal(text)
		}
	})
}

// Of a space that is not listed the number is at least that of its tilings, and said to be a
// lower bound; a list of all has no fewer.
func TestLegalPlansOfLargeSpaces(t *testing.T) {
	p := kerneltest.Program(t, "x = f32[180,180,180] parameter(0)\ny = f32[180,180,180] negate(x)\n")
	if p.Space.Count() <= maxListed {
		t.Fatalf("%d tilings are listed", p.Space.Count())
	}
	offer, err := New().Offer(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New().newSearch(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	all := int64(0)
	for tiling := range s.program.Space.Tilings() {
		s.facts.set(tiling, s.count(kernels.Plan{Tiles: tiling}))
		all += int64(len(s.facts.variants()))
	}
	if !offer.MoreLegal || offer.Legal < p.Space.Count() || offer.Legal > all {
		t.Errorf("%d plans of %d tilings are said to be legal (more: %t), %d are", offer.Legal, p.Space.Count(), offer.MoreLegal, all)
	}
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
