package cpu

import (
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/tilewright/tilewright/kernels"
	"github.com/tilewright/tilewright/kernels/cpu/internal/vector"
	"github.com/tilewright/tilewright/kernels/kerneltest"
	"github.com/tilewright/tilewright/symtile"
)

// TestSplits: whole contractions and loops of them are divided, also among more
// parts than there are terms or iterations, and the bits of a result are the
// same whatever part comes last.
func TestSplits(t *testing.T) {
	p, _ := landscape(t, `x = f32[20,200] parameter(0)
y = f32[200,24] parameter(1)
dot = f32[20,24] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
r = f32[20,24] tanh(dot)`)
	v := kerneltest.Verifier(t, p, 1)
	b := New()
	for _, tiling := range []symtile.Tiling{{20, 24, 200}, {
		8, 24, 200,
	}, {20, 7, 16}, {9, 24, 70}} {
		for _, parts := range []int64{2, 3, 8, 64} {
			verify(
				t, b, v, p,
				kernels.Plan{Tiles: tiling}.With("splitk", parts).With("threads", 3),
			)
		}
	}
}

// TestSplitScratch: a part of 556 of 1100 terms is divided into larger blocks than all of
// them, and so needs more scratch.
func TestSplitScratch(t *testing.T) {
	p, _ := landscape(t, `x = f32[512,1100] parameter(0)
y = f32[1100,512] parameter(1)
d = f32[512,512] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}`)
	v := kerneltest.Verifier(t, p, 1)
	plan := kernels.Plan{Tiles: symtile.Tiling{512, 512, 1100}}
	for _, parts := range []int64{2, 3, 7} {
		verify(t, New(), v, p, plan.With("splitk", parts).With("threads", 2))
	}
}

// TestSplitBytes: partial sums of bytes add up to the bits of the whole, whose sums exceed 31
// bits and begin again.
func TestSplitBytes(t *testing.T) {
	p, _ := landscape(t, `x = s8[20,200] parameter(0)
y = s8[200,33] parameter(1)
d = s32[20,33] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
c = s32[] constant(100000)
many = s32[20,33] broadcast(c), dimensions={}
r = s32[20,33] multiply(d, many)`)
	v := kerneltest.Verifier(t, p, 1)
	for _, tiling := range []symtile.Tiling{{20, 33, 200}, {8, 33, 200}, {9, 33, 70}} {
		for _, parts := range []int64{2, 3, 8} {
			verify(
				t, New(), v, p,
				kernels.Plan{Tiles: tiling}.With("splitk", parts).With("threads", 3),
			)
		}
	}
}

// TestSplitReductions: iterations of a reduction are divided, whatever it begins
// from, and what follows it sees all of them; with more parts than iterations
// nothing is.
func TestSplitReductions(t *testing.T) {
	for _, monoid := range []string{"add", "maximum", "minimum"} {
		p, _ := landscape(t, strings.ReplaceAll(`x = f32[300,40] parameter(0)
y = f32[300,40] parameter(1)
start = f32[] constant(3)
z = f32[300,40] add(x, y)
all = f32[40] reduce(z, start), dimensions={0}, to_apply=$0
r = f32[40] negate(all)`, "$0", monoid))
		v := kerneltest.Verifier(t, p, 1)
		b := New()
		for _, tiling := range []symtile.Tiling{
			{40, 300}, {40, 50}, {40, 7}, {16, 33},
		} {
			for _, parts := range []int64{2, 3, 8, 64} {
				plan := kernels.Plan{Tiles: tiling}.With("splitk", parts).With("threads", 3)
				verify(t, b, v, p, plan)
				pricesBusyLanes(t, b, p, plan)
			}
		}
	}
}

