//go:build linux && amd64 && !noasm

package amd64

import (
	"math"
	"testing"
	"unsafe"
)

type softmaxArgs struct {
	n    int
	x, y *float32
}

// softmax returns a kernel over one row: its maximum, then e^(x - maximum) and
// their sum, then the quotients. Every pass has an accumulator a copy.
func softmax(t testing.TB) *Assembler {
	t.Helper()
	a := &Assembler{}
	accumulators := []Reg{Y12, Y13, Y14, Y15}
	x, y := Mem{Base: RSI}, Mem{Base: RDX}
	pass := func(c *Chain) {
		a.Emit(MOV, RAX, Mem{Base: RDI})
		a.Emit(MOV, RSI, Mem{Base: RDI, Disp: 8})
		a.Emit(MOV, RDX, Mem{Base: RDI, Disp: 16})
		l := &Loop{
			Chain:    c,
			Counter:  RAX,
			Pointers: []Pointer{{RSI, 4}, {RDX, 4}},
			Width:    4,
			Copies:   4,
			Scratch:  RCX,
			Mask:     Y0,
			Reserved: []Reg{Y11},
		}
		if err := l.Emit(a); err != nil {
			t.Fatal(err)
		}
	}
	start := func(with Mem) {
		for _, r := range accumulators {
			a.Emit(VMOVAPS, r, with)
		}
	}

	start(a.Splat32(math.Float32bits(float32(math.Inf(-1)))))
	c := &Chain{}
	c.Update(c.Pinned(accumulators...), VMAXPS, c.Load(VMOVUPS, x, 32))
	pass(c)
	foldInto(t, a, Y11, accumulators, VMAXPS)

	start(a.Splat32(0))
	c = &Chain{}
	e := c.Exp32(c.Do(
		VSUBPS, c.Load(VMOVUPS, x, 32), c.Pinned(Y11),
	))
	c.Update(c.Pinned(accumulators...), VADDPS, e)
	c.Store(VMOVUPS, y, 32, e)
	pass(c)
	foldInto(t, a, Y11, accumulators, VADDPS)

	a.Emit(VMOVAPS, Y1, a.Splat32(math.Float32bits(1)))
	a.Emit(VDIVPS, Y11, Y1, Y11)
	c = &Chain{}
	c.Store(
		VMOVUPS, y, 32,
		c.Do(VMULPS, c.Load(VMOVUPS, y, 32), c.Pinned(Y11)),
	)
	pass(c)
	a.Emit(RET)
	return a
}

// foldInto makes all lanes of to what op makes of all lanes of from.
func foldInto(t testing.TB, a *Assembler, to Reg, from []Reg, op Op) {
	t.Helper()
	c := &Chain{}
	combine := func(x, y Value) Value { return c.Do(op, x, y) }
	v := combine(
		combine(c.Pinned(from[0]), c.Pinned(from[1])),
		combine(c.Pinned(from[2]), c.Pinned(from[3])),
	)
	c.Assign(c.Pinned(to), c.FoldLanes32(v, combine))
	if err := c.Emit(a, Placement{}); err != nil {
		t.Fatal(err)
	}
}

// TestSoftmax has loops, accumulators, reductions and a function in one kernel, over
// rows of every remainder that end where a page does.
func TestSoftmax(t *testing.T) {
	f := load(t, softmax(t))
	for n := 1; n < 200; n++ {
		x, y := guarded(t, n), guarded(t, n)
		largest, sum := math.Inf(-1), 0.0
		for k := range x {
			x[k] = float32((k*37)%101)/5 - 7
			largest = max(largest, float64(x[k]))
		}
		for _, v := range x {
			sum += math.Exp(float64(v) - largest)
		}
		f.Call(unsafe.Pointer(&softmaxArgs{n, &x[0], &y[0]}))
		for k, v := range x {
			want := math.Exp(float64(v)-largest) / sum
			if math.Abs(float64(y[k])-want) > 4e-6*want {
				t.Fatalf("n %d: y[%d] = %v, want %v", n, k, y[k], want)
			}
		}
	}
}

// BenchmarkSoftmax is a row of 1024 in L1.
func BenchmarkSoftmax(b *testing.B) {
	f := load(b, softmax(b))
	x, y := make([]float32, 1024), make([]float32, 1024)
	best(b, len(x), "element", func() {
		f.Call(unsafe.Pointer(&softmaxArgs{len(x), &x[0], &y[0]}))
	})
}

// BenchmarkCompileSoftmax is what its three loops cost, from chains to pages.
func BenchmarkCompileSoftmax(b *testing.B) {
	b.ReportAllocs()
	best(b, 1, "kernel", func() {
		code, err := softmax(b).Assemble()
		if err != nil {
			b.Fatal(err)
		}
		loaded, err := Load(code)
		if err != nil {
			b.Skip(err)
		}
		loaded.Close()
	})
}
