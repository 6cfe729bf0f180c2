package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// No offered plan does more than the bound, counted on the concrete programs.
func TestPlansRepeatLittle(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		least, most := math.Inf(1), 0.0
		var worst symtile.Tiling
		for _, tiling := range tilingsOffered(p) {
			q, err := p.At(tiling)
			if err != nil {
				t.Fatal(err)
			}
			w := workOf(q, q.Body, float64(q.Programs()))
			if least = min(least, w); w > most {
				most, worst = w, tiling
			}
		}
		if t.Logf("%.1f times", most/least); most > maxRelativeWork*least {
			t.Errorf("%v computes %.1f times what the least does", worst, most/least)
		}
	})
}

func tilingsOffered(p *symtile.Program) []symtile.Tiling {
	var all []symtile.Tiling
	for plan := range New().Plans(p) {
		if len(plan.Knobs) == 0 {
			all = append(all, plan.Tiles)
		}
	}
	return all
}

// workOf counts element operations of a body that runs times times.
func workOf(p *symtile.Program, body []symtile.Step, times float64) float64 {
	sum := 0.0
	for _, s := range body {
		if s.Loop == nil {
			sum += times * operations(p, s.Op)
			continue
		}
		inner := times
		for _, d := range s.Loop.Dims {
			tiles, _ := p.Space.Dims[d].Tiles.Value()
			inner *= float64(tiles)
		}
		sum += workOf(p, s.Loop.Body, inner)
		for _, c := range s.Loop.Accumulators {
			sum += inner * operations(p, c)
		}
	}
	return sum
}

func operations(p *symtile.Program, n int) float64 {
	op := p.Ops[n]
	if readByGathersOnly(p, n) {
		return 0
	}
	switch op.Code {
	case hlo.OpReshape, hlo.OpSlice, hlo.OpDynamicSlice, hlo.OpCopy, hlo.OpGetTupleElement:
		return 0
	case hlo.OpReduce:
		return float64(p.Ops[op.Args[0]].Tile.Elements())
	}
	w := float64(op.Tile.Elements())
	if op.Code == hlo.OpDot {
		left := p.Ops[op.Args[0]].Tile.Sizes()
		for _, d := range op.Instr.Attrs.LHSContract {
			w *= float64(left[d])
		}
	}
	return w
}

// The estimates of a candidate against its concrete program and the lowering
// of that: within twice that. Windows whose positions or places become
// one, which leaves gaps out of their tiles, may be estimated at 2.5 times.
func TestEstimate(t *testing.T) {
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		tilings := slices.Collect(p.Space.Tilings())
		var some []symtile.Tiling
		for k := range 100 {
			some = append(some, tilings[k*len(tilings)/100])
		}
		checkEstimates(t, p, some)
	})
}

func checkEstimates(t *testing.T, p *symtile.Program, tilings []symtile.Tiling) {
	t.Helper()
	m, err := newMeasure(p, New().spec())
	if err != nil {
		t.Fatal(err)
	}
	most := 2.0
	for _, op := range p.Ops {
		if op.Code == symtile.OpUnfold {
			most = 2.5
		}
	}
	for _, tiling := range tilings {
		q, err := p.At(tiling)
		if err != nil {
			t.Fatal(err)
		}
		l, _ := lower(q, kernels.Plan{}, m.spec)
		if l.err != nil {
			continue
		}
		c := m.candidate(tiling)
		const few = 2000 // element operations, which nobody waits for
		if r := (c.work + few) /
			(workOf(q, q.Body, float64(q.Programs())) + few); r > most ||
			r < 1/most {
			t.Errorf("%v: %v times the element operations estimated that are done", tiling, r)
		}
		const slack = 4096 // bytes
		if r := (c.scratch + slack) / float64(l.bytes+slack); r > most || r < 1/most {
			t.Errorf("%v: %v bytes of scratch estimated, %d laid out", tiling, c.scratch, l.bytes)
		}
	}
}
