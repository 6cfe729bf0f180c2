package tuner

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/cache"
	"github.com/tilewright/tilewright/cost"
	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// directionsOf are the directions that plans take from the first one, by the names of dimensions
// and knobs.
func directionsOf(dims []string, plans []kernels.Plan) map[string][2]bool {
	r := cache.Record{Default: plans[0].String(), Dims: dims}
	for _, p := range plans {
		r.Trials = append(r.Trials, cache.Trial{Plan: p.String()})
	}
	taken := map[string][2]bool{}
	probedBy(&r, taken)
	return taken
}

// proposed are the plans that proposals name, where each takes as long as its price says.
func (p *proposals) proposed() []kernels.Plan {
	all := []kernels.Plan{p.plans[0].Plan}
	next, more := p.plans[0], true
	for more {
		trial := cache.Trial{Plan: next.Plan.String(), Samples: []float64{next.Seconds}}
		p.observe(&trial)
		if next, more = p.next(len(all)); more {
			all = append(all, next.Plan)
		}
	}
	return all
}

// offeredBy are the ranked plans of a program.
func offeredBy(t *testing.T, b kernels.PricedBackend, p *symtile.Program) []cost.Ranked {
	t.Helper()
	pricer, err := b.Pricer(p)
	if err != nil {
		t.Fatal(err)
	}
	plans := slices.Collect(b.Plans(t.Context(), p))
	ranked, err := new(cost.Model).Rank(t.Context(), pricer, plans)
	if err != nil {
		t.Fatal(err)
	}
	return ranked
}

// TestDirectionsAreProbed: of each fusion of the corpus the 16 plans that are tried have, of
// each dimension and knob, a value below and one above the default's, where one is offered,
// although the price is right about all of them. Of the second fusion of a class the search
// takes none for its own sake.
func TestDirectionsAreProbed(t *testing.T) {
	fusions, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	b := cpu.New()
	known := 0
	for _, f := range fusions {
		p, err := symtile.Analyze(t.Context(), f.Computation)
		if err != nil {
			continue
		}
		ranked := offeredBy(t, b, p)
		dims := kernels.PlanNamesOf(p)
		var offered []kernels.Plan
		for _, r := range ranked {
			offered = append(offered, r.Plan)
		}
		all := directionsOf(dims, offered)
		for _, again := range []bool{false, true} {
			proposals, err := newProposals(16, 0, ranked[0], ranked)
			if err != nil {
				t.Fatal(err)
			}
			if again {
				proposals.skip(all, dims)
			}
			taken := directionsOf(dims, proposals.proposed())
			for name, want := range all {
				switch {
				case taken[name] == want:
				case again:
					known++
				default:
					t.Errorf("%s: %s is tried below and above: %v, offered %v", f.Name, name, taken[name], want)
				}
			}
		}
	}
	if known == 0 {
		t.Error("all directions are taken again although they are known")
	}
}

// TestClassIsKnown: with Learn a race knows what the races of other fusions with the same
// dimensions have tried on this device.
func TestClassIsKnown(t *testing.T) {
	l := newLab(1, 0.02, 2e-3, 1e-3, 1e-3)
	tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{Learn: true})
	if _, err := tn.Tune(t.Context(), fusionOf(t)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fusion *hlo.Computation
		device string
		known  bool
	}{
		{longer(t), "lab", true},
		{longer(t), "other", false},
		{fusionOf(t), "lab", false}, // of its own earlier race
	} {
		p, err := symtile.Analyze(t.Context(), c.fusion)
		if err != nil {
			t.Fatal(err)
		}
		s := &selection{program: p, fusion: c.fusion, key: Key(c.fusion, tn.identity())}
		s.key.Device = c.device
		got := tn.probed(s)["v"]
		if want := [2]bool{false, c.known}; got != want {
			t.Errorf("%s of %d on %s: known %v, want %v", c.fusion.Name, p.Space.Dims[0].Extent, c.device, got, want)
		}
	}
}

// longer is the fusion of fusionOf with twice the elements.
func longer(t *testing.T) *hlo.Computation {
	t.Helper()
	m, err := hlo.Parse("longer", []byte("x = f32[32] parameter(0); ROOT y = f32[32] negate(x)"))
	if err != nil {
		t.Fatal(err)
	}
	return m.Entry
}

// TestWarmStarts: with Learn, and only then, the winner of another device and that of a
// fusion of other extents are tried, where the price would not have chosen them.
func TestWarmStarts(t *testing.T) {
	truth := slices.Repeat([]float64{2e-3}, 40)
	truth[37] = 1e-3
	for _, c := range []struct {
		name, device string
		fusion       *hlo.Computation
		learn, wins  bool
	}{
		{"another device", "other", fusionOf(t), true, true},
		{"another device", "other", fusionOf(t), false, false},
		{"other extents", "lab", longer(t), true, true},
		{"other extents", "lab", longer(t), false, false},
	} {
		l := newLab(1, 0.02, truth...)
		tn := l.tuner(filepath.Join(t.TempDir(), "t.db"), Options{Candidates: 4, Learn: c.learn})
		r := cache.Record{Key: Key(c.fusion, tn.identity()), Canonical: c.fusion.Canonical(), Plan: "16 v=37", Seconds: 1}
		r.Device = c.device
		if _, err := tn.Cache.Put(r); err != nil {
			t.Fatal(err)
		}
		got, err := tn.Tune(t.Context(), fusionOf(t))
		if err != nil {
			t.Fatal(c.name, err)
		}
		if wins := got.Record.Plan == r.Plan; wins != c.wins {
			t.Errorf("%s, learning %v: %s won", c.name, c.learn, got.Record.Plan)
		}
	}
}
