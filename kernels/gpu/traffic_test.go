package gpu

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/gpu/coalesce"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/layout"
)

// Package coalesce counts the sectors of a kernel's accesses from the expressions
// of their addresses; the simulator from the addresses. They agree.
func TestTraffic(t *testing.T) {
	foreseen, all := 0, 0
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		tilings := slices.Collect(p.Space.Tilings())
		rng := rand.New(rand.NewPCG(5, uint64(len(tilings))))
		for range 3 {
			plan := kernels.Plan{Tiles: tilings[rng.IntN(len(tilings))]}.With(
				"warps", 1<<rng.IntN(4),
			).With("stages", 1+rng.Int64N(3)).With(
				"epilogue", rng.Int64N(2),
			)
			switch ok, ran := checkTraffic(t, p, plan); {
			case ran && ok:
				foreseen++
				all++
			case ran:
				all++
			}
		}
	})
	t.Logf("%d of %d kernels foreseen", foreseen, all)
	if 10*foreseen < 7*all {
		t.Errorf("the traffic of only %d of %d kernels is foreseen", foreseen, all)
	}
}

// checkTraffic reports whether a plan's traffic is foreseen, and whether it runs.
func checkTraffic(t *testing.T, p *symtile.Program, plan kernels.Plan) (foreseen, ran bool) {
	dev := newSimulator("sm_80")
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if q, err := p.At(plan.Tiles); err != nil || q.Programs() > 300 {
		return false, false
	}
	im, err := compile(p, plan, dev.Spec())
	var no *kernels.Rejected
	if errors.As(err, &no) {
		return false, false
	}
	if err != nil {
		t.Fatal(err)
	}
	predicted, err := im.traffic()
	if err != nil {
		t.Log(err)
		return false, true
	}
	k, err := New(s).Compile(t.Context(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	in, err := check.Inputs(p.Fusion, check.Normals, 1)
	if err != nil {
		t.Fatal(err)
	}
	var out []kernels.Buffer
	for _, x := range kernels.OutputShapes(p.Fusion) {
		b, err := kernels.NewBuffer(x)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	if _, err := k.Run(t.Context(), in, out); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		want sim.Traffic
		got  coalesce.Count
	}{{
		"loads", dev.last.GlobalLoad, predicted.Load,
	}, {"stores", dev.last.GlobalStore, predicted.Store}} {
		if x.got.Sectors != x.want.Units ||
			x.got.Ideal != x.want.Ideal ||
			x.got.Bytes != x.want.Bytes {
			t.Errorf("plan %s: %s: the layout room says %+v, the simulator %+v", plan, x.name, x.got, x.want)
		}
	}
	return true, true
}

// TestTouches demands that what Touches says a warp touches lies in the arrays, that
// parameters are loaded and outputs stored.
func TestTouches(t *testing.T) {
	sheet := newSimulator("sm_80").Spec()
	seen := 0
	forCorpus(t, func(t *testing.T, p *symtile.Program) {
		for tiling := range p.Space.Sample(4) {
			all, err := Touches(p, kernels.Plan{Tiles: tiling}, sheet)
			if err != nil {
				continue
			}
			stored := false
			for _, x := range all {
				stored = stored || x.Store
				seen++
				checkTouch(t, p, x)
			}
			if !stored {
				t.Errorf("%s: nothing is stored", p.Fusion.Name)
			}
		}
	})
	if seen < 60 {
		t.Errorf("%d accesses seen", seen)
	}
}

// checkTouch checks one access, of the first and the last block.
func checkTouch(t *testing.T, p *symtile.Program, x Touch) {
	output := strings.HasPrefix(x.Array, "output ")
	if x.Array != "scratch" && x.Store != output {
		t.Errorf("%s: store %v of %s", p.Fusion.Name, x.Store, x.Array)
	}
	for _, last := range []bool{false, true} {
		block := make([]int64, len(x.Access.Blocks))
		for k, b := range x.Access.Blocks {
			if last {
				block[k] = b.Range().Hi
			}
		}
		points, _, err := x.Access.WarpOf(block, 0, 1, layout.Sectors{})
		if err != nil {
			t.Fatal(err)
		}
		bytes := x.Shape.Elements() * x.Shape.DType.Size()
		for _, q := range points {
			if q.Offset < 0 || x.Array != "scratch" && q.Offset+x.Bytes > bytes {
				t.Fatalf("%s: %d bytes at %d of %s, which has %d", p.Fusion.Name, x.Bytes, q.Offset, x.Array, bytes)
			}
		}
	}
}
