package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// Operands of f32 are rounded to tf32 by the tensor copies: 1 + 3·2^-12 is 1 + 2^-10,
// where tensor cores alone would take it for 1.
func TestWarpgroupsRoundToTF32(t *testing.T) {
	p := kerneltest.Program(t, matmul("f32", "f32", "nt", 64, 64, 64))
	b := New(simulatedSession(t, "sm_90a"))
	b.AllowTF32()
	k, err := b.Compile(t.Context(), p, kernels.Plan{Tiles: symtile.Tiling{64, 64, 32}}.With(kernels.TF32, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	in := make([]kernels.Buffer, 2)
	for i, v := range []float64{1 + 0x3p-12, 1} {
		in[i], _ = kernels.NewBuffer(p.Fusion.Params[i].Shape)
		for j := range int64(64 * 64) {
			in[i].SetFloat(j, v)
		}
	}
	out, _ := kernels.NewBuffer(p.Fusion.Root.Shape)
	if _, err := k.Run(t.Context(), in, []kernels.Buffer{out}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.Float(0), 64*(1+0x1p-10); got != want {
		t.Errorf("64 products of 1 + 3·2^-12 are %v, want %v", got, want)
	}
}

// Two warpgroups divide a tile by its rows: each column is read once for every 64 rows,
// so that 64x256 reads 80 bytes a clock where 128x128 reads 96.
func TestWarpgroupsAreTall(t *testing.T) {
	for _, x := range [][2]int64{{128, 256}, {256, 128}, {128, 128}} {
		d := &groupDot{product: &product{m: x[0], c: x[1]}}
		if !d.divide(2) || d.gm != 2 || d.cols != x[1] {
			t.Errorf("%v: %dx%d warpgroups of %dx%d", x, d.gm, d.gn, d.rows, d.cols)
		}
	}
}

// The barriers of a ring are made known without fences of all memory (D8): a fence.proxy of
// all spaces, or a releasing barrier of the cluster, is a MEMBAR of the GPU before the
// first copy.
func TestPrologueHasNarrowFences(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	p := kerneltest.Program(t, matmul("bf16", "f32", "nt", 512, 256, 256))
	for _, words := range []string{"128,64,64 stages=3", "128,64,64 stages=3 cluster=2"} {
		plan, err := kernels.ParsePlan(words)
		if err != nil {
			t.Fatal(err)
		}
		text, err := PTX(p, plan, s)
		if err != nil {
			t.Fatal(err)
		}
		prologue, _, _ := strings.Cut(text, "cp.async.bulk.tensor")
		if !strings.Contains(prologue, "fence.mbarrier_init.release.cluster") {
			t.Errorf("%s: no fence before the first copy", words)
		}
		for _, wide := range []string{"fence.proxy.async;", "fence.acq_rel", "membar", "barrier.cluster.arrive.release", "barrier.cluster.arrive.aligned"} {
			if strings.Contains(prologue, wide) {
				t.Errorf("%s: %s before the first copy", words, wide)
			}
		}
	}
}

// Between the products of a tile and their end nothing is said to other blocks with an
// order of their memory (D1), and the barrier that gives the turn away is not an aligned
// one, before which ptxas serialises products (D0).
func TestLoopsHaveNoWideFences(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	p := kerneltest.Program(t, matmul("bf16", "f32", "nt", 512, 256, 256))
	for _, words := range []string{"128,64,64 stages=3 cluster=2", "64,64,64 stages=3 persistent=2 warps=4"} {
		plan, err := kernels.ParsePlan(words)
		if err != nil {
			t.Fatal(err)
		}
		text, err := PTX(p, plan, s)
		if err != nil {
			t.Fatal(err)
		}
		_, loop, _ := strings.Cut(text, "wgmma.fence")
		loop, _, found := strings.Cut(loop, "wgmma.wait_group.sync.aligned 0;")
		if !found {
			t.Fatalf("%s has no end of its products", words)
		}
		loop = strings.ReplaceAll(loop, "wgmma.fence", "")
		for _, wide := range []string{".acquire.cluster", ".release.cluster", "bar.arrive", "fence."} {
			if strings.Contains(loop, wide) {
				t.Errorf("%s: %s while products run", words, wide)
			}
		}
	}
}

// The loop of warpgroups has an iteration for each slot, and those that are left behind it, where
// tiles begin at slot 0 and a producer fills the slots; otherwise one.
func TestRingsAreUnrolled(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	p := kerneltest.Program(t, matmul("bf16", "f32", "nt", 512, 256, 512))
	for words, waits := range map[string]int{
		"128,64,64 stages=4":              4,
		"128,64,64 stages=3":              5,
		"128,64,64 stages=4 producer=0":   1,
		"128,64,64 stages=4 persistent=1": 4,
		"128,64,64 stages=3 persistent=1": 1,
	} {
		plan, err := kernels.ParsePlan(words)
		if err != nil {
			t.Fatal(err)
		}
		text, err := PTX(p, plan, s)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text, "bra $FULL"); n != waits {
			t.Errorf("%s: %d waits for a slot, want %d", words, n, waits)
		}
	}
}

// Products of f8 need PTX 8.4 where warps multiply them, and 8.0, which drivers of CUDA
// 12.0 read, where warpgroups do (D11).
func TestVersionOfF8(t *testing.T) {
	p := kerneltest.Program(t, matmul("f8e4m3fn", "f32", "nt", 64, 64, 64))
	for _, c := range []struct{ target, plan, version string }{
		{"H100", "64,64,64 warps=4", ".version 8.0"},
		{"H100", "64,64,64 warps=2", ".version 8.4"},
		{"sm_89", "64,64,64 warps=4", ".version 8.4"},
	} {
		s, err := device.ParseSpec(c.target)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := kernels.ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		text, err := PTX(p, plan, s)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, c.version+"\n") {
			t.Errorf("%s for %s: %.40q, not %s", c.plan, c.target, text, c.version)
		}
	}
}

// An mma.sync of f8 is two of f16 and conversions on devices with wgmma, so that a
// product of f8 which wgmma cannot read is priced slower than one of bf16, and ptxas
// makes HMMA of it.
func TestF8ByWarpsIsPriced(t *testing.T) {
	seconds := map[string]float64{}
	for _, d := range []string{"f8e4m3fn", "bf16"} {
		p := kerneltest.Program(t, matmul(d, "f32", "nn", 4096, 4096, 4096))
		s, err := device.ParseSpec("H100")
		if err != nil {
			t.Fatal(err)
		}
		m, err := newEstimate(p, s)
		if err != nil {
			t.Fatal(err)
		}
		// Two warps are no warpgroup.
		k := defaultKnobs
		k.warps = 2
		tiles := symtile.Tiling{64, 64, 64}
		c := m.candidate(tiles, m.set(tiles), k)
		// What the tensor cores and the arithmetic units take.
		seconds[d] = c.terms[1] + c.terms[2]
	}
	if seconds["f8e4m3fn"] < 1.3*seconds["bf16"] {
		t.Errorf("by mma.sync f8 takes %v and bf16 %v", seconds["f8e4m3fn"], seconds["bf16"])
	}
}

// Products that warpgroups compute agree with the reference: all layouts,
// extents that are no multiples of the tiles, rings of one slot and more.
func TestWarpgroupDots(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	pick := func(list ...int64) int64 { return list[rng.IntN(len(list))] }
	dev := newSimulator("sm_90a")
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := New(s)
	b.AllowTF32()
	ran, types := 0, map[string]int{}
	for range 60 {
		d := [][3]string{
			{"f16", "f16", "f32"}, {"bf16", "bf16", "f32"},
			{"bf16", "bf16", "bf16"}, {"s8", "s8", "s32"},
			{"u8", "u8", "s32"}, {"f8e4m3fn", "f8e4m3fn", "f32"},
			{"f8e4m3fn", "f8e5m2", "f32"}, {"f32", "f32", "f32"},
		}[rng.IntN(8)]
		small := strings.Contains(d[0], "8") || d[0] == "f32"
		// wgmma has those of 16 bits
		turned := func() bool {
			return rng.IntN(2) == 0 && (!small || rng.IntN(4) == 0)
		}
		m := pick(64, 96, 128, 200)
		n := pick(16, 48, 64, 136, 256)
		k := pick(16, 32, 64, 80, 96, 128, 200)
		lhs := fmt.Sprintf("%d,%d", m, k)
		rhs := fmt.Sprintf("%d,%d", k, n)
		l := 1
		r := 0
		if turned() {
			lhs, l = fmt.Sprintf("%d,%d", k, m), 0
		}
		if !turned() && (small || rng.IntN(2) == 0) {
			rhs, r = fmt.Sprintf("%d,%d", n, k), 1
		}
		text := fmt.Sprintf(
			"a = %s[%s] parameter(0)\nb = %s[%s] parameter(1)\nc = %s[%d] parameter(2)\np = %s[%d,%d] dot(a, b), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}\nw = %s[%d,%d] broadcast(c), dimensions={1}\nr = %s[%d,%d] add(p, w)\n",
			d[0], lhs, d[1], rhs, d[2], n,
			d[2], m, n, l, r, d[2], m, n,
			d[2], m, n,
		)
		p := kerneltest.Program(t, text)
		v := kerneltest.Verifier(t, p, 3)
		for range 3 {
			tiling := symtile.Tiling{
				min(m, pick(64, 128, 256)),
				min(n, pick(16, 48, 64, 128, 256)),
				min(k, pick(16, 32, 48, 64, 128)),
			}
			plan := kernels.Plan{Tiles: tiling}.With("warps", pick(4, 8)).With(
				"stages", pick(1, 2, 3, 4, 6, 8),
			).With("producer", pick(0, 1, 4)).With(
				"epilogue", pick(0, 1),
			)
			if d[0] == "f32" {
				plan = plan.With(kernels.TF32, 1)
			}
			if strings.HasPrefix(d[0], "f8") {
				plan = plan.With("promote", pick(0, 1))
			}
			dev.last.WGMMA = 0
			if p.Check(tiling) == nil &&
				verify(t, b, v, p, plan) &&
				dev.last.WGMMA > 0 {
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
	for _, d := range []string{"f16", "bf16", "s8", "u8", "f8e4m3fn", "f32"} {
		if types[d] < 4 {
			t.Errorf("only %d plans of %s use wgmma", types[d], d)
		}
	}
}

// Sums of 14 bits of 8-bit floats over 4,096 of k are off by 2 % (DeepSeek-V3 Technical
// Report, 2024, §3.3.2); those that are promoted every 128 are not.
func TestPromotedSums(t *testing.T) {
	const m, n, k = 64, 16, 4096
	p := kerneltest.Program(t, fmt.Sprintf(
		"a = f8e4m3fn[%d,%d] parameter(0)\nb = f8e4m3fn[%d,%d] parameter(1)\np = f32[%d,%d] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n",
		m, k, n, k, m, n))
	rng := rand.New(rand.NewPCG(3, 1))
	random := func(rows int) (kernels.Buffer, []float64) {
		b := make([]byte, rows*k)
		values := make([]float64, rows*k)
		for i := range b {
			// From 1/2 to 15/16: positive factors, so that sums grow.
			x := rng.IntN(8)
			b[i] = 0x30 + byte(x)
			values[i] = float64(8+x) / 16
		}
		return kernels.Buffer{
			Shape: hlo.Shape{DType: hlo.F8E4M3FN, Dims: []int64{int64(rows), k}}, Data: b,
		}, values
	}
	a, x := random(m)
	b, y := random(n)
	short := newSimulator("sm_90a")
	short.options.ShortSums = true
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return short, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	backend := New(s)
	worst := map[int64]float64{}
	for _, promote := range []int64{0, 1} {
		kernel, err := backend.Compile(t.Context(), p, kernels.Plan{Tiles: symtile.Tiling{m, n, 128}}.With("promote", promote))
		if err != nil {
			t.Fatal(err)
		}
		out := []kernels.Buffer{{Shape: hlo.Shape{DType: hlo.F32, Dims: []int64{m, n}}, Data: make([]byte, 4*m*n)}}
		if _, err := kernel.Run(t.Context(), []kernels.Buffer{a, b}, out); err != nil {
			t.Fatal(err)
		}
		for i := range m {
			for j := range n {
				want := 0.0
				for q := range k {
					want += x[i*k+q] * y[j*k+q]
				}
				got := math.Float32frombits(binary.LittleEndian.Uint32(out[0].Data[4*(i*n+j):]))
				worst[promote] = max(worst[promote], math.Abs(float64(got)/want-1))
			}
		}
	}
	t.Logf("relative errors %.2g without, %.2g with", worst[0], worst[1])
	if worst[0] < 0.001 || worst[0] > 0.03 || worst[1] > 0.001 {
		t.Errorf("relative errors %.2g without and %.2g with", worst[0], worst[1])
	}
	_, err = backend.Compile(t.Context(), kerneltest.Program(t, "a = f32[64,64] parameter(0)\nb = f32[64,64] parameter(1)\np = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"),
		kernels.Plan{Tiles: symtile.Tiling{64, 64, 64}}.With("promote", 1))
	if err == nil || !strings.Contains(err.Error(), "promote=1 is for products of 8-bit floats by warpgroups, of 64 sums") {
		t.Errorf("promoted sums of f32: %v", err)
	}
}

// A producer warpgroup gives registers to the others; never more than the block
// has, and none where a thread has all it can have from the start.
func TestWarpgroupRegisters(t *testing.T) {
	sheet := newSimulator("sm_90a").Spec()
	for _, c := range []struct {
		groups int64
		extra  int
		want   int
	}{{1, 128, 0}, {2, 128, 232}, {
		4, 128, 104,
	}, {2, 32, 0}, {7, 128, 64}} {
		r := &ring{
			e: &emitter{spec: sheet, threads: c.groups * device.WarpgroupThreads, knobs: knobs{
				producer: c.extra / device.WarpThreads,
			}},
		}
		if got := r.registers(); got != c.want {
			t.Errorf("%d warpgroups and %d threads beside: %d registers, not %d", c.groups, c.extra, got, c.want)
		}
		if n := (int(c.groups)*c.want + device.ProducerRegisters) * device.WarpgroupThreads; n > sheet.BlockRegisters {
			t.Errorf("%d warpgroups: %d registers of a block", c.groups, n)
		}
	}
}

// Blocks of clusters that bring operands to each other, and blocks that go from
// tile to tile, give the reference's results too.
func TestClustersAndPersistentBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	pick := func(list ...int64) int64 { return list[rng.IntN(len(list))] }
	dev := newSimulator("sm_90a")
	dev.spec.SMs = 1 // so that blocks have several tiles
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := New(s)
	ran := map[string]int{}
	for range 30 {
		m := pick(256, 500, 512)
		n := pick(64, 128, 136, 256)
		k := pick(32, 80, 128, 200)
		text, batched := gemm(rng, m, n, k)
		p := kerneltest.Program(t, text)
		v := kerneltest.Verifier(t, p, 3)
		for range 4 {
			tiling := symtile.Tiling{
				pick(64, 128),
				min(n, pick(16, 32, 64)),
				min(k, pick(16, 32, 64)),
			}
			if batched {
				tiling = append(symtile.Tiling{1}, tiling...)
			}
			cluster := pick(1, 2, 4)
			plan := kernels.Plan{Tiles: tiling}.With("warps", pick(4, 4, 8)).With(
				"stages", pick(1, 2, 3, 4, 7),
			).With("producer", pick(1, 2, 4)).With("epilogue", pick(0, 1, 2, 2)).
				With("group", pick(1, cluster, cluster, 4)).With("cluster", cluster).With(
				"persistent", pick(0, 1, 2),
			)
			if p.Check(tiling) == nil && verify(t, b, v, p, plan) {
				ran[fmt.Sprint("cluster=", plan.Knob("cluster", 1), " persistent=", plan.Knob("persistent", 0))]++
				ran[fmt.Sprint("epilogue=", plan.Knob("epilogue", 0), " persistent=", plan.Knob("persistent", 0))]++
			}
			if t.Failed() {
				t.Log(text)
				return
			}
		}
	}
	t.Log(ran)
	for _, c := range []string{"cluster=2 persistent=0", "cluster=4 persistent=0", "cluster=1 persistent=1", "cluster=2 persistent=1", "cluster=4 persistent=1", "cluster=1 persistent=2", "cluster=2 persistent=2",
		"epilogue=2 persistent=0", "epilogue=2 persistent=1", "epilogue=2 persistent=2"} {
		if ran[c] < 3 {
			t.Errorf("only %d plans with %s", ran[c], c)
		}
	}
}

// A crowded driver has no room for clusters.
type crowded struct{ *simulator }

func (crowded) Clusters(device.Launch) (int, error) { return 0, nil }

// Clusters that the device never holds are refused, and how many blocks go from
// tile to tile is what the driver says.
func TestResidentClusters(t *testing.T) {
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return crowded{newSimulator("sm_90a")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p := kerneltest.Program(t, "a = bf16[1024,128] parameter(0)\nb = bf16[128,64] parameter(1)\np = bf16[1024,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n")
	plan := kernels.Plan{
		Tiles: symtile.Tiling{64, 64, 32},
	}.With("group", 4).With("cluster", 2)
	var no *kernels.Rejected
	if _, err := New(s).Compile(
		t.Context(), p, plan,
	); !errors.As(err, &no) || !strings.Contains(no.Reason, "never holds a cluster of 2 blocks of 160 threads") {
		t.Errorf("%v", err)
	}
	h100, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	f := takes{Registers: 168}
	for cluster, want := range map[int]int{2: 66, 4: 29, 8: 14} {
		l := device.Launch{
			Function:    f,
			Block:       device.Dim3{X: 384},
			Cluster:     device.Dim3{X: cluster},
			SharedBytes: 200 << 10,
		}
		if got := h100.Clusters(l); got != want {
			t.Errorf("%d clusters of %d, not %d", got, cluster, want)
		}
		step := device.Step{Block: l.Block, Cluster: l.Cluster}
		if fillDevice(
			&step, device.Loaded{Resources: device.Resources(f), Clusters: want}, h100, 1000,
		); step.Grid.X != want*cluster {
			t.Errorf("%d blocks in clusters of %d", step.Grid.X, cluster)
		}
	}
}

// gemm writes a product of bf16 of a random layout, a third of them three, with a
// row added to each.
func gemm(rng *rand.Rand, m, n, k int64) (text string, batched bool) {
	lhs := fmt.Sprintf("%d,%d", m, k)
	rhs := fmt.Sprintf("%d,%d", k, n)
	l := 1
	r := 0
	if rng.IntN(2) == 0 {
		lhs, l = fmt.Sprintf("%d,%d", k, m), 0
	}
	if rng.IntN(2) == 0 {
		rhs, r = fmt.Sprintf("%d,%d", n, k), 1
	}
	batch, attrs, column := "", "", 1
	if batched = rng.IntN(3) == 0; batched {
		batch, attrs, l, r, column = "3,", ", lhs_batch_dims={0}, rhs_batch_dims={0}", l+1, r+1, 2
	}
	out := fmt.Sprintf("bf16[%s%d,%d]", batch, m, n)
	return fmt.Sprintf("a = bf16[%s%s] parameter(0)\nb = bf16[%s%s] parameter(1)\nc = bf16[%d] parameter(2)\np = %s dot(a, b), lhs_contracting_dims={%d}, rhs_contracting_dims={%d}%s\nw = %s broadcast(c), dimensions={%d}\nr = %s add(p, w)\n",
		batch, lhs, batch, rhs, n, out, l, r, attrs, out, column, out), batched
}

// What goes wrong when blocks of a cluster, or a producer and its warpgroups, do
// not wait for each other is found.
func TestRingMutants(t *testing.T) {
	dev := newSimulator("sm_90a")
	dev.spec.SMs = 1
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := New(s)
	p := kerneltest.Program(t, "a = bf16[1024,128] parameter(0)\nb = bf16[128,64] parameter(1)\np = bf16[1024,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n")
	v := kerneltest.Verifier(t, p, 3)
	plan := kernels.Plan{
		Tiles: symtile.Tiling{64, 64, 32},
	}.With("warps", 4).With("stages", 3).With("group", 4).With("epilogue", 1)
	// Two turns of two slots end with signals to the other block, which nothing waits for; of
	// three slots, which four iterations go round once, the one that is filled again is told of.
	cluster := plan.With("cluster", 2)
	walk := plan.With("persistent", 1)
	turns := plan.With("persistent", pingpong)
	for _, m := range []struct {
		name     string
		plan     kernels.Plan
		old, new string
	}{
		{"nothing", cluster.With("persistent", 1), `$`, ``},
		{"multicast to one block", cluster, `mov\.b16 (%h\d+), 3;`, `mov.b16 $1, 1;`},
		{"multicast out of the cluster", cluster, `mov\.b16 (%h\d+), 3;`, `mov.b16 $1, 7;`},
		{"no cluster barrier before copies", cluster, `barrier\.cluster\.arrive\.relaxed\.aligned;\s+barrier\.cluster\.wait\.acquire\.aligned;`, `bar.sync 0;`},
		{"no cluster barrier at the end", cluster.With("stages", 2), `(?s)\s+barrier\.cluster\.arrive\.release\.aligned;(\s+bar\.sync.*?)\s+barrier\.cluster\.wait\.acquire\.aligned;`, `$1`},
		{"empty after the arrivals of one block", cluster, `(mbarrier\.init\.shared\.b64 \[%r\d+(\+\d+)?\]), 8;`, `$1, 4;`},
		{"empty one arrival early", cluster, `(mbarrier\.init\.shared\.b64 \[%r\d+(\+\d+)?\]), 8;`, `$1, 7;`},
		{"given back to one block", cluster, `setp\.lt\.s32 (%p\d+), (%r\d+), 2;`, `setp.lt.s32 $1, $2, 1;`},
		{"given back to the first block only", cluster, `mapa\.shared::cluster\.u32 (%r\d+), (%r\d+), %r\d+;`, `mapa.shared::cluster.u32 $1, $2, 0;`},
		{"the same rows for all", cluster, `mad\.lo\.s32 (%r\d+), (%r\d+), 16, (%r\d+);`, `mov.b32 $1, $3;`},
		{"to the same place for all", cluster, `mad\.lo\.s32 (%r\d+), (%r\d+), 2048, (%r\d+);`, `mov.b32 $1, $3;`},
		{"half the bytes expected", cluster, `(expect_tx\.shared\.b64 _, \[%r\d+\]), 8192;`, `$1, 6144;`},
		{"full from the start", walk, `(mov\.b32 %r\d+, %r\d+;\s+mov\.b32 %r\d+), 0;`, `$1, 1;`},
		{"never empty", walk, `(mov\.b32 %r\d+, %r\d+;\s+mov\.b32 %r\d+), 1;`, `$1, 0;`},
		{"parity stays", walk, `xor\.b32 (%r\d+), %r\d+, 1;`, `mov.b32 $1, $1;`},
		{"empty one arrival early", walk, `(mbarrier\.init\.shared\.b64 \[%r\d+(\+\d+)?\]), 4;`, `$1, 3;`},
		{"the last slot kept", walk, `(wgmma\.wait_group\.sync\.aligned 0;)\s+@%p\d+ mbarrier\.arrive\.shared\.b64 _, \[%r\d+\+24\];`, `$1`},
		{"the last slot given back early", walk, `(wgmma\.wait_group\.sync\.aligned 0;)(\s+)(@%p\d+ mbarrier\.arrive\.shared\.b64 _, \[%r\d+\+24\];)`, `$3$2$1`},
		{"results overwritten", walk.With("stages", 4), `\s+bar\.sync 0, 128;(\s+mov\.u32 %r\d+, %nctaid\.x;)`, `$1`},
		{"nothing", turns, `$`, ``},
		{"nothing", turns.With("cluster", 2), `$`, ``},
		{"nobody has the first turn", turns, `\s+@%p\d+ (?:bar|barrier)\.arrive %r\d+, 256;(\s+and)`, `$1`},
		{"the turn is not passed", turns, `\s+@%p\d+ (?:bar|barrier)\.arrive %r\d+, 256;(\s+wgmma)`, `$1`},
		{"the turn passed to oneself", turns, `sub\.s32 (%r\d+), %r\d+, (%r\d+);(\s+mad)`, `add.s32 $1, $2, 3;$3`},
		{"both begin in the first slot", turns, `\s+mad\.lo\.s32 (%r\d+), %r\d+, 8, %r\d+;`, ``},
		{"both begin at the same offset", turns, `\s+mad\.lo\.s32 (%r\d+), %r\d+, 512, %r\d+;`, ``},
		{"both begin with the same parity", turns, `\s+mov\.b32 %r\d+, %r\d+;(\s+mov\.b32 %r\d+, 0;\s+setp)`, `$1`},
		{"slots of the other not skipped", turns, `\s+add\.s32 %r\d+, %r\d+, 8;(\s+add\.s32 %r\d+, %r\d+, 512;\s+setp\.ge\.s32 %p\d+, %r\d+, %r\d+;\s+@%p\d+ sub)`, `$1`},
		{"offset of the other not skipped", turns, `\s+add\.s32 %r\d+, %r\d+, 512;(\s+setp\.ge\.s32 %p\d+, %r\d+, %r\d+;\s+@%p\d+ sub)`, `$1`},
		{"not round the ring", turns, `\s+@%p\d+ sub\.s32 %r\d+, %r\d+, 24;`, ``},
		{"the parity of the other's tile", turns, `(@%p\d+ xor\.b32 %r\d+, %r\d+, 1;)\s+xor\.b32 %r\d+, %r\d+, 1;`, `$1`},
		{"both begin with the same tile", turns, `\s+mad\.lo\.s32 (%r\d+), %r\d+, %r\d+, %r\d+;(\s+setp\.ge)`, `$2`},
		{"tiles done twice", turns, `shl\.b32 (%r\d+), (%r\d+), 1;(\s+add\.s32 %r\d+, %r\d+, %r\d+;\s+setp\.lt\.s32 %p\d+, %r\d+, 16;\s+@%p\d+ bra)`, `mov.b32 $1, $2;$3`},
		{"results in the same place", turns, `mad\.lo\.s32 (%r\d+), %r\d+, 9200, (%r\d+);`, `mov.b32 $1, $2;`},
		{"results of both behind one barrier", turns, `bar\.sync %r\d+, 128;`, `bar.sync 1, 256;`},
		{"results read early", walk, `\s+bar\.sync 0, 128;(\s+// output)`, `$1`},
	} {
		k, err := b.Compile(t.Context(), p, m.plan)
		if err != nil {
			t.Fatal(err)
		}
		work := *k.(*kernel).work
		text := regexp.MustCompile(m.old).ReplaceAllString(work.PTX, m.new)
		if text == work.PTX && m.new != "" {
			t.Errorf("%s: nothing is changed in\n%s", m.name, text)
		}
		work.PTX = text
		found := v.Verify(t.Context(), &kernel{
			session: b.session,
			work:    &work,
			in:      2,
			out:     1,
		})
		if (found == nil) != (m.name == "nothing") {
			t.Errorf("%s: found %v in\n%s", m.name, found, text)
		}
		first, _, _ := strings.Cut(fmt.Sprint(found), ";")
		t.Logf("%s: %.160s", m.name, first)
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A result that is narrower than its product is staged in its own type, for warps and
// warpgroups, in blocks with one tile and in persistent ones; a barrier that is missing
// is found.
func TestNarrowEpilogue(t *testing.T) {
	text := func(sum, out string) string {
		return fmt.Sprintf("a = bf16[256,128] parameter(0)\nb = bf16[128,64] parameter(1)\np = %[1]s[256,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nr = %[2]s[256,64] convert(p)\n", sum, out)
	}
	plan := kernels.Plan{
		Tiles: symtile.Tiling{64, 64, 32},
	}.With("warps", 4).With("stages", 3).With("epilogue", 1)
	for _, x := range []struct {
		target string
		plan   kernels.Plan
	}{
		{"sm_80", plan}, {"sm_90a", plan},
		{"sm_90a", plan.With("persistent", 1)},
		{"sm_90a", plan.With("persistent", pingpong)},
	} {
		s, err := device.ParseSpec(x.target)
		if err != nil {
			t.Fatal(err)
		}
		bytes := map[string]int{}
		for _, sum := range []string{"f32", "bf16"} {
			p := kerneltest.Program(t, text(sum, "bf16"))
			f, err := FootprintOf(p, x.plan, s)
			if err != nil {
				t.Fatal(err)
			}
			bytes[sum] = f.Launched[0].Shared
		}
		if bytes["f32"] != bytes["bf16"] {
			t.Errorf("%s on %s: %v bytes of shared memory", x.plan, x.target, bytes)
		}
		p := kerneltest.Program(t, text("f32", "bf16"))
		b := New(simulatedSession(t, x.target))
		v := kerneltest.Verifier(t, p, 3)
		k, err := b.Compile(t.Context(), p, x.plan)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(t.Context(), k); err != nil {
			t.Errorf("%s on %s: %v", x.plan, x.target, err)
		}
		work := *k.(*kernel).work
		at := strings.LastIndex(work.PTX, "ld.shared")
		bar := strings.LastIndex(work.PTX[:at], "\tbar.sync")
		end := bar + strings.Index(work.PTX[bar:], "\n") + 1
		work.PTX = work.PTX[:bar] + work.PTX[end:]
		if v.Verify(t.Context(), &kernel{session: b.session, work: &work, in: 2, out: 1}) == nil {
			t.Errorf("%s on %s: results are read before they are there, and it is not found", x.plan, x.target)
		}
		k.Close()
	}
}

// definedInStage lists the lines between wgmma.fence and the next wait that write an
// accumulator by another instruction than wgmma: ptxas serialises such products (C7515).
func definedInStage(text string) (all []string) {
	accumulators := map[string]bool{}
	product := regexp.MustCompile(`wgmma\.mma_async[^{]*\{([^}]*)\}`)
	for _, m := range product.FindAllStringSubmatch(text, -1) {
		for _, r := range strings.Split(m[1], ", ") {
			accumulators[r] = true
		}
	}
	written := regexp.MustCompile(`^\s*(?:@!?%p\d+ )?[a-z][\w.:]* (%[a-z]+\d+),`)
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.Contains(line, "wgmma.fence"):
			inside = true
		case strings.Contains(line, "wgmma.wait_group"):
			inside = false
		}
		m := written.FindStringSubmatch(line)
		if inside && m != nil && accumulators[m[1]] && !strings.Contains(line, "wgmma") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// Accumulators are written by wgmma alone while products run.
func TestAccumulatorsInStages(t *testing.T) {
	p := kerneltest.Program(t, matmul("bf16", "bf16", "nn", 256, 256, 256))
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	plan := kernels.Plan{Tiles: symtile.Tiling{64, 64, 64}}.With("stages", 3)
	for _, x := range []kernels.Plan{
		plan, plan.With("producer", 0), plan.With("cluster", 2), plan.With("persistent", 1),
		plan.With("persistent", pingpong), plan.With("producer", 4), plan.With("epilogue", 1),
		plan.With("epilogue", 2), plan.With("epilogue", 2).With("persistent", pingpong),
	} {
		text, err := PTX(p, x, s)
		if err != nil {
			t.Fatal(err)
		}
		if found := definedInStage(text); len(found) > 0 {
			t.Errorf("%s: %s", x, found)
		}
		// The same kernel with an accumulator cleared behind the fence.
		fence := "wgmma.fence.sync.aligned;\n"
		acc := regexp.MustCompile(`wgmma\.mma_async[^{]*\{(%f\d+)`).FindStringSubmatch(text)[1]
		broken := strings.Replace(text, fence, fence+"\tmov.f32 "+acc+", 0f00000000;\n", 1)
		if len(definedInStage(broken)) != 1 {
			t.Errorf("%s: an accumulator that is cleared in a stage is not found", x)
		}
	}
}

// takes are the resources of a function that is not there.
type takes device.Resources

func (f takes) Resources() device.Resources { return device.Resources(f) }
