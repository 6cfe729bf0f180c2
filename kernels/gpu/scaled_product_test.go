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

// A scaledText is a product of 8-bit floats that are converted and scaled first.
type scaledText struct {
	m, n, k int64
	sides   [2]scaledSide
	// To is the type that operands are converted to in the end.
	to string
}

// A scaledSide is an operand: free by k, or k by free where byK is set. Scale is "" for none,
// "tensor", "line" (one for each row or column), "blocks" of 1 × block or "squares" of block
// × block. Early is set where elements are scaled as blocks of k, and reshaped after that.
type scaledSide struct {
	raw, scale string
	block      int64
	byK, early bool
}

// text is the product in HLO, as JAX prints it. Blocks that go beyond the operand are cut.
func (c scaledText) text() string {
	var b strings.Builder
	params := 0
	param := func(shape string) string {
		params++
		name := fmt.Sprint("p", params-1)
		fmt.Fprintf(&b, "%s = %s parameter(%d)\n", name, shape, params-1)
		return name
	}
	for k, s := range c.sides {
		s.write(&b, []string{"a", "b"}[k], []int64{c.m, c.n}[k], c.k, c.to, param)
	}
	along := func(s scaledSide) int {
		if s.byK {
			return 0
		}
		return 1
	}
	fmt.Fprintf(&b, "r = f32[%d,%d] dot(a, b), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}\n",
		c.m, c.n, along(c.sides[0]), along(c.sides[1]))
	return b.String()
}

func (s scaledSide) write(b *strings.Builder, name string, free, k int64, to string, param func(string) string) {
	dims := fmt.Sprintf("%d,%d", free, k)
	if s.byK {
		dims = fmt.Sprintf("%d,%d", k, free)
	}
	q := param(fmt.Sprintf("%s[%s]", s.raw, dims))
	line := func(format string, args ...any) { fmt.Fprintf(b, name+format+"\n", args...) }
	if s.early && s.scale == "blocks" && !s.byK && k%s.block == 0 {
		split := fmt.Sprintf("%d,%d,%d", free, k/s.block, s.block)
		scale := param(fmt.Sprintf("f32[%d,%d]", free, k/s.block))
		line("q = %s[%s] reshape(%s)", s.raw, split, q)
		line("c = f32[%s] convert(%sq)", split, name)
		line("w = f32[%s] broadcast(%s), dimensions={0,1}", split, scale)
		line("s = f32[%s] multiply(%sc, %sw)", split, name, name)
		line("v = f32[%s] reshape(%ss)", dims, name)
		line(" = %s[%s] convert(%sv)", to, dims, name)
		return
	}
	line("c = f32[%s] convert(%s)", dims, q)
	value := name + "c"
	if s.scale != "" {
		s.broadcast(line, name, dims, free, k, param)
		line("s = f32[%s] multiply(%sw, %sc)", dims, name, name)
		value = name + "s"
	}
	line(" = %s[%s] convert(%s)", to, dims, value)
}

// broadcast writes the scales as an array of the operand's shape.
func (s scaledSide) broadcast(
	line func(string, ...any), name, dims string, free, k int64, param func(string) string,
) {
	switch {
	case s.scale == "tensor":
		line("w = f32[%s] broadcast(%s), dimensions={}", dims, param("f32[]"))
	case s.scale == "line" && s.byK:
		line("w = f32[%s] broadcast(%s), dimensions={1}", dims, param(fmt.Sprintf("f32[%d]", free)))
	case s.scale == "line":
		line("w = f32[%s] broadcast(%s), dimensions={0}", dims, param(fmt.Sprintf("f32[%d]", free)))
	default:
		block := [2]int64{1, s.block}
		if s.scale == "squares" {
			block[0] = s.block
		}
		whole := [2]int64{free, k}
		if s.byK {
			block[0], block[1] = block[1], block[0]
			whole[0], whole[1] = whole[1], whole[0]
		}
		n := [2]int64{(whole[0] + block[0] - 1) / block[0], (whole[1] + block[1] - 1) / block[1]}
		line("e = f32[%d,%d,%d,%d] broadcast(%s), dimensions={0,2}",
			n[0], block[0], n[1], block[1], param(fmt.Sprintf("f32[%d,%d]", n[0], n[1])))
		line("f = f32[%d,%d] reshape(%se)", n[0]*block[0], n[1]*block[1], name)
		line("w = f32[%s] slice(%sf), slice={[0:%d], [0:%d]}", dims, name, whole[0], whole[1])
	}
}

