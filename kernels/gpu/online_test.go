package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/gpu/device"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
	"github.com/tilewright/tilewright/symtile/hlo"
)

// testdata/online.txt has attention in many forms. A plan whose tiles a command names gives
// the reference's results in one pass on each target, without a finding, or is rejected for
// the reason that is printed. The operations of products tell how many tiles were skipped.
func TestOnline(t *testing.T) {
	devices := map[string]*Backend{}
	simulators := map[string]*simulator{}
	for _, target := range targets {
		s := newSimulator(target)
		session, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) { return s, nil })
		if err != nil {
			t.Fatal(err)
		}
		devices[target], simulators[target] = New(session), s
	}
	datadriven.RunTest(t, "testdata/online.txt", func(t *testing.T, d *datadriven.TestData) string {
		p := kerneltest.Program(t, d.Input+"\n")
		v := kerneltest.Verifier(t, p, 1)
		var out []string
		for _, a := range d.CmdArgs {
			plan, err := kernels.ParsePlan(strings.ReplaceAll(strings.Join(a.Vals, " "), ";", ",") + map[string]string{"p": " online=1", "groups": " online=2"}[a.Key])
			if err != nil {
				t.Fatal(err)
			}
			for _, target := range targets {
				if a.Key == "groups" && target != "sm_90a" {
					continue
				}
				line := ""
				k, err := devices[target].Compile(t.Context(), p, plan)
				var no *kernels.Rejected
				switch {
				case errors.As(err, &no):
					line = no.Reason + "\n"
				case err != nil:
					t.Fatalf("%s: %v", plan, err)
				default:
					if err := v.For(plan, false).Verify(t.Context(), k); err != nil {
						line = err.Error() + "\n"
					} else {
						line = fmt.Sprintf("agrees, %d kFLOP\n", simulators[target].last.MatrixFLOPs/1000)
					}
					k.Close()
				}
				if !slices.Contains(out, line) {
					out = append(out, line)
				}
			}
		}
		return strings.Join(out, "")
	})
}

// onlineCandidates are the plans with online=1 that are offered of a program.
func onlineCandidates(t *testing.T, p *symtile.Program, target string) (all []candidate) {
	t.Helper()
	s, err := device.ParseSpec(target)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newEstimate(p, s)
	if err != nil || m.online == nil {
		t.Fatal("nothing is joined", err)
	}
	l := &lister{m: m, launches: choices(p, s, noTF32), limit: 1, seen: map[string]bool{}}
	m.online.tilings(l.lookOnce)
	all = slices.DeleteFunc(cheapestOffered(l.all), func(c candidate) bool { return c.knobs.online == 0 })
	return m.scheduled(all)
}

const plainAttention = `q = bf16[%[1]d,%[2]d,%[3]d] parameter(0)
k = bf16[%[1]d,%[2]d,%[3]d] parameter(1)
v = bf16[%[1]d,%[2]d,%[3]d] parameter(2)
low = f32[] constant(-inf)
zero = f32[] constant(0)
s = f32[%[1]d,%[2]d,%[2]d] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
m = f32[%[1]d,%[2]d] reduce(s, low), dimensions={2}, to_apply=maximum
ms = f32[%[1]d,%[2]d,%[2]d] broadcast(m), dimensions={0,1}
less = f32[%[1]d,%[2]d,%[2]d] subtract(s, ms)
e = f32[%[1]d,%[2]d,%[2]d] exponential(less)
sum = f32[%[1]d,%[2]d] reduce(e, zero), dimensions={2}, to_apply=add
sums = f32[%[1]d,%[2]d,%[2]d] broadcast(sum), dimensions={0,1}
x = f32[%[1]d,%[2]d,%[2]d] divide(e, sums)
b = bf16[%[1]d,%[2]d,%[2]d] convert(x)
ROOT o = bf16[%[1]d,%[2]d,%[3]d] dot(b, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
`

// Plans with online=1 that are offered can nearly all be compiled, and those that can give
// the reference's results.
func TestOnlineOffers(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	p := kerneltest.Program(t, fmt.Sprintf(plainAttention, 2, 96, 48))
	v := kerneltest.Verifier(t, p, 1)
	for _, target := range targets {
		b := New(simulatedSession(t, target))
		all := onlineCandidates(t, p, target)
		refused := 0
		for range 40 {
			plan := all[rng.IntN(len(all))].plan()
			_, err := compile(p, plan, b.session.Spec())
			var no *kernels.Rejected
			if errors.As(err, &no) {
				t.Log(err)
				refused++
			} else if err != nil {
				t.Errorf("%s: %v", plan, err)
			}
		}
		t.Logf("%s: %d plans, %d of 40 refused", target, len(all), refused)
		if refused > 4 {
			t.Errorf("%s: %d of 40 plans are refused", target, refused)
		}
		for ran := 0; ran < 4; {
			if verify(t, b, v, p, all[rng.IntN(len(all))].plan()) {
				ran++
			}
		}
	}
}