// pricesBusyLanes: a plan that is not divided is priced for the lanes that it keeps busy,
// by which races judge plans that other work favours.
func pricesBusyLanes(t *testing.T, b *Backend, p *symtile.Program, plan kernels.Plan) {
	t.Helper()
	x, err := b.Pricer(p)
	if err != nil {
		t.Fatal(err)
	}
	price := kernels.Price{Seconds: make([]float64, len(x.Terms().Names))}
	if err := x.Price(plan, &price); err != nil {
		t.Fatal(err)
	}
	k, err := b.compile(p, plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	want := min(float64(len(k.programs.workers)), float64(b.Identity().Lanes))
	if price.Lanes != want {
		t.Errorf("%s: priced for %v lanes of %v", plan, price.Lanes, want)
	}
}

// A row sum of everything is divided too.
func TestSplitSums(t *testing.T) {
	p, _ := landscape(t, `x = f32[130,70] parameter(0)
zero = f32[] constant(0)
r = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add`)
	v := kerneltest.Verifier(t, p, 1)
	for _, tiling := range []symtile.Tiling{
		{16, 70}, {130, 8}, {13, 7},
	} {
		verify(
			t, New(), v, p,
			kernels.Plan{Tiles: tiling}.With("splitk", 4).With("threads", 3),
		)
	}
}

// Several reductions of one loop are divided together, each output by the part that
// arrives last; a fusion with an output that depends on none is not.
func TestSplitSeveral(t *testing.T) {
	for _, c := range []struct {
		text    string
		divided int
	}{
		{`x = f32[300,40] parameter(0)
zero = f32[] constant(0)
low = f32[] constant(-inf)
square = f32[300,40] multiply(x, x)
sum = f32[40] reduce(x, zero), dimensions={0}, to_apply=add
squares = f32[40] reduce(square, zero), dimensions={0}, to_apply=add
most = f32[40] reduce(x, low), dimensions={0}, to_apply=maximum
n = f32[] constant(300)
all = f32[40] broadcast(n), dimensions={}
mean = f32[40] divide(sum, all)
r = (f32[40], f32[40], f32[40]) tuple(mean, squares, most)`, 3},
		{`x = f32[300,40] parameter(0)
zero = f32[] constant(0)
square = f32[300,40] multiply(x, x)
squares = f32[40] reduce(square, zero), dimensions={0}, to_apply=add
negated = f32[40] negate(squares)
r = (f32[40], f32[40]) tuple(squares, negated)`, 1},
		{`x = f32[300,40] parameter(0)
y = f32[40] parameter(1)
zero = f32[] constant(0)
sum = f32[40] reduce(x, zero), dimensions={0}, to_apply=add
negated = f32[40] negate(y)
r = (f32[40], f32[40]) tuple(sum, negated)`, 0},
	} {
		p, _ := landscape(t, c.text)
		if n := len(dividedOps(p)); n != c.divided && vector.Supported() {
			t.Errorf("%d ops are divided, want %d:\n%s", n, c.divided, c.text)
		}
		v := kerneltest.Verifier(t, p, 1)
		b := New()
		for _, tiling := range []symtile.Tiling{{40, 300}, {40, 50}, {16, 33}} {
			for _, parts := range []int64{2, 3, 8} {
				verify(
					t, b, v, p,
					kernels.Plan{Tiles: tiling}.With("splitk", parts).With("threads", 3),
				)
			}
		}
	}
}

func TestSplitsAreTheSameTwice(t *testing.T) {
	s := &splitK{parts: 3}
	s.bytes = 64
	s.allocate(1)
	v := &value{n: 1}
	var first float32
	for n, order := range [][]int64{{
		0, 1, 2,
	}, {2, 1, 0}, {1, 2, 0}} {
		s.reset()
		c := new(accumulator)
		splitDot[float32](c, s, v, 0)
		w := &worker{
			slots: []int64{0},
			workerScratch: workerScratch{
				arena:   alignedBytes(64),
				packing: alignedBytes(1 << 16),
			},
		}
		w.addresses = append(w.addresses, unsafe.Pointer(&w.arena[0]))
		for k, part := range order {
			w.part, w.skipRest = part, false
			whole[float32](w, v)[0] = []float32{1e8, -1e8, 3}[part]
			c.epilogue[0](w)
			if w.skipRest != (k < 2) {
				t.Fatalf("part %d, %d to come: ended is %v", part, k, w.skipRest)
			}
		}
		got := whole[float32](w, v)[0]
		if n == 0 {
			first = got
		}
		if math.Float32bits(got) != math.Float32bits(first) || got != 3 {
			t.Errorf("parts in the order %v: %v", order, got)
		}
	}
}