// Products of 8-bit floats with scales give the reference's results, and warpgroups multiply
// the 8-bit floats where k tiles divide the blocks: sides, layouts, kinds and sizes of blocks
// that are cut at edges, schedules.
func TestScaledProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
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
	kinds := []string{"", "tensor", "line", "blocks", "squares"}
	for n := range 32 {
		c := scaledText{
			m: pick(64, 128, 176, 192), n: pick(64, 80, 128, 208, 256), k: pick(128, 192, 256, 320, 384),
			to: "f32",
		}
		for side := range c.sides {
			c.sides[side] = scaledSide{
				raw:   []string{"f8e4m3fn", "f8e5m2"}[rng.IntN(2)],
				scale: kinds[(n+side*n/5)%5], block: pick(32, 64, 128),
				byK: rng.IntN(8) == 0, early: rng.IntN(2) == 0,
			}
		}
		p := kerneltest.Program(t, c.text())
		v := kerneltest.Verifier(t, p, 3)
		for range 3 {
			tiling := symtile.Tiling{
				min(c.m, pick(64, 128)), min(c.n, pick(16, 64, 128)), min(c.k, pick(32, 64, 128)),
			}
			plan := kernels.Plan{Tiles: tiling}.With("warps", pick(4, 8)).With("stages", pick(1, 2, 3, 4)).
				With("producer", pick(0, 1, 4)).With("epilogue", pick(0, 1))
			switch rng.IntN(5) {
			case 0:
				plan = plan.With("persistent", pick(1, 2)).With("producer", 1)
			case 1:
				plan = plan.With("cluster", 2).With("producer", 1)
			case 2:
				plan = plan.With("splitk", 2)
			case 3:
				plan = plan.With("promote", 1)
			}
			dev.last.WGMMA = 0
			if p.Check(tiling) != nil || !verify(t, b, v, p, plan) {
				if t.Failed() {
					t.Log(c.text(), plan)
					return
				}
				continue
			}
			kind := "mma"
			if dev.last.WGMMA > 0 || plan.Knob("splitk", 1) > 1 {
				kind = "wgmma"
			}
			ran[kind]++
			for side, x := range c.sides {
				ran[fmt.Sprintf("%s side %d: %s", kind, side, x.scale)]++
				ran[fmt.Sprintf("%s early %v", kind, x.early && x.scale == "blocks")]++
			}
			for _, k := range plan.Knobs {
				if kind == "wgmma" {
					knobs[fmt.Sprint(k.Name, "=", k.Value)]++
				}
			}
		}
	}
	t.Log(ran, knobs)
	for side := range 2 {
		for _, kind := range kinds {
			if n := ran[fmt.Sprintf("wgmma side %d: %s", side, kind)]; n < 4 {
				t.Errorf("only %d plans by warpgroups have scales %q on side %d", n, kind, side)
			}
		}
	}
	for _, k := range []string{"persistent=1", "persistent=2", "cluster=2", "splitk=2", "promote=1"} {
		if knobs[k] < 2 {
			t.Errorf("only %d plans with %s", knobs[k], k)
		}
	}
}

// The price prefers the 8-bit floats as they are to what they are converted to, and DeepGEMM's
// schedule: 128 × 128 results of two warpgroups, 128 of k, and a producer that gives registers.
func TestScaledPrice(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	c := scaledText{m: 4096, n: 4096, k: 4096, to: "f32", sides: [2]scaledSide{
		{raw: "f8e4m3fn", scale: "blocks", block: 128}, {raw: "f8e4m3fn", scale: "squares", block: 128},
	}}
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
	t.Logf("%v: %.0f µs", all[0].plan(), all[0].seconds*1e6)
	if k := all[0].knobs; all[0].unit != unitWGMMA || all[0].seconds > 160e-6 ||
		fmt.Sprint(all[0].tiling) != "[128 128 128]" || k.warps != 8 || k.producer != 4 {
		t.Errorf("%v: %.0f µs, by unit %v", all[0].plan(), all[0].seconds*1e6, best)
	}
}

