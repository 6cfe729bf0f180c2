package gpu

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/index"
)

// splits are how many pieces the loops of a tiling can be in; none where there is
// no loop.
func splits(p *symtile.Program, t symtile.Tiling) (all []int64) {
	q, err := p.At(t)
	if err != nil {
		return nil
	}
	for n := int64(2); n <= 40; n++ {
		if _, err := phasesOf(q, knobs{splitk: int(n)}); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// Plans whose tiles are shared by several blocks give the reference's results.
func TestSplitOnSimulator(t *testing.T) {
	for _, target := range []string{"sm_80", "sm_90a"} {
		dev := newSimulator(target)
		s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
			return dev, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		b, rng, ran := New(s), rand.New(rand.NewPCG(9, 9)), 0
		chk := func(t *testing.T, p *symtile.Program, v *check.Verifier) {
			tilings := slices.DeleteFunc(slices.Collect(p.Space.Tilings()), func(x symtile.Tiling) bool {
				return tiles(p, x) > 128
			})
			for done, try := 0, 0; done < 1 && try < 10 && len(tilings) > 0; try++ {
				plan := kernels.Plan{Tiles: tilings[rng.IntN(len(tilings))]}.With(
					"warps", 1<<rng.IntN(4),
				).With("stages", 1+rng.Int64N(3)).With(
					"epilogue", rng.Int64N(2),
				)
				if target == "sm_90a" {
					plan = plan.With("pdl", int64(ran%2))
				}
				legal := splits(p, plan.Tiles)
				if len(legal) > 0 &&
					verify(t, b, v, p, plan.With(
						"splitk", legal[rng.IntN(len(legal))],
					)) {
					done++
					ran++
				}
			}
		}
		kerneltest.EachProgram(t, "testdata/ordered.txt", chk)
		kerneltest.EachProgram(t, "testdata/split.txt", chk)
		for range 12 {
			p := kerneltest.Program(t, randomDot(rng))
			v := kerneltest.Verifier(t, p, 3)
			chk(t, p, v)
		}
		forCorpus(t, func(t *testing.T, p *symtile.Program) {
			v := kerneltest.Verifier(t, p, 1)
			chk(t, p, v)
		})
		t.Logf("%s: %d plans", target, ran)
		if ran < 35 {
			t.Errorf("%s: only %d plans ran", target, ran)
		}
	}
}

// tiles of all dimensions.
func tiles(p *symtile.Program, t symtile.Tiling) int64 {
	n := int64(1)
	for k, d := range p.Space.Dims {
		n *= index.CeilDiv(max(1, d.Extent), t[k])
	}
	return n
}

const (
	skinny = "a = bf16[128,1024] parameter(0)\nb = bf16[1024,64] parameter(1)\nc = bf16[64] parameter(2)\n" +
		"p = bf16[128,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\nd = bf16[128,64] broadcast(c), dimensions={1}\nr = bf16[128,64] add(p, d)\n"
	vast     = "a = f32[65536,4096] parameter(0)\nb = f32[4096,65536] parameter(1)\np = f32[65536,65536] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
	toScalar = "x = f32[4096] parameter(0)\nz = f32[] constant(5)\nr = f32[] reduce(x, z), dimensions={0}, to_apply=add\n"
	softmax  = "x = f32[8,256] parameter(0)\nlow = f32[] constant(-inf)\nm = f32[8] reduce(x, low), dimensions={1}, to_apply=max\nmb = f32[8,256] broadcast(m), dimensions={0}\n" +
		"e = f32[8,256] subtract(x, mb)\nz = f32[] constant(0)\ns = f32[8] reduce(e, z), dimensions={1}, to_apply=add\n"
)

// Products by warpgroups whose blocks share a tile do the same work, in more
// blocks: as many wgmma, the same bytes brought; the second kernel reads what
// the first has left.
func TestSplitCounters(t *testing.T) {
	dev := newSimulator("sm_90a")
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, b := kerneltest.Program(t, skinny), New(s)
	v := kerneltest.Verifier(t, p, 3)
	for _, words := range []string{"128,64,64 stages=3", "64,64,64 stages=4 producer=4 warps=4", "64,64,64 stages=2 producer=0", "64,32,32 stages=1 epilogue=1", "64,64,64 stages=2 cluster=2"} {
		plan, err := kernels.ParsePlan(words)
		if err != nil {
			t.Fatal(err)
		}
		dev.ran = nil
		verify(t, b, v, p, plan)
		alone := dev.ran[0]
		for _, n := range []int64{2, 3, 7, 8, 11, 16} {
			dev.ran = nil
			if !verify(t, b, v, p, plan.With("splitk", n)) ||
				len(dev.ran) < 2 {
				t.Fatalf("%s splitk=%d did not run", plan, n)
			}
			pieces, rest := dev.ran[0], dev.ran[1]
			if pieces.WGMMA != alone.WGMMA || alone.WGMMA == 0 || pieces.BulkBytes != alone.BulkBytes || rest.WGMMA != 0 {
				t.Errorf("%s splitk=%d: %d wgmma of %d bytes and %d, without %d of %d", plan, n, pieces.WGMMA, pieces.BulkBytes, rest.WGMMA, alone.WGMMA, alone.BulkBytes)
			}
			left := n * 128 * 64 * 4
			if pieces.GlobalStore.Bytes != left || rest.GlobalLoad.Bytes < left || rest.GlobalStore.Bytes != 128*64*2 {
				t.Errorf("%s splitk=%d: %d bytes left, %d read, %d stored", plan, n, pieces.GlobalStore.Bytes, rest.GlobalLoad.Bytes, rest.GlobalStore.Bytes)
			}
		}
	}
}

// A piece that is dropped, done twice, or not added, is found by the verification.
func TestSplitMutants(t *testing.T) {
	number := regexp.MustCompile(`mov.u32 (%r\d+), %ctaid.y;`)
	lengths := regexp.MustCompile(`selp.b32 (%r\d+), (\d+), (\d+), %p\d+;`)
	mutants := map[string]func(w *device.Executable){
		"all are as long as the longest": func(w *device.Executable) { w.PTX = lengths.ReplaceAllString(w.PTX, "mov.b32 $1, $2;") },
		"all are as long as the shortest": func(w *device.Executable) {
			w.PTX = lengths.ReplaceAllString(w.PTX, "mov.b32 $1, $3;")
		},
		"a piece is not done": func(w *device.Executable) { w.Steps[0].Grid.Y-- },
		"one is done twice": func(w *device.Executable) {
			w.PTX = number.ReplaceAllString(w.PTX, "mov.u32 $1, %ctaid.y;\n\tmin.u32 $1, $1, 2;")
		},
		"nothing is joined": func(w *device.Executable) { w.Steps = w.Steps[:1] },
		"the first is not added": func(w *device.Executable) {
			const add = "\tadd.rn.f32 %f0, %f0, "
			at := strings.LastIndex(w.PTX, add)
			w.PTX = w.PTX[:at] + "\tmov.f32 %f0, " + w.PTX[at+len(add):]
		},
	}
	p := kerneltest.Program(t, skinny)
	v := kerneltest.Verifier(t, p, 3)
	for _, target := range []string{"sm_80", "sm_90a"} {
		b := New(simulatedSession(t, target))
		plan := kernels.Plan{Tiles: symtile.Tiling{64, 64, 64}}.With("splitk", 5)
		for name, change := range mutants {
			im, err := compile(p, plan, b.session.Spec())
			if err != nil {
				t.Fatal(err)
			}
			w := &device.Executable{
				PTX:     string(im.module.Text()),
				Scratch: im.scratch,
				Zeroed:  im.zeroed,
				Steps:   im.steps,
			}
			k := &kernel{session: b.session, work: w, in: 3, out: 1}
			if err := v.Verify(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			before := w.PTX
			change(w)
			if w.PTX == before && len(w.Steps) == 2 && w.Steps[0].Grid.Y == 5 {
				t.Errorf("%s: nothing was changed", name)
			}
			if err := v.Verify(t.Context(), k); err == nil {
				t.Errorf("%s: %s: not found", target, name)
			} else if strings.Contains(err.Error(), "ptx:") {
				t.Errorf("%s: %s: %v", target, name, err)
			}
		}
	}
}

// A plan whose tiles cannot be shared is refused with a reason, and not offered.
func TestSplitRefusals(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, plan, reason string }{
		{toScalar, "4096 splitk=2", "nothing to share"},
		{toScalar, "1024 splitk=8", "more than the 4 iterations of r"},
		{toScalar, "1024 splitk=5000", "between 1 and 4096"},
		{softmax, "8,64,64 splitk=2", "needs all of m"},
		{skinny, "128,64,64 splitk=2 persistent=1", "exclude each other"},
		{skinny, "128,64,64 pdl=1", "the plan is one kernel"},
		{vast, "256,256,1 splitk=2048 warps=32", "a quarter of the memory"},
	} {
		p := kerneltest.Program(t, c.text)
		holdRefusal(t, p, s, c.plan, c.reason)
		all, err := feasibleCandidates(t.Context(), p, s, noTF32)
		if err != nil {
			t.Fatal(err)
		}
		for n, x := range all {
			if x.knobs.splitk == 1 || n > 2000 {
				continue
			}
			if _, err := phasesOf(concrete(t, p, x.tiling), x.knobs); err != nil {
				t.Errorf("offered, but refused: %s: %v", x.plan(), err)
			}
		}
	}
}

// holdRefusal fails unless a plan is refused with a reason.
func holdRefusal(t *testing.T, p *symtile.Program, s device.Spec, plan, reason string) {
	t.Helper()
	parsed, err := kernels.ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := PTX(p, parsed, s); err == nil ||
		!strings.Contains(err.Error(), reason) {
		t.Errorf("%s: %v, not %q", plan, err, reason)
	}
}

func concrete(t *testing.T, p *symtile.Program, x symtile.Tiling) *symtile.Program {
	t.Helper()
	q, err := p.At(x)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A kernel that begins early hides its launch, and only where the device has it.
func TestDependentPrice(t *testing.T) {
	p := kerneltest.Program(t, skinny)
	tiles := kernels.Plan{Tiles: symtile.Tiling{64, 64, 64}}
	plan := tiles.With("splitk", 8)
	for _, target := range []string{"H100", "A100"} {
		s, err := device.ParseSpec(target)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newEstimate(p, s)
		if err != nil {
			t.Fatal(err)
		}
		apart := kernels.Price{Seconds: make([]float64, len(priceTerms))}
		early := kernels.Price{Seconds: make([]float64, len(priceTerms))}
		if err := errors.Join(m.Price(plan, &apart), m.Price(plan.With("pdl", 1), &early)); err != nil {
			t.Fatal(err)
		}
		start := len(apart.Seconds) - 1
		if saved := apart.Seconds[start] - early.Seconds[start]; math.Abs(saved-launch) > 1e-12 {
			t.Errorf("%s: %g and %g", target, apart.Seconds, early.Seconds)
		}
		all, err := feasibleCandidates(t.Context(), p, s, noTF32)
		if err != nil {
			t.Fatal(err)
		}
		offered := slices.ContainsFunc(all, func(c candidate) bool { return c.knobs.pdl > 0 })
		if offered != (target == "H100") {
			t.Errorf("%s: offered is %v", target, offered)
		}
		if target == "A100" {
			holdRefusal(t, p, s, plan.With("pdl", 1).String(), "no programmatic dependent launches")
		}
	}
}

// Where few tiles leave SMs without a block, the default has several share one.
func TestSplitDefault(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text   string
		shared bool
	}{
		{"a = bf16[128,8192] parameter(0)\nb = bf16[8192,128] parameter(1)\np = bf16[128,128] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", true},
		{"x = f32[16777216] parameter(0)\nz = f32[] constant(0)\nr = f32[] reduce(x, z), dimensions={0}, to_apply=add\n", true},
		{"x = f32[4096,4096] parameter(0)\nz = f32[] constant(0)\nr = f32[4096] reduce(x, z), dimensions={1}, to_apply=add\n", false},
		{"a = bf16[4096,4096] parameter(0)\nb = bf16[4096,4096] parameter(1)\np = bf16[4096,4096] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n", false},
	} {
		plan, err := DefaultPlan(t.Context(), kerneltest.Program(t, c.text), s)
		if err != nil || plan.Knob("splitk", 1) > 1 != c.shared {
			t.Errorf("%s%s, %v", c.text, plan, err)
		}
	}
}

// streams are how many blocks can share the tiles of a tiling; none where it has no loop.
func streams(p *symtile.Program, t symtile.Tiling) (all []int64) {
	q, err := p.At(t)
	if err != nil {
		return nil
	}
	for n := int64(2); n <= 24; n++ {
		if _, err := streamOf(q, knobs{streamk: int(n)}); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// Plans whose blocks share the last tiles give the reference's results: a few blocks
// with whole tiles of their own, and many with pieces of one.
func TestStreamOnSimulator(t *testing.T) {
	for _, target := range []string{"sm_80", "sm_90a"} {
		b, rng, ran := New(simulatedSession(t, target)), rand.New(rand.NewPCG(3, 9)), 0
		chk := func(t *testing.T, p *symtile.Program, v *check.Verifier) {
			tilings := slices.DeleteFunc(slices.Collect(p.Space.Tilings()), func(x symtile.Tiling) bool {
				return tiles(p, x) > 128
			})
			for done, try := 0, 0; done < 2 && try < 20 && len(tilings) > 0; try++ {
				plan := kernels.Plan{Tiles: tilings[rng.IntN(len(tilings))]}.With(
					"warps", 1<<rng.IntN(4),
				).With("stages", 1+rng.Int64N(4)).With(
					"epilogue", rng.Int64N(2),
				)
				legal := streams(p, plan.Tiles)
				if len(legal) > 0 &&
					verify(t, b, v, p, plan.With(
						"streamk", legal[rng.IntN(len(legal))],
					)) {
					done++
					ran++
				}
			}
		}
		kerneltest.EachProgram(t, "testdata/split.txt", chk)
		for range 8 {
			p := kerneltest.Program(t, randomDot(rng))
			chk(t, p, kerneltest.Verifier(t, p, 3))
		}
		t.Logf("%s: %d plans", target, ran)
		if ran < 20 {
			t.Errorf("%s: only %d plans ran", target, ran)
		}
	}
}

// Blocks that share tiles do the work of those that have their own: as many wgmma, and
// the same bytes brought. A second launch on the same scratch finds the flags as the first
// did.
func TestStreamCounters(t *testing.T) {
	dev := newSimulator("sm_90a")
	s, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) {
		return dev, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, b := kerneltest.Program(t, skinny), New(s)
	v := kerneltest.Verifier(t, p, 3)
	for _, words := range []string{"64,64,64 stages=3", "64,32,64 stages=4 producer=4", "64,64,64 stages=1 epilogue=2"} {
		plan, err := kernels.ParsePlan(words)
		if err != nil {
			t.Fatal(err)
		}
		dev.ran = nil
		verify(t, b, v, p, plan)
		alone := dev.ran[0]
		for _, n := range []int64{3, 11} {
			dev.ran = nil
			if !verify(t, b, v, p, plan.With("streamk", n)) {
				t.Fatalf("%s streamk=%d did not run", plan, n)
			}
			shared := dev.ran[0]
			if shared.WGMMA != alone.WGMMA || shared.BulkBytes != alone.BulkBytes {
				t.Errorf("%s streamk=%d: %d wgmma of %d bytes, without %d of %d", plan, n, shared.WGMMA, shared.BulkBytes, alone.WGMMA, alone.BulkBytes)
			}
			k, err := b.Compile(t.Context(), p, plan.With("streamk", n))
			if err != nil {
				t.Fatal(err)
			}
			w := k.(*kernel).work
			if w.Steps[0].Grid.X != int(n) || w.Zeroed != 1 {
				t.Errorf("%s streamk=%d: %d blocks, %d zeroed arrays", plan, n, w.Steps[0].Grid.X, w.Zeroed)
			}
			w.Steps = append(w.Steps, w.Steps[0])
			if err := v.Verify(t.Context(), k); err != nil {
				t.Errorf("%s streamk=%d, launched twice: %v", plan, n, err)
			}
		}
	}
}

// Plans that cannot share tiles are refused with the reason.
func TestStreamRefusals(t *testing.T) {
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, plan, reason string }{
		{toScalar, "1024 streamk=3", "r is no product"},
		{softmax, "8,64,64 streamk=2", "2 loops"},
		{skinny, "64,32,1024 streamk=3", "0 loops"},
		{skinny, "64,32,64 streamk=2", "every block has 2 whole tiles"},
		{skinny, "64,64,512 streamk=5", "4 iterations are too few"},
		{skinny, "64,64,64 streamk=3 persistent=1", "divide the work in other ways"},
		{skinny, "64,64,64 streamk=3 splitk=2", "divide the work in other ways"},
		{skinny, "64,64,64 streamk=3 cluster=2", "divide the work in other ways"},
		{skinny, "64,64,64 streamk=3 producer=0", "need a producer"},
		{skinny, "64,64,64 streamk=5000", "between 0 and 4096"},
	} {
		p := kerneltest.Program(t, c.text)
		holdRefusal(t, p, s, c.plan, c.reason)
	}
}

// Where a second round of tiles would occupy few SMs, blocks that share tiles are priced
// between the work that an SM has then and the two rounds, and some are offered; where
// tiles fill whole rounds, none is.
func TestStreamPrice(t *testing.T) {
	for _, c := range []struct {
		target, plan string
		m, n, k      int64
		streamk      int64
	}{
		// 156 tiles on 132 SMs, and 120 on 108.
		{"H100", "128,128,64 stages=4 warps=8", 1536, 1664, 8192, 132},
		{"sm_80", "128,128,32 stages=3 warps=8", 1280, 1536, 8192, 108},
	} {
		s, err := device.ParseSpec(c.target)
		if err != nil {
			t.Fatal(err)
		}
		p := kerneltest.Program(t, matmul("bf16", "bf16", "nt", c.m, c.n, c.k))
		m, err := newEstimate(p, s)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := kernels.ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		seconds := func(plan kernels.Plan) float64 {
			k, err := knobsOf(plan, s)
			if err != nil {
				t.Fatal(err)
			}
			return m.candidate(plan.Tiles, m.set(plan.Tiles), k).seconds
		}
		plain, shared := seconds(plan), seconds(plan.With("streamk", c.streamk))
		t.Logf("%s: %.1f µs, shared %.1f µs", c.target, plain*1e6, shared*1e6)
		if shared < 0.55*plain || shared > 0.8*plain {
			t.Errorf("%s: %v s, %v where tiles are shared", c.target, plain, shared)
		}
		all, err := feasibleCandidates(t.Context(), p, s, noTF32)
		if err != nil {
			t.Fatal(err)
		}
		offered := 0
		for _, x := range all {
			if x.knobs.streamk == 0 {
				continue
			}
			if offered++; offered > 3 {
				continue
			}
			if _, err := compile(p, x.plan(), s); err != nil {
				t.Errorf("offered, but refused: %s: %v", x.plan(), err)
			}
		}
		t.Logf("%s: %d offered, the default is %s", c.target, offered, all[0].plan())
		if offered == 0 {
			t.Errorf("%s: no plan shares tiles", c.target)
		}
	}
}
