package cpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Of programs whose tiles have no digits all tilings can be lowered, or none: a search
// lowers one of them.
func TestLoweringWithoutDigits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	programs, tilings := 0, 0
	for range 300 {
		text := randomProgram(rng, 1+rng.IntN(5))
		m, err := hlo.Parse("random", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := symtile.Analyze(t.Context(), m.Entry)
		if err != nil {
			continue
		}
		s, err := New().newSearch(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if s.digits {
			continue
		}
		programs++
		for tiling := range p.Space.Sample(24) {
			q, err := p.At(tiling)
			if err != nil {
				t.Fatal(err)
			}
			tilings++
			if l, _ := lower(q, kernels.Plan{}, s.spec); (l.err == nil) != s.runs(tiling) {
				t.Errorf("%v: %v; the first tiling: %v\n%s", tiling, l.err, s.refused, text)
			}
		}
	}
	if t.Logf("%d tilings of %d programs", tilings, programs); programs < 100 {
		t.Errorf("only %d of 300 programs have no digits", programs)
	}
}

// What grows around a small sample is as cheap, at each of the first ranks, as a sample of
// 32,768 tilings.
func TestGrowthIsCheap(t *testing.T) {
	for _, name := range []string{"attention_scores", "avgpool_same", "conv2d_bias_relu", "layernorm"} {
		_, p := corpusProgram(t, name)
		s, err := New().newSearch(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		grown := s.sensible()
		var sampled []pricedTiling
		for tiling := range s.program.Space.Sample(1 << 15) {
			if x := s.tiling(tiling); x.sensible {
				sampled = append(sampled, x)
			}
		}
		sampled = s.onlyLowered(frugal(sampled))
		slices.SortFunc(sampled, pricedTiling.compare)
		for k := 0; k < min(maxTilings/4, len(sampled)); k++ {
			if k >= len(grown) || grown[k].seconds > sampled[k].seconds {
				t.Errorf("%s: tiling %d of %d takes longer than %v", name, k, len(grown), sampled[k])
				break
			}
		}
	}
}
