package gpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/ptx/sim"
	"github.com/tilewright/tilewright/symtile"
)

// A computedProduct is a product of which one operand is computed on the way.
type computedProduct struct {
	raw, to string
	m, n, k int64
	// Right is set where the second operand is computed, along where the computed one has
	// its rows along k in memory, and plain for the other operand.
	right, along, plain bool
	scale               string
}

// text is the product in HLO: scale is "rows", "depth", "groups" (of 32 k), "both" or
// nothing.
func (c computedProduct) text() string {
	free := c.m
	if c.right {
		free = c.n
	}
	shape := func(n int64, along bool) (string, int, int) {
		if along {
			return fmt.Sprintf("%d,%d", n, c.k), 0, 1
		}
		return fmt.Sprintf("%d,%d", c.k, n), 1, 0
	}
	dims, fd, kd := shape(free, c.along)
	s := fmt.Sprintf("w = %s[%s] parameter(0)\nv = f32[%s] convert(w)\n", c.raw, dims, dims)
	value, params := "v", 1
	scale := func(name string, extent int64, dim int) {
		s += fmt.Sprintf("%[1]s = f32[%[2]d] parameter(%[3]d)\n%[1]sb = f32[%[4]s] broadcast(%[1]s), dimensions={%[5]d}\n%[1]sm = f32[%[4]s] multiply(%[6]s, %[1]sb)\n",
			name, extent, params, dims, dim, value)
		value = name + "m"
		params++
	}
	if c.scale == "rows" || c.scale == "both" {
		scale("r", free, fd)
	}
	if c.scale == "depth" || c.scale == "both" {
		scale("d", c.k, kd)
	}
	if c.scale == "groups" {
		s += fmt.Sprintf("g = f32[%[1]d,%[2]d] parameter(1)\ngb = f32[%[1]d,%[2]d,32] broadcast(g), dimensions={0,1}\ngr = f32[%[3]s] reshape(gb)\ngm = f32[%[3]s] multiply(v, gr)\n",
			free, c.k/32, dims)
		value, params = "gm", 2
	}
	s += fmt.Sprintf("a = %s[%s] convert(%s)\n", c.to, dims, value)
	other := c.n
	if c.right {
		other = c.m
	}
	dimsB, _, kb := shape(other, c.plain)
	s += fmt.Sprintf("b = %s[%s] parameter(%d)\n", c.to, dimsB, params)
	left, right, lk, rk := "a", "b", kd, kb
	if c.right {
		left, right, lk, rk = "b", "a", kb, kd
	}
	return s + fmt.Sprintf("p = f32[%d,%d] dot(%s, %s), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}\n",
		c.m, c.n, left, right, lk, rk)
}

// Operands that are computed in registers on the way to wgmma give the reference's
// results: all types, layouts, sides and scales, extents that are no multiples of tiles.
func TestRegisterOperands(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 1))
	pick := func(list ...int64) int64 { return list[rng.IntN(len(list))] }
	dev := newSimulator("sm_90a")
	dev.spec.SMs = 2
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := New(s)
	ran, knobs := map[string]int{}, map[string]int{}
	raws := []string{"s8", "u8", "s4", "f32", "bf16", "f16", "f8e4m3fn", "f8e5m2", "s32"}
	for n := range 36 {
		c := computedProduct{
			raw: raws[n%len(raws)], to: []string{"bf16", "f16"}[rng.IntN(2)],
			m: pick(64, 128, 176, 192), n: pick(64, 80, 128, 256), k: pick(32, 64, 96, 128, 160, 192),
			right: rng.IntN(2) == 0, along: rng.IntN(2) == 0, plain: rng.IntN(2) == 0,
			scale: []string{"", "rows", "depth", "groups", "both"}[rng.IntN(5)],
		}
		if c.scale == "groups" && !c.along {
			c.scale = "rows"
		}
		p := kerneltest.Program(t, c.text())
		v := kerneltest.Verifier(t, p, 3)
		for range 3 {
			tiling := symtile.Tiling{
				min(c.m, pick(64, 128, 256)),
				min(c.n, pick(64, 128, 256)),
				min(c.k, pick(16, 32, 64, 128)),
			}
			plan := kernels.Plan{Tiles: tiling}.With("warps", pick(4, 8)).With(
				"stages", pick(1, 2, 3, 4),
			).With("producer", pick(0, 1, 4)).With(
				"epilogue", pick(0, 1),
			)
			switch rng.IntN(4) {
			case 0:
				plan = plan.With("persistent", pick(1, 2)).With("producer", 1)
			case 1:
				plan = plan.With("cluster", 2).With("producer", 1)
			case 2:
				plan = plan.With("splitk", 2)
			}
			dev.last.WGMMA = 0
			if p.Check(tiling) == nil && verify(t, b, v, p, plan) &&
				(dev.last.WGMMA > 0 || plan.Knob("splitk", 1) > 1) {
				ran[c.raw]++
				ran[fmt.Sprint("right ", c.right, " along ", c.along)]++
				ran[c.scale]++
				for _, k := range plan.Knobs {
					knobs[fmt.Sprint(k.Name, "=", k.Value)]++
				}
			}
			if t.Failed() {
				t.Log(c.text())
				return
			}
		}
	}
	t.Log(ran, knobs)
	for _, raw := range raws {
		if ran[raw] < 2 {
			t.Errorf("only %d plans of %s use wgmma", ran[raw], raw)
		}
	}
	for _, k := range []string{"persistent=1", "persistent=2", "cluster=2", "splitk=2"} {
		if knobs[k] < 2 {
			t.Errorf("only %d plans with %s", knobs[k], k)
		}
	}
}

