package gpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// randomDot writes a product of random types, layouts and extents, half of them
// no multiples of anything, some of them with vectors for matrices, some with a
// prologue and an epilogue.
func randomDot(rng *rand.Rand) string {
	extent := func() int64 {
		return []int64{
			1, 3, 8, 16, 17, 24, 32, 40, 48, 64, 65, 96,
		}[rng.IntN(12)]
	}
	types := [][2]string{
		{"f16", "f32"}, {"f16", "f16"}, {"bf16", "f32"},
		{"bf16", "bf16"}, {"s8", "s32"}, {"u8", "s32"},
		{"f32", "f32"}, {"f8e4m3fn", "f32"}, {"f8e5m2", "bf16"},
		{"f64", "f64"}, {"s32", "s32"},
	}
	d := types[rng.IntN(len(types))]
	batch, m, k, n := int64(0), extent(), extent(), extent()
	if rng.IntN(3) == 0 {
		batch = 1 + rng.Int64N(3)
	}
	lhs, rhs := []int64{m, k}, []int64{k, n}
	l, r := 1, 0 // contracted
	if rng.IntN(2) == 0 {
		lhs, l = []int64{k, m}, 0
	}
	if rng.IntN(2) == 0 {
		rhs, r = []int64{n, k}, 1
	}
	out, attrs := []int64{m, n}, ""
	if rng.IntN(5) == 0 { // a vector on the left
		lhs, l, out = []int64{k}, 0, out[1:]
	}
	if rng.IntN(5) == 0 { // a vector on the right
		rhs, r, out = []int64{k}, 0, out[:len(out)-1]
	}
	matrix := len(out) == 2
	if batch > 0 {
		lhs = append([]int64{batch}, lhs...)
		rhs = append([]int64{batch}, rhs...)
		out = append([]int64{batch}, out...)
		l = l + 1
		r = r + 1
		attrs = ", lhs_batch_dims={0}, rhs_batch_dims={0}"
	}
	shape := func(d string, dims []int64) string {
		return d + strings.ReplaceAll(fmt.Sprint(dims), " ", ",")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "a = %s parameter(0)\nb = %s parameter(1)\n", shape(d[0], lhs), shape(d[0], rhs))
	left := "a"
	if rng.IntN(3) == 0 && d[0][:2] != "f8" {
		fmt.Fprintf(&b, "c = %s add(a, a)\n", shape(d[0], lhs))
		left = "c"
	}
	fmt.Fprintf(&b, "p = %s dot(%s, b), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}%s\n", shape(d[1], out), left, l, r, attrs)
	switch kind := rng.IntN(4); {
	case kind == 0:
		fmt.Fprintf(&b, "q = %s add(p, p)\n", shape(d[1], out))
	case kind == 1 && matrix:
		perm := []int{1, 0}
		if batch > 0 {
			perm = []int{0, 2, 1}
		}
		turned := make([]int64, len(out))
		for k, p := range perm {
			turned[k] = out[p]
		}
		fmt.Fprintf(
			&b, "q = %s transpose(p), dimensions={%s}\n",
			shape(d[1], turned),
			strings.Trim(strings.ReplaceAll(fmt.Sprint(perm), " ", ","), "[]"),
		)
	}
	return b.String()
}

// Random products agree with the reference, on tensor cores and without, and by
// warpgroups.
func TestRandomDots(t *testing.T) {
	for _, target := range []string{"sm_80", "sm_89", "sm_90a"} {
		t.Run(target, func(t *testing.T) {
			checkDots(t, target, rand.New(rand.NewPCG(3, 5)))
		})
	}
}

func checkDots(t *testing.T, target string, rng *rand.Rand) {
	dev := newSimulator(target)
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := New(s)
	b.AllowTF32()
	ran, mma, wgmma := 0, 0, 0
	for range 25 {
		text := randomDot(rng)
		p := kerneltest.Program(t, text)
		v := kerneltest.Verifier(t, p, 3)
		for range 3 {
			plan := kernels.Plan{Tiles: randomTiling(rng, p)}.With(
				"warps", 1<<rng.IntN(4),
			).With("stages", 1+rng.Int64N(4)).With("epilogue", rng.Int64N(2)).With(
				kernels.TF32, rng.Int64N(cutOff+1),
			)
			if !verify(t, b, v, p, plan) {
				continue
			}
			ran++
			mma += int(min(1, dev.last.MMA))
			wgmma += int(min(1, dev.last.WGMMA))
		}
		if t.Failed() {
			t.Log(text)
			return
		}
	}
	t.Logf("%d plans, %d with mma, %d with wgmma", ran, mma, wgmma)
	if mma < 20 {
		t.Error("too few plans use tensor cores")
	}
}

func randomTiling(rng *rand.Rand, p *symtile.Program) symtile.Tiling {
	var pick symtile.Tiling
	n := 0
	for t := range p.Space.Tilings() {
		if n++; rng.IntN(n) == 0 {
			pick = t
		}
	}
	return pick
}
