package gpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Products that warpgroups compute agree with the reference: all layouts,
// extents that are no multiples of the tiles, rings of one slot and more.
func TestWarpgroupDots(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	pick := func(list ...int64) int64 { return list[rng.IntN(len(list))] }
	device := newSimulator("sm_90a")
	s, err := NewSession(t.Context(), func(context.Context) (Driver, error) { return device, nil })
	if err != nil {
		t.Fatal(err)
	}
	b := New(s)
	ran, types := 0, map[string]int{}
	for range 60 {
		d := [][3]string{{"f16", "f16", "f32"}, {"bf16", "bf16", "f32"}, {"bf16", "bf16", "bf16"}, {"s8", "s8", "s32"}, {"u8", "u8", "s32"}, {"f8e4m3fn", "f8e4m3fn", "f32"}, {"f8e4m3fn", "f8e5m2", "f32"}}[rng.IntN(7)]
		small := strings.Contains(d[0], "8")
		turned := func() bool { return rng.IntN(2) == 0 && (!small || rng.IntN(4) == 0) } // wgmma has no 8-bit ones
		m, n, k := pick(64, 96, 128, 200), pick(16, 48, 64, 136, 256), pick(16, 32, 64, 80, 96, 128, 200)
		lhs, rhs, l, r := fmt.Sprintf("%d,%d", m, k), fmt.Sprintf("%d,%d", k, n), 1, 0
		if turned() {
			lhs, l = fmt.Sprintf("%d,%d", k, m), 0
		}
		if !turned() && (small || rng.IntN(2) == 0) {
			rhs, r = fmt.Sprintf("%d,%d", n, k), 1
		}
		text := fmt.Sprintf("a = %s[%s] parameter(0)\nb = %s[%s] parameter(1)\nc = %s[%d] parameter(2)\np = %s[%d,%d] dot(a, b), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}\nw = %s[%d,%d] broadcast(c), dimensions={1}\nr = %s[%d,%d] add(p, w)\n",
			d[0], lhs, d[1], rhs, d[2], n, d[2], m, n, l, r, d[2], m, n, d[2], m, n)
		module, err := hlo.Parse("random", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := symtile.Analyze(module.Entry)
		if err != nil {
			t.Fatal(err)
		}
		v, err := kernels.NewVerifier(module.Entry, 3)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			tiling := symtile.Tiling{min(m, pick(64, 128, 256)), min(n, pick(16, 48, 64, 128, 256)), min(k, pick(16, 32, 48, 64, 128))}
			plan := kernels.Plan{Tiles: tiling}.With("warps", pick(4, 8)).With("stages", pick(1, 2, 3, 4)).With("producer", pick(0, 1, 4)).With("epilogue", pick(0, 1))
			device.last.WGMMA = 0
			if p.Check(tiling) == nil && verify(t, b, v, p, plan) && device.last.WGMMA > 0 {
				ran++
				types[d[0]]++
			}
			if t.Failed() {
				t.Log(text)
				return
			}
		}
	}
	t.Logf("%d plans with wgmma: %v", ran, types)
	for _, d := range []string{"f16", "bf16", "s8", "u8", "f8e4m3fn"} {
		if types[d] < 4 {
			t.Errorf("only %d plans of %s use wgmma", types[d], d)
		}
	}
}

// A producer warpgroup gives registers to the others; never more than the block
// has, and none where a thread has all it can have from the start.
func TestWarpgroupRegisters(t *testing.T) {
	sheet := newSimulator("sm_90a").Sheet()
	for _, c := range []struct {
		groups int64
		extra  int
		want   int
	}{{1, 128, 0}, {2, 128, 232}, {4, 128, 104}, {2, 32, 0}, {7, 128, 64}} {
		r := &ring{e: &emitter{sheet: sheet, threads: c.groups * groupThreads, extra: c.extra}}
		if got := r.share(); got != c.want {
			t.Errorf("%d warpgroups and %d threads beside: %d registers, not %d", c.groups, c.extra, got, c.want)
		}
		if n := (int(c.groups)*c.want + producerRegisters) * groupThreads; n > sheet.BlockRegisters {
			t.Errorf("%d warpgroups: %d registers of a block", c.groups, n)
		}
	}
}