// Scales that are not the same along k in a tile, or are multiplied in f16, which has fewer
// exponents than sums, leave the product to what operands are converted to.
func TestUnscaledProducts(t *testing.T) {
	plan := kernels.Plan{Tiles: symtile.Tiling{64, 64, 64}}
	side := scaledSide{raw: "f8e4m3fn", scale: "blocks", block: 64}
	for _, c := range []struct {
		block int64
		edit  [2]string
		want  bool
	}{
		{64, [2]string{}, true},
		{32, [2]string{}, false},
		{64, [2]string{"f32[64,256] multiply", "f16[64,256] multiply"}, false},
	} {
		x := side
		x.block = c.block
		text := scaledText{m: 64, n: 64, k: 256, to: "f32", sides: [2]scaledSide{x, side}}.text()
		if c.edit[0] != "" {
			text = strings.ReplaceAll(text, c.edit[0], c.edit[1])
			text = strings.ReplaceAll(text, "f32[64,256] convert(p", "f16[64,256] convert(p")
			text = strings.ReplaceAll(text, "f32[64,4]", "f16[64,4]")
			text = strings.ReplaceAll(text, "f32[64,1,4,64]", "f16[64,1,4,64]")
			text = strings.ReplaceAll(text, "f32[64,256] reshape", "f16[64,256] reshape")
			text = strings.ReplaceAll(text, "f32[64,256] slice", "f16[64,256] slice")
		}
		sheet, err := device.ParseSpec("H100")
		if err != nil {
			t.Fatal(err)
		}
		image, err := compile(kerneltest.Program(t, text), plan.With("warps", 4), sheet)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		ptx := string(image.module.Text())
		if got := strings.Contains(ptx, ".f32.e4m3.e4m3"); got != c.want {
			t.Errorf("blocks of %d, %v: 8-bit floats are multiplied: %v", c.block, c.edit, got)
		}
	}
}

// A blockSumText is a dot of each block of k, whose results are multiplied by scales and
// summed: Σ_b s[m,b]·t[n,b]·dot_b, as JAX prints it.
type blockSumText struct {
	raw, to             string // of the operands, and what they are converted to
	m, n, blocks, depth int64
	// Turned is set where the dot has its operands exchanged and is transposed (einsum).
	turned bool
	// Scales are "rows", "columns", "both" (one after the other), "product" (multiplied before),
	// "block" (one for each block) or nothing.
	scales string
	// Free is set where the second operand has its rows along n.
	free bool
}

func (c blockSumText) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	rightDims, k := fmt.Sprintf("%d,%d,%d", c.n, c.blocks, c.depth), 2
	batch := 1
	if c.free {
		rightDims, k, batch = fmt.Sprintf("%d,%d,%d", c.blocks, c.depth, c.n), 1, 0
	}
	line("a = %s[%d,%d,%d] parameter(0)", c.raw, c.m, c.blocks, c.depth)
	line("b = %s[%s] parameter(1)", c.raw, rightDims)
	left, right := "a", "b"
	if c.to != c.raw {
		line("ac = %s[%d,%d,%d] convert(a)", c.to, c.m, c.blocks, c.depth)
		line("bc = %s[%s] convert(b)", c.to, rightDims)
		left, right = "ac", "bc"
	}
	line("s = f32[%d,%d] parameter(2)", c.m, c.blocks)
	line("t = f32[%d,%d] parameter(3)", c.n, c.blocks)
	shape := fmt.Sprintf("f32[%d,%d,%d]", c.blocks, c.m, c.n)
	at := [3]int{0, 1, 2} // of the block, m and n
	if c.turned {
		line("e = f32[%d,%d,%d] dot(%s, %s), lhs_batch_dims={%d}, rhs_batch_dims={1}, lhs_contracting_dims={%d}, rhs_contracting_dims={2}",
			c.blocks, c.n, c.m, right, left, batch, k)
		shape, at = fmt.Sprintf("f32[%d,%d,%d]", c.m, c.n, c.blocks), [3]int{2, 0, 1}
		line("d = %s transpose(e), dimensions={2,1,0}", shape)
	} else {
		line("d = %s dot(%s, %s), lhs_batch_dims={1}, rhs_batch_dims={%d}, lhs_contracting_dims={2}, rhs_contracting_dims={%d}",
			shape, left, right, batch, k)
	}
	wide := func(name, of string, free int) {
		if c.turned {
			line("%s = %s broadcast(%s), dimensions={%d,%d}", name, shape, of, free, at[0])
			return
		}
		extent := c.m
		if free == at[2] {
			extent = c.n
		}
		line("%st = f32[%d,%d] transpose(%s), dimensions={1,0}", of, c.blocks, extent, of)
		line("%s = %s broadcast(%st), dimensions={%d,%d}", name, shape, of, at[0], free)
	}
	wide("sw", "s", at[1])
	wide("tw", "t", at[2])
	value := "d"
	times := func(name, x, y string) string {
		line("%s = %s multiply(%s, %s)", name, shape, x, y)
		return name
	}
	switch c.scales {
	case "rows":
		value = times("x", "d", "sw")
	case "columns":
		value = times("x", "tw", "d")
	case "both":
		value = times("y", times("x", "d", "sw"), "tw")
	case "product":
		value = times("y", "d", times("x", "sw", "tw"))
	case "block":
		line("q = f32[%d] parameter(4)", c.blocks)
		line("qw = %s broadcast(q), dimensions={%d}", shape, at[0])
		value = times("x", "d", "qw")
	}
	line("z = f32[] constant(0)")
	line("r = f32[%d,%d] reduce(%s, z), dimensions={%d}, to_apply=add", c.m, c.n, value, at[0])
	return b.String()
}