// Positions of elements in a box are those of the swizzle as the PTX ISA gives it: of the
// address of a row's 16 bytes, bits 4 to 6 are those bits xor bits 7 to 9, for 64 bytes a
// row one bit less, for 32 two.
func TestBoxPositions(t *testing.T) {
	for _, raw := range []string{"s8", "bf16", "f32"} {
		p := kerneltest.Program(t, matmul(raw, "f32", "nn", 64, 64, 64))
		e := newEmitter(p, device.Spec{}, defaultKnobs, &hints{})
		size := e.typeOf(0, 0).Size()
		for _, row := range []int64{32, 64, 128} {
			for _, byK := range []bool{false, true} {
				b := &boxTile{free: 128, depth: 64, byK: byK, inner: row / size}
				if b.depth%b.inner != 0 && !byK {
					continue
				}
				checkPositions(t, e, b, size)
			}
		}
	}
}

// checkPositions compares the position of every element of a box.
func checkPositions(t *testing.T, e *emitter, b *boxTile, size int64) {
	row := b.inner * size
	for free := range b.free {
		for k := range b.depth {
			i, j := free, k
			if b.byK {
				i, j = k, free
			}
			at := j/b.inner*b.rows()*row + i*row + j%b.inner*size
			at ^= at >> 7 & (row/16 - 1) << 4
			got, known := b.position(e, e.ring.Const(free), e.ring.Const(k)).Value()
			if !known || got*size != at {
				t.Fatalf("rows of %d bytes, byK %v: element (%d, %d) at byte %d, not %d", row, b.byK, free, k, got*size, at)
			}
		}
	}
}

// The price prefers registers to staging what was computed where tensor cores are what a
// product takes: warpgroups multiply at a higher rate than mma.sync.
func TestRegisterOperandPrice(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range []bool{false, true} {
		c := computedProduct{raw: "s8", to: "bf16", m: 4096, n: 4096, k: 4096, right: right, along: true, scale: "rows"}
		all, err := feasibleCandidates(t.Context(), kerneltest.Program(t, c.text()), s, noTF32)
		if err != nil {
			t.Fatal(err)
		}
		best := map[productUnit]float64{}
		for _, x := range all {
			if best[x.unit] == 0 {
				best[x.unit] = x.seconds
			}
		}
		t.Logf("right %v: %.0f µs from registers, %.0f staged", right, best[unitWGMMA]*1e6, best[unitMMA]*1e6)
		if all[0].unit != unitWGMMA || best[unitMMA] > 0 && best[unitMMA] < 1.1*best[unitWGMMA] {
			t.Errorf("right %v: %v", right, best)
		}
	}
}