// Attention of 64 matrices of 4096 rows of 128 is predicted to take at most 1.5 times what
// FlashAttention-3 takes on an H100 by its authors (Shah et al., 2024, figure 5: 0.75 ms), on warpgroups.
func TestOnlinePrice(t *testing.T) {
	p := kerneltest.Program(t, fmt.Sprintf(plainAttention, 64, 4096, 128))
	all := onlineCandidates(t, p, "H100")
	cheapest := cheapestOffered(all)[0]
	t.Logf("%s: %.3g s", cheapest.plan(), cheapest.seconds)
	if cheapest.knobs.online != byWarpgroups || cheapest.seconds > 1.5*0.75e-3 {
		t.Errorf("%s: %.3g s", cheapest.plan(), cheapest.seconds)
	}
	s, err := device.ParseSpec("H100")
	if err != nil {
		t.Fatal(err)
	}
	f, err := FootprintOf(p, cheapest.plan(), s)
	if err != nil || f.Estimated.Spills {
		t.Errorf("%s: %+v, %v", cheapest.plan(), f.Estimated, err)
	}
}

// Heads of queries that share keys and values, through a broadcast and a reshape, are
// attention on warpgroups, too: their price is that of heads of their own.
func TestSharedHeadsPrice(t *testing.T) {
	const shared = `q = bf16[32,4096,128] parameter(0)
k = bf16[8,4096,128] parameter(1)
v = bf16[8,4096,128] parameter(2)
kb = bf16[8,4,4096,128] broadcast(k), dimensions={0,2,3}
kr = bf16[32,4096,128] reshape(kb)
vb = bf16[8,4,4096,128] broadcast(v), dimensions={0,2,3}
vr = bf16[32,4096,128] reshape(vb)
`
	own := fmt.Sprintf(plainAttention, 32, 4096, 128)
	_, rest, _ := strings.Cut(own, "low = ")
	rest = strings.NewReplacer("dot(q, k)", "dot(q, kr)", "dot(b, v)", "dot(b, vr)").Replace(rest)
	seconds := map[string]float64{}
	for name, text := range map[string]string{"own": own, "shared": shared + "low = " + rest} {
		p := kerneltest.Program(t, text)
		c := cheapestOffered(onlineCandidates(t, p, "H100"))[0]
		t.Logf("%s: %s %.3g s", name, c.plan(), c.seconds)
		s, err := device.ParseSpec("H100")
		if err == nil {
			_, err = compile(p, c.plan(), s)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if seconds[name] = c.seconds; c.knobs.online != byWarpgroups {
			t.Errorf("%s: %s", name, c.plan())
		}
	}
	if math.Abs(seconds["shared"]/seconds["own"]-1) > 0.05 {
		t.Errorf("%v", seconds)
	}
}

// causal is plainAttention with the scores after the diagonal hidden by a value.
func causal(value string) string {
	const shape = "[%[1]d,%[2]d,%[2]d]"
	mask := strings.ReplaceAll(`
row = s32SHAPE iota(), iota_dimension=1
col = s32SHAPE iota(), iota_dimension=2
seen = predSHAPE compare(col, row), direction=LE
hidden = f32[] constant(`+value+`)
lows = f32SHAPE broadcast(hidden), dimensions={}
s = f32SHAPE select(seen, x0, lows)
m = f32`, "SHAPE", shape)
	return strings.NewReplacer("\ns = f32", "\nx0 = f32", "\nm = f32", mask).Replace(plainAttention)
}

// The price of a causal mask counts the tiles that blocks compute, as the simulator does,
// and is about half of the price without a mask.
func TestHiddenTilesArePriced(t *testing.T) {
	p := kerneltest.Program(t, fmt.Sprintf(causal("-inf"), 2, 128, 32))
	s := newSimulator("sm_80")
	session, err := device.NewSession(t.Context(), func(context.Context) (device.Driver, error) { return s, nil })
	if err != nil {
		t.Fatal(err)
	}
	b, v := New(session), kerneltest.Verifier(t, p, 1)
	m, err := newEstimate(p, s.spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int64{{32, 32}, {64, 32}, {32, 64}} {
		plan := kernels.Plan{Tiles: symtile.Tiling{1, size[0], 32, size[1], 32, size[1], size[1]}}.With("warps", 2).With("online", 1)
		if !verify(t, b, v, p, plan) {
			t.Fatal(plan, "was not verified")
		}
		m.set(plan.Tiles)
		priced := m.online.visible(math.Inf(1)) * m.online.iterationCount()
		ran := float64(s.last.MatrixFLOPs) / (2 * 2 * 2 * 128 * 32 * float64(size[1]))
		if math.Abs(ran-priced) > 1e-9 {
			t.Errorf("%s: %v iterations on average, priced %v", plan, ran, priced)
		}
	}
	prices := map[string]float64{}
	for name, text := range map[string]string{"plain": plainAttention, "causal": causal("-inf")} {
		p := kerneltest.Program(t, fmt.Sprintf(text, 64, 4096, 128))
		prices[name] = cheapestOffered(onlineCandidates(t, p, "H100"))[0].seconds
	}
	t.Logf("%v s", prices)
	if share := prices["causal"] / prices["plain"]; share < 0.45 || share > 0.65 {
		t.Errorf("with a causal mask the price is %.2f of that without", share)
	}
}

// Scores far from 0 have the weights of plain evaluation: their multiples in base 2 are rounded
// by more than weights are, and a row's maximum crosses the size from which another base is
// taken. Scores are exact, so that results are those of float64 but for roundings.
func TestLargeScores(t *testing.T) {
	const n, depth = 64, 32
	const text = `q = bf16[1,64,32] parameter(0)
k = bf16[1,64,32] parameter(1)
v = bf16[1,64,32] parameter(2)
low = f32[] constant(-inf)
zero = f32[] constant(0)
x = f32[1,64,64] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
j = s32[1,64,64] iota(), iota_dimension=2
f = f32[1,64,64] convert(j)
slope = f32[] constant(%g)
slopes = f32[1,64,64] broadcast(slope), dimensions={}
slant = f32[1,64,64] multiply(f, slopes)
level = f32[] constant(%g)
levels = f32[1,64,64] broadcast(level), dimensions={}
bias = f32[1,64,64] add(slant, levels)
s = f32[1,64,64] add(x, bias)
m = f32[1,64] reduce(s, low), dimensions={2}, to_apply=maximum
ms = f32[1,64,64] broadcast(m), dimensions={0,1}
less = f32[1,64,64] subtract(s, ms)
e = f32[1,64,64] exponential(less)
sum = f32[1,64] reduce(e, zero), dimensions={2}, to_apply=add
sums = f32[1,64,64] broadcast(sum), dimensions={0,1}
y = f32[1,64,64] divide(e, sums)
b = bf16[1,64,64] convert(y)
ROOT o = bf16[1,64,32] dot(b, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
`
	rng := rand.New(rand.NewPCG(3, 9))
	in := make([]kernels.Buffer, 3)
	shape := hlo.Shape{DType: hlo.BF16, Dims: []int64{1, n, depth}}
	for i := range in {
		in[i], _ = kernels.NewBuffer(shape)
		for j := range int64(n * depth) {
			in[i].SetFloat(j, float64(rng.IntN(9)-4)/4)
		}
	}
	plans := map[string][]string{
		"sm_80":  {"1,32,32,16,32,16,16 online=1 warps=2"},
		"sm_90a": {"1,64,32,32,32,32,32 online=2 producer=1 stages=2"},
	}
	for _, c := range [][2]float64{{0, 1000}, {0, 2e8}, {0, 3e8}, {0, 1e12}, {0, -1e30}, {0, 3e38}, {1e7, 0}, {-1e7, 0}, {1, 0}, {0.5, 4096}, {1e36, -1e37}} {
		slope, level := float32(c[0]), float32(c[1])
		p := kerneltest.Program(t, fmt.Sprintf(text, c[0], c[1]))
		want := weightedMeans(in, n, depth, func(j int, x float32) float32 { return x + (float32(j)*slope + level) })
		for target, all := range plans {
			for _, line := range all {
				plan, err := kernels.ParsePlan(line)
				if err != nil {
					t.Fatal(err)
				}
				kernel, err := New(simulatedSession(t, target)).Compile(t.Context(), p, plan)
				if err != nil {
					t.Fatal(err)
				}
				out, _ := kernels.NewBuffer(shape)
				if _, err := kernel.Run(t.Context(), in, []kernels.Buffer{out}); err != nil {
					t.Fatal(err)
				}
				for i, w := range want {
					// Weights and results have 8 bits; values are at most 1.
					if got := out.Float(int64(i)); !(math.Abs(got-w) <= 0x1p-7) {
						t.Errorf("slope %g, level %g, %s: element %d is %v, not %v", c[0], c[1], target, i, got, w)
						break
					}
				}
				kernel.Close()
			}
		}
	}
}

// weightedMeans are softmax(f(q·kᵀ))·v in float64, with the scores in f32.
func weightedMeans(in []kernels.Buffer, n, depth int, f func(j int, x float32) float32) (all []float64) {
	at := func(b, i, d int) float64 { return in[b].Float(int64(i*depth + d)) }
	for i := range n {
		scores, most := make([]float64, n), math.Inf(-1)
		for j := range scores {
			x := 0.0
			for d := range depth {
				x += at(0, i, d) * at(1, j, d)
			}
			scores[j] = float64(f(j, float32(x)))
			most = max(most, scores[j])
		}
		means, sum := make([]float64, depth), 0.0
		for j, s := range scores {
			w := math.Exp(s - most)
			sum += w
			for d := range means {
				means[d] += w * at(2, j, d)
			}
		}
		for d := range means {
			all = append(all, means[d]/sum)
		}
	}
	return all
}
