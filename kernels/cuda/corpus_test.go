//go:build cuda && cudasim && cgo && linux

package cuda

import (
	"context"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/cuda/cudasim"
	"github.com/tilewright/tilewright/kernels/gpu"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/gpu/simulated"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
	corpus "github.com/tilewright/tilewright/testdata/hlo"
)

// TestCorpus: the default plan of every fusion of the corpus gives the
// reference's results through cu, and everything is given back.
func TestCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("the simulator takes long under the race detector")
	}
	all, err := corpus.Fusions()
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := device.ParseSpec("H200")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := simulated.Open(sheet, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cudasim.Start(machine, cudasim.Options{})
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return Open(0)
	})
	if err != nil {
		t.Fatal(err)
	}
	b := gpu.New(s)
	for _, f := range all {
		if err := checkFusion(t, b, f.Computation); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if held := cudasim.Held(); held != "" {
		t.Errorf("not given back: %s", held)
	}
}

func checkFusion(t *testing.T, b *gpu.Backend, c *hlo.Computation) error {
	t.Helper()
	p, err := symtile.Analyze(t.Context(), c)
	if err != nil {
		return err
	}
	plan, err := b.Default(t.Context(), p)
	if err != nil {
		return err
	}
	k, err := b.Compile(t.Context(), p, plan)
	if err != nil {
		return err
	}
	defer k.Close()
	v, err := check.NewVerifier(context.Background(), c, 1)
	if err != nil {
		return err
	}
	return v.Verify(t.Context(), k)
}

// TestClusters: kernels with tensor maps and clusters are launched with what
// they need, as one block a tile and with blocks that go from tile to tile.
func TestClusters(t *testing.T) {
	m, err := hlo.Parse("gemm", []byte("a = bf16[512,128] parameter(0)\nb = bf16[128,64] parameter(1)\np = bf16[512,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := symtile.Analyze(t.Context(), m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := device.ParseSpec("H200")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := simulated.Open(sheet, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cudasim.Start(machine, cudasim.Options{})
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return Open(0)
	})
	if err != nil {
		t.Fatal(err)
	}
	b := gpu.New(s)
	defer b.Close()
	v, err := check.NewVerifier(context.Background(), m.Entry, 1)
	if err != nil {
		t.Fatal(err)
	}
	plan := kernels.Plan{
		Tiles: symtile.Tiling{64, 64, 64},
	}.With("warps", 4).With("group", 4)
	for _, plan := range []kernels.Plan{
		plan.With("cluster", 2),
		plan.With("cluster", 4).With("persistent", 1),
	} {
		k, err := b.Compile(t.Context(), p, plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(t.Context(), k); err != nil {
			t.Errorf("%s: %v", plan, err)
		}
		if machine.Last().Counters.WGMMA == 0 {
			t.Errorf("%s: no wgmma", plan)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}