// Products of 8 and 32 bits of which one operand has its rows along the free dimension are
// computed by warpgroups, with that operand in registers, and those of 8-bit floats of which both
// have with the other one copied: sides, types, extents that are no multiples of tiles, schedules; without
// bank conflicts.
func TestPlainRegisterOperands(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 1))
	pick := func(list ...int64) int64 { return list[rng.IntN(len(list))] }
	dev := newSimulator("sm_90a")
	dev.spec.SMs = 2
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := New(s)
	b.AllowTF32()
	types := [][2]string{
		{"s8", "s32"}, {"u8", "s32"}, {"f8e4m3fn", "f32"},
		{"f8e5m2*f8e4m3fn", "f32"}, {"f32", "f32"},
	}
	ran := map[string]int{}
	for n := range 60 {
		d, layout := types[n%len(types)], []string{"nn", "tt", "tn"}[n/len(types)%3]
		m, c := pick(64, 80, 128, 176, 256), pick(64, 80, 144, 192, 256)
		k := pick(32, 64, 80, 96, 128, 208, 320)
		text := matmul(d[0], d[1], layout, m, c, k)
		p := kerneltest.Program(t, text)
		v := kerneltest.Verifier(t, p, 3)
		for range 3 {
			tiling := symtile.Tiling{
				min(m, pick(32, 64, 128, 256)), min(c, pick(32, 64, 128, 256)), min(k, pick(16, 32, 64, 128)),
			}
			plan := kernels.Plan{Tiles: tiling}.With("warps", pick(4, 8)).With("stages", pick(1, 2, 3, 4)).
				With("producer", pick(0, 1, 4)).With("epilogue", pick(0, 1))
			if d[0] == "f32" {
				plan = plan.With(kernels.TF32, 1)
			}
			schedule := rng.IntN(6)
			switch schedule {
			case 0:
				plan = plan.With("persistent", pick(1, 2)).With("producer", 1)
			case 1:
				plan = plan.With("cluster", 2).With("producer", 1)
			case 2:
				plan = plan.With("splitk", 2)
			case 3:
				if d[0][0] == 'f' && d[0] != "f32" {
					plan = plan.With("promote", 1)
				}
			}
			dev.last.WGMMA = 0
			if p.Check(tiling) != nil || !verify(t, b, v, p, plan) {
				if t.Failed() {
					t.Log(text)
					return
				}
				continue
			}
			if dev.last.WGMMA == 0 {
				continue
			}
			ran[d[0]]++
			ran[layout]++
			for _, k := range plan.Knobs {
				ran[fmt.Sprint(k.Name, "=", k.Value)]++
			}
			for _, x := range []sim.Traffic{dev.last.SharedLoad, dev.last.SharedStore} {
				if plan.Knob("epilogue", 0) == 0 && x.Units != x.Ideal {
					t.Errorf("%v: %d wavefronts of shared memory, %d would do\n%s", plan, x.Units, x.Ideal, text)
				}
			}
		}
	}
	t.Log(ran)
	for _, want := range []string{
		"s8", "u8", "f8e4m3fn", "f8e5m2*f8e4m3fn", "f32", "nn", "tt", "tn", "persistent=1", "persistent=2", "cluster=2",
		"promote=1", "producer=4", "stages=1",
	} {
		if ran[want] < 2 {
			t.Errorf("only %d plans with %s are computed by warpgroups", ran[want], want)
		}
	}
}

// The price of products that wgmma cannot read as they are in memory is near that of those that
// it can, and is less than that of mma.sync.
func TestPlainRegisterOperandPrice(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range [][2]string{{"f8e4m3fn", "f32"}, {"s8", "s32"}, {"f32", "f32"}} {
		seconds := map[string]float64{}
		for _, layout := range []string{"nt", "nn", "tt", "tn"} {
			p := kerneltest.Program(t, matmul(d[0], d[1], layout, 4096, 4096, 4096))
			all, err := feasibleCandidates(t.Context(), p, s, []int{1})
			if err != nil {
				t.Fatal(err)
			}
			seconds[layout] = all[0].seconds
			if want := layout != "tn" || d[0] == "f8e4m3fn"; (all[0].unit == unitWGMMA) != want {
				t.Errorf("%s %s: by warpgroups: %v", d[0], layout, !want)
			}
		}
		t.Log(d[0], seconds)
		for _, layout := range []string{"nn", "tt"} {
			if seconds[layout] > 1.4*seconds["nt"] || seconds[layout] > 0.9*seconds["tn"] || seconds["tn"] > 1.7*seconds["nt"] {
				t.Errorf("%s: %s takes %v", d[0], layout, seconds)
			}
		}
	}
}