// Dots of blocks of k whose results are scaled and summed give the reference's results, and are
// computed by warpgroups in one loop where a tile has a block.
func TestScaledSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 1))
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
	ran := map[string]int{}
	kinds := []string{"", "rows", "columns", "both", "product", "block"}
	for n := range 36 {
		c := blockSumText{
			raw: []string{"f8e4m3fn", "f8e5m2", "bf16"}[n/6%3],
			m:   pick(64, 80, 128, 192), n: pick(64, 80, 128, 208), blocks: pick(2, 3, 4), depth: pick(32, 64, 128),
			turned: rng.IntN(2) == 0, scales: kinds[n%6], free: rng.IntN(3) == 0,
		}
		if c.to = c.raw; c.raw != "bf16" && rng.IntN(3) == 0 {
			c.to = "f32"
		}
		p := kerneltest.Program(t, c.text())
		v := kerneltest.Verifier(t, p, 3)
		for range 3 {
			tiling := symtile.Tiling{
				min(c.m, pick(64, 128)), min(c.n, pick(64, 128)), pick(1, 1, 1, 2), c.depth / pick(1, 1, 1, 2),
			}
			plan := kernels.Plan{Tiles: tiling}.With("warps", pick(4, 8)).With("stages", pick(1, 2, 3)).
				With("producer", pick(0, 1, 4)).With("epilogue", pick(0, 1))
			switch rng.IntN(4) {
			case 0:
				plan = plan.With("persistent", pick(1, 2)).With("producer", 1)
			case 1:
				plan = plan.With("cluster", 2).With("producer", 1)
			case 2:
				plan = plan.With("splitk", 2)
			}
			dev.last.WGMMA = 0
			if p.Check(tiling) != nil || !verify(t, b, v, p, plan) {
				if t.Failed() {
					t.Log(c.text(), plan)
					return
				}
				continue
			}
			kind := "mma"
			if dev.last.WGMMA > 0 || tiling[2] == 1 && tiling[3] == c.depth && plan.Knob("splitk", 1) > 1 {
				kind = "wgmma"
			}
			if whole := tiling[2] == 1 && tiling[3] == c.depth; !whole && kind == "wgmma" {
				t.Errorf("%v: tiles without whole blocks are multiplied by warpgroups\n%s", plan, c.text())
			}
			for _, x := range []string{c.raw, "scales " + c.scales, fmt.Sprint("turned ", c.turned), fmt.Sprint("converted ", c.to != c.raw), fmt.Sprint("free ", c.free)} {
				ran[kind+" "+x]++
			}
			for _, k := range plan.Knobs {
				ran[kind+" "+fmt.Sprint(k.Name, "=", k.Value)]++
			}
		}
	}
	t.Log(ran)
	for _, want := range []string{
		"f8e4m3fn", "f8e5m2", "bf16", "scales ", "scales rows", "scales columns", "scales both", "scales product", "scales block",
		"turned true", "turned false", "converted true", "free true", "persistent=1", "persistent=2", "cluster=2", "splitk=2",
	} {
		if ran["wgmma "+want] < 2 {
			t.Errorf("only %d plans by warpgroups have %s", ran["wgmma "+want], want)
		}
	}
}

// The price of dots of blocks whose results are scaled and summed is near that of a product
// whose operands are scaled, of which one has fewer scales; mma.sync takes three times as long.
func TestScaledSumPrice(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	for _, turned := range []bool{false, true} {
		c := blockSumText{
			raw: "f8e4m3fn", to: "f8e4m3fn", m: 4096, n: 4096, blocks: 32, depth: 128, turned: turned, scales: "both",
		}
		all, err := feasibleCandidates(t.Context(), kerneltest.Program(t, c.text()), s, noTF32)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %.0f µs", all[0].plan(), all[0].seconds*1e6)
		if all[0].unit != unitWGMMA || all[0].seconds > 170e-6 || fmt.Sprint(all[0].tiling[2:]) != "[1 128]" {
			t.Errorf("%v: %.0f µs", all[0].plan(), all[0].seconds*1e6)
		}
	}
}
