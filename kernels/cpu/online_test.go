package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/check"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/kernels/reference"
	"github.com/tilewright/tilewright/symtile"
)

// rowsOfX are e = exp(x − max x) and its sum l, of $t.
const rowsOfX = `x = $t[6,40] parameter(0)
low = $t[] constant(-inf)
zero = $t[] constant(0)
m = $t[6] reduce(x, low), dimensions={1}, to_apply=maximum
ms = $t[6,40] broadcast(m), dimensions={0}
less = $t[6,40] subtract(x, ms)
e = $t[6,40] exponential(less)
l = $t[6] reduce(e, zero), dimensions={1}, to_apply=add
`

// onlineTexts are fusions with loops that are joined where their tiles are of a size.
var onlineTexts = []string{
	rowsOfX + "ls = $t[6,40] broadcast(l), dimensions={0}\nROOT p = $t[6,40] divide(e, ls)",
	rowsOfX + "g = $t[6] log(l)\nlse = $t[6] add(g, m)\nROOT all = ($t[6], $t[6]) tuple(lse, m)",
	rowsOfX + `v = $t[40,9] parameter(1)
ls = $t[6,40] broadcast(l), dimensions={0}
p = $t[6,40] divide(e, ls)
ROOT o = $t[6,9] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
	rowsOfX + `v = $t[40,9] parameter(1)
o = $t[9,6] dot(v, e), lhs_contracting_dims={0}, rhs_contracting_dims={1}
one = $t[] constant(1)
ones = $t[6] broadcast(one), dimensions={}
r = $t[6] divide(ones, l)
rs = $t[9,6] broadcast(r), dimensions={1}
ROOT q = $t[9,6] multiply(o, rs)`,
	rowsOfX + `v = $t[40,9] parameter(1)
ROOT o = $t[6,9] dot(e, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
	`q = $t[2,10,12] parameter(0)
k = $t[2,24,12] parameter(1)
v = $t[2,24,20] parameter(2)
low = $t[] constant(-inf)
zero = $t[] constant(0)
scale = $t[] constant(0.25)
scales = $t[2,10,24] broadcast(scale), dimensions={}
qk = $t[2,10,24] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
scaled = $t[2,10,24] multiply(qk, scales)
rows = s32[2,10,24] iota(), iota_dimension=1
keys = s32[2,10,24] iota(), iota_dimension=2
later = pred[2,10,24] compare(rows, keys), direction=LT
lows = $t[2,10,24] broadcast(low), dimensions={}
x = $t[2,10,24] select(later, lows, scaled)
m = $t[2,10] reduce(x, low), dimensions={2}, to_apply=maximum
ms = $t[2,10,24] broadcast(m), dimensions={0,1}
less = $t[2,10,24] subtract(x, ms)
e = $t[2,10,24] exponential(less)
l = $t[2,10] reduce(e, zero), dimensions={2}, to_apply=add
ls = $t[2,10,24] broadcast(l), dimensions={0,1}
p = $t[2,10,24] divide(e, ls)
ROOT o = $t[2,10,20] dot(p, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}`,
	rowsOfX + `v = $t[40,9] parameter(1)
o = $t[6,9] dot(e, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT z = $t[9,6] transpose(o), dimensions={1,0}`,
}

// otherSums are fusions whose sums have other types than the maximum.
var otherSums = []string{
	rowsOfX + `v = f64[40,9] parameter(1)
w = f64[6,40] convert(e)
ROOT o = f64[6,9] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
	rowsOfX + `v = f32[40,9] parameter(1)
w = f32[6,40] convert(e)
ROOT o = f32[6,9] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}`,
}

// meansOfX are y = x − mean x and the sum of its squares q, of $t.
const meansOfX = `x = $t[6,40] parameter(0)
zero = $t[] constant(0)
s = $t[6] reduce(x, zero), dimensions={1}, to_apply=add
n = $t[] constant(40)
ns = $t[6] broadcast(n), dimensions={}
mean = $t[6] divide(s, ns)
means = $t[6,40] broadcast(mean), dimensions={0}
y = $t[6,40] subtract(x, means)
sq = $t[6,40] multiply(y, y)
q = $t[6] reduce(sq, zero), dimensions={1}, to_apply=add
var = $t[6] divide(q, ns)
`

// meanTexts are fusions with loops that are joined because they sum what a mean and
// a variance are of.
var meanTexts = []string{
	meansOfX + "ROOT all = ($t[6], $t[6], $t[6]) tuple(s, mean, var)",
	meansOfX + `g = $t[40] parameter(1)
b = $t[40] parameter(2)
eps = $t[] constant(1e-5)
epss = $t[6] broadcast(eps), dimensions={}
ve = $t[6] add(var, epss)
r = $t[6] rsqrt(ve)
rs = $t[6,40] broadcast(r), dimensions={0}
yr = $t[6,40] multiply(y, rs)
gs = $t[6,40] broadcast(g), dimensions={1}
bs = $t[6,40] broadcast(b), dimensions={1}
yg = $t[6,40] multiply(yr, gs)
ROOT z = $t[6,40] add(yg, bs)`,
	`a = bf16[10,6,12] parameter(0)
w = $t[12] parameter(1)
x0 = $t[10,6,12] convert(a)
ws = $t[10,6,12] broadcast(w), dimensions={2}
x = $t[10,6,12] add(x0, ws)
zero = $t[] constant(0)
s = $t[6] reduce(x, zero), dimensions={0,2}, to_apply=add
k = $t[] constant(0.5)
ks = $t[6] broadcast(k), dimensions={}
mean = $t[6] multiply(s, ks)
means = $t[10,6,12] broadcast(mean), dimensions={1}
y = $t[10,6,12] subtract(means, x)
sq = $t[10,6,12] multiply(y, y)
ROOT q = $t[6] reduce(sq, zero), dimensions={0,2}, to_apply=add`,
}

// alike draws a tiling in which sequential dimensions of one extent have tiles of
// one size, so that loops are joined.
func alike(rng *rand.Rand, p *symtile.Program) symtile.Tiling {
	sizes := map[int64]int64{}
	for {
		t := make(symtile.Tiling, len(p.Space.Dims))
		clear(sizes)
		for k, d := range p.Space.Dims {
			t[k] = 1 + rng.Int64N(d.Extent)
			if d.Kind != symtile.Sequential {
				continue
			}
			if sizes[d.Extent] == 0 {
				sizes[d.Extent] = 1 + rng.Int64N(max(1, d.Extent/2))
			}
			t[k] = sizes[d.Extent]
		}
		if p.Check(t) == nil {
			return t
		}
	}
}

// joined says whether a plan has an online loop.
func joined(t *testing.T, p *symtile.Program, tiling symtile.Tiling) bool {
	q, err := p.At(tiling)
	if err != nil {
		t.Fatal(err)
	}
	return q.Online() != q
}

// TestOnline compares joined loops with the reference for random tiles, with and
// without other knobs.
func TestOnline(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for _, d := range []string{"f32", "f64", "bf16", "f16"} {
		texts := append(slices.Clone(onlineTexts), otherSums...)
		if d == "f32" || d == "f64" {
			texts = append(slices.Clone(texts), meanTexts...)
		}
		for n, text := range texts {
			t.Run(fmt.Sprintf("%s/%d", d, n), func(t *testing.T) {
				p, _ := landscape(t, strings.ReplaceAll(text, "$t", d))
				v := kerneltest.Verifier(t, p, 1)
				b := New()
				for k := range 12 {
					plan := kernels.Plan{Tiles: alike(rng, p)}
					if !joined(t, p, plan.Tiles) {
						t.Fatalf("%s joins nothing", plan)
					}
					if k%2 == 1 {
						plan = withKnobs(rng, plan)
					}
					verify(t, b, v, p, plan)
				}
			})
		}
	}
}

// TestOnlineOfJoin: where rows are padded, ops that make the same elements are one (package
// narrowing), but not the maximum that iterations subtract and that after the loop.
func TestOnlineOfJoin(t *testing.T) {
	p, _ := landscape(t, `y = f32[5,40] parameter(0)
u = f32[5,40] negate(y)
low = f32[] constant(-inf)
zero = f32[] constant(0)
x = f32[6,40] pad(u, zero), padding=0_1x0_0
m = f32[6] reduce(x, low), dimensions={1}, to_apply=maximum
kept = f32[6,1] broadcast(m), dimensions={0}
row = f32[6] reshape(kept)
ms = f32[6,40] broadcast(row), dimensions={0}
less = f32[6,40] subtract(x, ms)
e = f32[6,40] exponential(less)
l = f32[6] reduce(e, zero), dimensions={1}, to_apply=add
ls = f32[6,40] broadcast(l), dimensions={0}
ROOT p = f32[6,40] divide(e, ls)`)
	v := kerneltest.Verifier(t, p, 1)
	for _, tiles := range []symtile.Tiling{{6, 40, 10, 10}, {6, 20, 4, 4}, {2, 40, 10, 10}} {
		if !joined(t, p, tiles) {
			t.Errorf("%v joins nothing", tiles)
		}
		for rows := range int64(2) {
			plan := kernels.Plan{Tiles: tiles}
			verify(t, New(), v, p, plan.With("rows", rows))
		}
	}
}

// TestNormsOfJoins: ops that make the same elements are one of those that run first, whatever
// their numbers are. Both parts of the join have their variances in one loop within another.
func TestNormsOfJoins(t *testing.T) {
	p, _ := landscape(t, `x = f32[5,4] parameter(0)
z = f32[5,4] parameter(1)
i = s32[5,4] iota(), iota_dimension=0
c = s32[] constant(3)
cs = s32[5,4] broadcast(c), dimensions={}
mask = pred[5,4] compare(i, cs), direction=LT
y = f32[5,4] select(mask, x, z)
zero = f32[] constant(0)
low = f32[] constant(-inf)
four = f32[] constant(4)
fours = f32[5] broadcast(four), dimensions={}
s = f32[5] reduce(y, zero), dimensions={1}, to_apply=add
mean = f32[5] divide(s, fours)
means = f32[5,4] broadcast(mean), dimensions={0}
d = f32[5,4] subtract(y, means)
sq = f32[5,4] multiply(d, d)
q = f32[5] reduce(sq, zero), dimensions={1}, to_apply=add
qs = f32[5,4] broadcast(q), dimensions={0}
n = f32[5,4] multiply(d, qs)
j = f32[10,4] concatenate(n, n), dimensions={0}
m = f32[4] reduce(j, low), dimensions={0}, to_apply=maximum
ms = f32[10,4] broadcast(m), dimensions={1}
ROOT r = f32[10,4] subtract(j, ms)`)
	checkPlans(t, p, 60)
}

// TestOnlineOfSquares: a softmax of each row in a sum over as many rows as it has columns. Its
// loop is over other tiles of the same size, and would move on those of the loop that it is in.
func TestOnlineOfSquares(t *testing.T) {
	p, _ := landscape(t, `x = f32[5,5] parameter(0)
low = f32[] constant(-inf)
zero = f32[] constant(0)
m = f32[5] reduce(x, low), dimensions={1}, to_apply=maximum
ms = f32[5,5] broadcast(m), dimensions={0}
less = f32[5,5] subtract(x, ms)
e = f32[5,5] exponential(less)
l = f32[5] reduce(e, zero), dimensions={1}, to_apply=add
ls = f32[5,5] broadcast(l), dimensions={0}
p = f32[5,5] divide(e, ls)
s = f32[5] reduce(p, zero), dimensions={0}, to_apply=add
ss = f32[5,5] broadcast(s), dimensions={1}
d = f32[5,5] subtract(p, ss)
q = f32[5,5] multiply(d, d)
v = f32[5] reduce(q, zero), dimensions={0}, to_apply=add
vs = f32[5,5] broadcast(v), dimensions={1}
ROOT r = f32[5,5] divide(d, vs)`)
	v := kerneltest.Verifier(t, p, 1)
	rng := rand.New(rand.NewPCG(3, 7))
	for range 40 {
		verify(t, New(), v, p, kernels.Plan{Tiles: alike(rng, p)})
	}
}

// TestOnlineIntegers: weights of a softmax that become whole numbers, and are summed, are not
// part of its loop. Choosing a plan panicked.
func TestOnlineIntegers(t *testing.T) {
	p, _ := landscape(t, `x = f32[16] parameter(0)
low = f32[] constant(-inf)
none = f32[] constant(0)
nought = s32[] constant(0)
m = f32[] reduce(x, low), dimensions={0}, to_apply=maximum
ms = f32[16] broadcast(m), dimensions={}
less = f32[16] subtract(x, ms)
e = f32[16] exponential(less)
l = f32[] reduce(e, none), dimensions={0}, to_apply=add
ls = f32[16] broadcast(l), dimensions={}
p = f32[16] divide(e, ls)
n = s32[16] convert(p)
ROOT s = s32[] reduce(n, nought), dimensions={0}, to_apply=add`)
	checkPlans(t, p, 20)
}

// TestOnlineEdges: rows that begin with −∞, have nothing else, or have +∞ or NaN
// anywhere, are what the reference makes of them; so are weights that are not
// numbers, also those of elements that weigh nothing.
func TestOnlineEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	for n, text := range onlineTexts[:5] {
		for _, d := range []string{"f32", "f64"} {
			t.Run(fmt.Sprintf("%s/%d", d, n), func(t *testing.T) {
				p, _ := landscape(t, strings.ReplaceAll(text, "$t", d))
				for range 40 {
					in, err := check.Inputs(p.Fusion, check.Normals, rng.Int64())
					if err != nil {
						t.Fatal(err)
					}
					roughen(rng, in)
					compareOnline(t, p, kernels.Plan{Tiles: alike(rng, p)}, in)
				}
			})
		}
	}
}

// roughen gives every row of x, 40 elements, a character of its own, and a few
// of the weights.
func roughen(rng *rand.Rand, in []kernels.Buffer) {
	inf := math.Inf(1)
	for row := range int64(6) {
		first, every := rng.Int64N(40), 1+rng.Int64N(9)
		for k := range int64(40) {
			x := in[0].Float(row*40 + k)
			switch rng.IntN(12) {
			case 0:
				x = -inf
			case 1:
				x *= 80
			}
			switch row {
			case 0: // nothing but −∞
				x = -inf
			case 1: // … up to somewhere
				if k < first {
					x = -inf
				}
			case 2: // the maximum grows with every element
				x = float64(k) - 20
			case 3: // … by far
				x = float64(k)*400 - 8000
			case 4:
				if k == first {
					x = []float64{inf, math.NaN(), -300}[rng.IntN(3)]
				}
			}
			in[0].SetFloat(row*40+k, x)
		}
		if len(in) > 1 && rng.IntN(3) == 0 {
			for k := first; k < in[1].Shape.Elements(); k += 40 * every {
				in[1].SetFloat(
					k,
					[]float64{inf, -inf, math.NaN(), 1e30, -1e-30}[rng.IntN(5)],
				)
			}
		}
	}
}

func compareOnline(t *testing.T, p *symtile.Program, plan kernels.Plan, in []kernels.Buffer) {
	t.Helper()
	want, err := reference.Interpret(p.Fusion, in)
	if err != nil {
		t.Fatal(err)
	}
	out := computed(t, p, plan, in)
	for n := range out {
		for k := range out[n].Shape.Elements() { // infinity times what is 0 with the last maximum only
			if math.IsInf(out[n].Float(k), 0) &&
				math.IsNaN(want[n].Float(k)) {
				want[n].SetFloat(k, out[n].Float(k))
			}
		}
	}
	if m := check.Agree(p.Fusion, in, out, want); m != nil {
		t.Fatalf("%s: %v", plan, m)
	}
}

// computed is what a plan makes of in.
func computed(
	t *testing.T, p *symtile.Program, plan kernels.Plan, in []kernels.Buffer,
) (out []kernels.Buffer) {
	t.Helper()
	k, err := New().Compile(context.Background(), p, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for _, s := range kernels.OutputShapes(p.Fusion) {
		b, err := kernels.NewBuffer(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	if _, err := k.Run(context.Background(), in, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestVarianceError: of rows of numbers whose mean is far from 0, that drift, or that
// begin elsewhere, the sum of squares is off the exact one by less than symtile states
// for n elements in tiles of T, (2T + 16 + 4n/T)·u.
func TestVarianceError(t *testing.T) {
	const n, tile = 1 << 16, 256
	p, _ := landscape(
		t,
		strings.NewReplacer("$t", "f32", "[6,40]", "[1,65536]", "[6]", "[1]", "(40)", "(65536)").Replace(meanTexts[0]),
	)
	plan := kernels.Plan{Tiles: symtile.Tiling{1, tile, tile}}
	if !joined(t, p, plan.Tiles) {
		t.Fatalf("%s joins nothing", plan)
	}
	rng := rand.New(rand.NewPCG(7, 5))
	for name, mean := range map[string]func(k int64) float64{
		"near 0":           func(int64) float64 { return 0 },
		"at 1e6":           func(int64) float64 { return 1e6 },
		"drifts":           func(k int64) float64 { return float64(k) },
		"begins elsewhere": func(k int64) float64 { return float64(min(k, 300)) * 1e3 },
	} {
		in, err := check.Inputs(p.Fusion, check.Normals, 1)
		if err != nil {
			t.Fatal(err)
		}
		var sum, squares float64
		for k := range int64(n) {
			in[0].SetFloat(k, mean(k)+10*rng.NormFloat64())
			sum += in[0].Float(k)
		}
		for k := range int64(n) {
			d := in[0].Float(k) - sum/n
			squares += d * d
		}
		got := computed(t, p, plan, in)[2].Float(0) * n
		const bound = (2*tile + 16 + 4*n/tile) * 0x1p-24
		if off := math.Abs(got/squares - 1); !(off < bound) {
			t.Errorf("%s: the variance is off by %.2g, more than %.2g", name, off, bound)
		} else {
			t.Logf("%s: off by %.2g of %.2g allowed", name, off, bound)
		}
	}
}

// TestMeanEdges: variances of rows that are far from 0, begin with what is nothing like
// the rest, drift, do not vary, or have what is not a number, are what the reference
// makes of them.
func TestMeanEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 5))
	for _, d := range []string{"f32", "f64"} {
		for n, text := range meanTexts[:2] {
			t.Run(fmt.Sprintf("%s/%d", d, n), func(t *testing.T) {
				p, _ := landscape(t, strings.ReplaceAll(text, "$t", d))
				for range 60 {
					in, err := check.Inputs(p.Fusion, check.Normals, rng.Int64())
					if err != nil {
						t.Fatal(err)
					}
					scatter(rng, in[0])
					compareOnline(t, p, kernels.Plan{Tiles: alike(rng, p)}, in)
				}
			})
		}
	}
}

// scatter gives every row of x, 40 elements, a character of its own.
func scatter(rng *rand.Rand, in kernels.Buffer) {
	for row := range int64(6) {
		odd := rng.Int64N(40)
		for k := range int64(40) {
			x := in.Float(row*40 + k)
			switch row {
			case 0: // far from 0
				x += 1000
			case 1: // all alike
				x = 1.25
			case 2: // drifts
				x += float64(k) * 50
			case 3: // one that is nothing like the others
				if k == odd {
					x = []float64{1e8, -1e15, 3e5}[rng.IntN(3)]
				}
			case 4:
				if k == odd {
					x = []float64{
						math.Inf(1), math.Inf(-1), math.NaN(),
					}[rng.IntN(3)]
				}
			}
			in.SetFloat(row*40+k, x)
		}
	}
}

// TestOnlyShiftsWeights: the maximum may be any number in a row with NaN unless it is a result, or
// the powers are read by more than sums.
func TestOnlyShiftsWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 5))
	for n, want := range []bool{false, false, true, true, true, true} {
		p := kerneltest.Program(t, strings.ReplaceAll(onlineTexts[n], "$t", "f32"))
		q, err := p.At(alike(rng, p))
		if err != nil {
			t.Fatal(err)
		}
		q, found := q.Online(), false
		for _, op := range q.Ops {
			if l := op.Loop; l != nil && l.Online != nil {
				found = true
				if got := onlyShiftsWeights(q, l.Online); got != want {
					t.Errorf("text %d: %v, want %v", n, got, want)
				}
			}
		}
		if !found {
			t.Errorf("text %d has no online loop", n)
		}
	}
}

// TestDefaultIsOnline: rows that do not stay in the second cache are read once
// less by default.
func TestDefaultIsOnline(t *testing.T) {
	long := strings.NewReplacer("$t", "f32", "[6,40]", "[1,4194304]", "[6]", "[1]").Replace(onlineTexts[0])
	attention := strings.NewReplacer("$t", "f32", "[2,10,12]", "[2,4096,64]", "[2,24,12]", "[2,4096,64]", "[2,24,20]", "[2,4096,64]",
		"[2,10,24]", "[2,4096,4096]", "[2,10,20]", "[2,4096,64]", "[2,10]", "[2,4096]").Replace(onlineTexts[5])
	norm := strings.NewReplacer(
		"$t", "f32", "[6,40]", "[16,1048576]", "[6]", "[16]", "[40]", "[1048576]", "(40)", "(1048576)",
	).Replace(meanTexts[1])
	for _, text := range []string{long, attention, norm} {
		p := kerneltest.Program(t, text)
		plan, err := New().Default(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if !joined(t, p, plan.Tiles) {
			t.Errorf("%s has a loop each for what is found together", plan)
		}
	}
}

// maskedText is attention whose scores a mask hides: $seen of rows and keys, with $low.
const maskedText = `q = $t[2,10,12] parameter(0)
k = $t[2,24,12] parameter(1)
v = $t[2,24,20] parameter(2)
zero = $t[] constant(0)
least = $t[] constant(-inf)
low = $t[] constant($low)
qk = $t[2,10,24] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
rows = s32[2,10,24] iota(), iota_dimension=1
keys = s32[2,10,24] iota(), iota_dimension=2
$seen
lows = $t[2,10,24] broadcast(low), dimensions={}
x = $t[2,10,24] select(seen, qk, lows)
m = $t[2,10] reduce(x, least), dimensions={2}, to_apply=maximum
ms = $t[2,10,24] broadcast(m), dimensions={0,1}
less = $t[2,10,24] subtract(x, ms)
e = $t[2,10,24] exponential(less)
l = $t[2,10] reduce(e, zero), dimensions={2}, to_apply=add
ls = $t[2,10,24] broadcast(l), dimensions={0,1}
p = $t[2,10,24] divide(e, ls)
ROOT o = $t[2,10,20] dot(p, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}`

// Predicates by which keys are seen.
var masksOfKeys = []struct{ name, seen string }{
	{"causal", "seen = pred[2,10,24] compare(rows, keys), direction=GE"},
	{"later", "seen = pred[2,10,24] compare(rows, keys), direction=LE"},
	{"no key of the first rows", `six = s32[] constant(6)
sixes = s32[2,10,24] broadcast(six), dimensions={}
after = s32[2,10,24] add(keys, sixes)
seen = pred[2,10,24] compare(rows, after), direction=GE`},
	{"window", `three = s32[] constant(3)
threes = s32[2,10,24] broadcast(three), dimensions={}
after = s32[2,10,24] add(keys, threes)
until = pred[2,10,24] compare(rows, keys), direction=GE
from = pred[2,10,24] compare(rows, after), direction=LT
seen = pred[2,10,24] and(until, from)`},
	{"columns turned", `both = s32[2,10,24] add(rows, keys)
nine = s32[] constant(9)
nines = s32[2,10,24] broadcast(nine), dimensions={}
seen = pred[2,10,24] compare(both, nines), direction=LE`},
}

// TestHiddenTiles: what tiles of keys that a mask hides are left out of is what the reference
// computes, of rows that are hidden wholly, too, and of scores near to what they hide.
func TestHiddenTiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 5))
	for _, m := range masksOfKeys {
		for _, low := range []string{"-inf", "-1e9", "-3e38", "-20", "-104.5"} {
			for _, d := range []string{"f32", "f64", "bf16"} {
				t.Run(m.name+low+d, func(t *testing.T) {
					p, _ := landscape(t, strings.NewReplacer(
						"$t", d, "$low", low, "$seen", m.seen,
					).Replace(maskedText))
					for k := range 6 {
						in, err := check.Inputs(p.Fusion, check.Normals, rng.Int64())
						if err != nil {
							t.Fatal(err)
						}
						if k%2 == 1 { // far below and above what is hidden
							for n := range in[0].Shape.Elements() {
								in[0].SetFloat(n, 8*in[0].Float(n))
							}
						}
						compareOnline(t, p, kernels.Plan{Tiles: alike(rng, p)}, in)
					}
				})
			}
		}
	}
}

// TestHiddenTilesAreLeftOut: values whose keys a tile hides wholly are not even read, unless
// all that a row sees is as small as what is hidden.
func TestHiddenTilesAreLeftOut(t *testing.T) {
	for _, c := range []struct {
		low   string
		score float64
		nan   bool
	}{
		{"-inf", 0, false}, {"-inf", -1e30, false},
		{"-1e9", 0, false}, {"-1e9", -1e9, true}, {"-20", 0, true},
	} {
		p, _ := landscape(t, strings.NewReplacer(
			"$t", "f32", "$low", c.low, "$seen", masksOfKeys[0].seen,
		).Replace(maskedText))
		in, err := check.Inputs(p.Fusion, check.Normals, 1)
		if err != nil {
			t.Fatal(err)
		}
		for n := range in[0].Shape.Elements() {
			in[0].SetFloat(n, c.score/12)
		}
		for n := range in[1].Shape.Elements() {
			in[1].SetFloat(n, 1)
		}
		for n := range in[2].Shape.Elements() { // of the last eight keys of all
			if n/20%24 >= 16 {
				in[2].SetFloat(n, math.NaN())
			}
		}
		tiles := make(symtile.Tiling, len(p.Space.Dims))
		for k, d := range p.Space.Dims {
			tiles[k] = d.Extent
			if d.Kind == symtile.Sequential && d.Extent == 24 {
				tiles[k] = 8
			}
		}
		out := computed(t, p, kernels.Plan{Tiles: tiles}, in)
		if got := math.IsNaN(out[0].Float(0)); got != c.nan {
			t.Errorf("hidden %s, scores %g: hidden keys are read: %v", c.low, c.score, got)
		}
	}
}

// BenchmarkCausal: attention of 8×1024×64 by the default plan, whose later keys are hidden by
// −∞ or by a finite number, beside the same without a mask.
func BenchmarkCausal(b *testing.B) {
	at := strings.NewReplacer(
		"$t", "f32", "[2,10,12]", "[8,1024,64]", "[2,24,12]", "[8,1024,64]", "[2,24,20]", "[8,1024,64]",
		"[2,10,24]", "[8,1024,1024]", "[2,10,20]", "[8,1024,64]", "[2,10]", "[8,1024]",
		"$seen", masksOfKeys[0].seen,
	)
	text := at.Replace(at.Replace(maskedText))
	for _, c := range []struct{ name, text string }{
		{"none", strings.Replace(strings.ReplaceAll(text, "$low", "-inf"), "select(seen, qk, lows)", "add(qk, qk)", 1)},
		{"infinite", strings.ReplaceAll(text, "$low", "-inf")},
		{"finite", strings.ReplaceAll(text, "$low", "-1e9")},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := kerneltest.Program(b, c.text)
			plan, err := New().Default(b.Context(), p)
			if err != nil {
				b.Fatal(err)
			}
			b.Log(plan)
			k, bench := benched(b, p, plan)
			defer k.Close()
			best := time.Duration(math.MaxInt64)
			for b.Loop() {
				d, err := bench.Run(b.Context(), k)
				if err != nil {
					b.Fatal(err)
				}
				best = min(best, d)
			}
			b.ReportMetric(best.Seconds()*1e3, "ms-at-best")
		})
	}
}
