package cpu

import (
	"context"
	"math"
	"testing"

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
	for plan := range New().Plans(context.Background(), p) {
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

// Tiles of rows of several dimensions are stored from scratch unless they are one run in
// the output.
func TestResultsStoredApart(t *testing.T) {
	for _, c := range []struct {
		sizes, shape []int64
		want         bool
	}{
		{[]int64{16, 28}, []int64{112, 112}, true},
		{[]int64{8, 112}, []int64{112, 112}, false},
		{[]int64{1, 28}, []int64{112, 112}, false},
		{[]int64{2, 1, 28}, []int64{2, 112, 112}, true},
		{[]int64{2, 1, 1}, []int64{2, 112, 112}, false},
		{[]int64{2, 112, 1}, []int64{2, 112, 112}, false},
		{[]int64{2, 56, 1}, []int64{2, 112, 112}, true},
		{[]int64{2, 1, 1}, []int64{2, 1, 1}, false},
		{[]int64{7}, []int64{112}, false},
		{nil, nil, false},
	} {
		if got := isApart(c.sizes, c.shape); got != c.want {
			t.Errorf("a tile of %d of %d is apart: %v, want %v", c.sizes, c.shape, got, c.want)
		}
	}
}
