//go:build linux && amd64 && !noasm

package amd64

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// A tree computes one lane of a random chain in Go.
type tree func(x, y float32) float32

// randomChain returns a chain of about n operations on x and y, the value to
// store, and what it should be.
func randomChain(r *rand.Rand, c *Chain, n int) (Value, tree) {
	values := []Value{
		c.Load(VMOVUPS, Mem{Base: RSI}, 32),
		c.Load(VMOVUPS, Mem{Base: RDX}, 32),
	}
	trees := []tree{
		func(x, y float32) float32 { return x },
		func(x, y float32) float32 { return y },
	}
	pick := func() (Value, tree) {
		if r.IntN(4) == 0 {
			k := float32(r.IntN(9)-4) / 4
			return c.Float32(float64(k)), func(x, y float32) float32 { return k }
		}
		k := len(values) - 1 - r.IntN(min(len(values), 6))
		return values[k], trees[k]
	}
	for range n {
		a, f := pick()
		b, g := pick()
		d, h := pick()
		v, t := randomStep(r, c, a, b, d, f, g, h)
		values, trees = append(values, v), append(trees, t)
	}
	return values[len(values)-1], trees[len(trees)-1]
}

func randomStep(
	r *rand.Rand, c *Chain, a, b, d Value, f, g, h tree,
) (Value, tree) {
	fused := func(sign float32) tree {
		return func(x, y float32) float32 {
			return float32(math.FMA(
				float64(sign*f(x, y)),
				float64(g(x, y)),
				float64(h(x, y)),
			))
		}
	}
	switch r.IntN(6) {
	case 0:
		return c.Do(VADDPS, a, b), func(x, y float32) float32 {
			return f(x, y) + g(x, y)
		}
	case 1:
		return c.Do(VSUBPS, a, b), func(x, y float32) float32 {
			return f(x, y) - g(x, y)
		}
	case 2:
		less := c.Do(VCMPPS, a, b, compareLT)
		return c.Do(VBLENDVPS, d, a, less), func(x, y float32) float32 {
			if f(x, y) < g(x, y) {
				return f(x, y)
			}
			return h(x, y)
		}
	case 3:
		return c.NegMulAdd32(a, b, d), fused(-1)
	}
	return c.MulAdd32(a, b, d), fused(1)
}

// binaryLoop returns a kernel that applies what emit adds to c, to [RSI] and [RDX],
// storing to [RCX]; sum, if not 0, is an accumulator stored to [R8].
func binaryLoop(t *testing.T, c *Chain, copies int, sums []Reg) Func {
	t.Helper()
	a := &Assembler{}
	for k, r := range []Reg{RAX, RSI, RDX, RCX, R8} {
		a.Emit(MOV, r, Mem{Base: RDI, Disp: int32(8 * k)})
	}
	for _, s := range sums {
		a.Emit(VXORPS, s, s, s)
	}
	l := &Loop{
		Chain:    c,
		Counter:  RAX,
		Pointers: []Pointer{{RSI, 4}, {RDX, 4}, {RCX, 4}},
		Width:    4,
		Copies:   copies,
		Scratch:  R9,
		Mask:     Y1,
	}
	if err := l.Emit(a); err != nil {
		t.Fatal(err)
	}
	for k, s := range sums {
		a.Emit(VMOVUPS, Mem{Base: R8, Disp: int32(32 * k)}, s)
	}
	a.Emit(RET)
	return load(t, a)
}

type binaryArgs struct {
	n              int
	x, y, z, total *float32
}

// small returns n whole numbers near 0, on which sums and products are exact for
// a while; what a lane computes must agree bit for bit in any case.
func small(r *rand.Rand, v []float32) {
	for k := range v {
		v[k] = float32(r.IntN(17) - 8)
	}
}

// TestRandomChains holds chains, in every number of copies and with every
// remainder, against the same operations in Go, bit for bit.
func TestRandomChains(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := &Chain{}
		v, want := randomChain(r, c, 1+r.IntN(14))
		c.Store(VMOVUPS, Mem{Base: RCX}, 32, v)
		f := binaryLoop(t, c, 1+r.IntN(6), nil)
		for range 4 {
			n := r.IntN(100)
			x, y, z := guarded(t, n), guarded(t, n), guarded(t, n)
			small(r, x)
			small(r, y)
			f.Call(unsafe.Pointer(&binaryArgs{
				n, unsafe.SliceData(x),
				unsafe.SliceData(y), unsafe.SliceData(z), nil,
			}))
			for k := range n {
				w := want(x[k], y[k])
				if math.Float32bits(z[k]) != math.Float32bits(w) &&
					(z[k] == z[k] || w == w) {
					t.Fatalf("seed %d, n %d: z[%d] = %v, want %v of %v, %v", seed, n, k, z[k], w, x[k], y[k])
				}
			}
		}
	}
}

// TestSpilling holds chains with more values alive than registers, twice over,
// against the same operations in Go. The slots are as few as hold them.
func TestSpilling(t *testing.T) {
	area := make([]float32, 8*64)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		c := &Chain{}
		n := 14 + r.IntN(24)
		v, want := wideChain(r, c, n)
		c.Store(VMOVUPS, Mem{Base: RCX}, 32, v)
		slots, reserved := n-9, []Reg(nil)
		if seed%3 == 0 { // four registers are left
			slots = n + 4
			reserved = []Reg{Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15}
		}
		f := spillingLoop(t, c, slots, reserved)
		for n := range 20 {
			x, y, z := guarded(t, n), guarded(t, n), guarded(t, n)
			small(r, x)
			small(r, y)
			f.Call(unsafe.Pointer(&binaryArgs{
				n, unsafe.SliceData(x), unsafe.SliceData(y),
				unsafe.SliceData(z), &area[0],
			}))
			for k := range n {
				w := want(x[k], y[k])
				if math.Float32bits(z[k]) != math.Float32bits(w) &&
					(z[k] == z[k] || w == w) {
					t.Fatalf("seed %d, n %d: z[%d] = %v, want %v of %v, %v", seed, n, k, z[k], w, x[k], y[k])
				}
			}
		}
	}
	c := &Chain{}
	v, _ := wideChain(rand.New(rand.NewPCG(1, 1)), c, 30)
	c.Store(VMOVUPS, Mem{Base: RCX}, 32, v)
	for _, slots := range []int{0, 1, 8} {
		if err := c.Emit(&Assembler{}, Placement{
			Spill:      Mem{Base: R8},
			SpillSlots: slots,
		}); err == nil {
			t.Errorf("fits in %d slots", slots)
		}
	}
	two := Placement{
		Spill:      Mem{Base: R8},
		SpillSlots: 60,
		Mask:       Y2,
		Reserved: []Reg{
			Y3, Y4, Y5, Y6, Y7, Y8, Y9,
			Y10, Y11, Y12, Y13, Y14, Y15,
		},
	}
	if err := c.Emit(&Assembler{}, two); err == nil {
		t.Error("three operands fit in two registers")
	}
}

// wideChain keeps n values alive and joins them in random order, then does the
// same with the result; one value is of 16 bytes.
func wideChain(r *rand.Rand, c *Chain, n int) (Value, tree) {
	x := c.Load(VMOVUPS, Mem{Base: RSI}, 32)
	y := c.Load(VMOVUPS, Mem{Base: RDX}, 32)
	high := c.Do(VEXTRACTF128, x, Imm(1))
	a, f := widen(
		r, c, n, x, y,
		func(x, y float32) float32 { return x },
		func(x, y float32) float32 { return y },
	)
	a, f = widen(r, c, n, a, y, f, func(x, y float32) float32 {
		return y
	})
	swapped := c.Do(VINSERTF128, x, high, Imm(1)) // x again
	return c.Do(VADDPS, a, swapped), func(x, y float32) float32 {
		return f(x, y) + x
	}
}

func widen(
	r *rand.Rand, c *Chain, n int, x, y Value, xs, ys tree,
) (Value, tree) {
	values, trees := []Value{x, y}, []tree{xs, ys}
	for k := range n {
		i, add := r.IntN(2), float32(k+1)
		f := trees[i]
		values = append(values, c.Do(VSUBPS, c.Float32(float64(add)), values[i]))
		trees = append(trees, func(x, y float32) float32 { return add - f(x, y) })
	}
	sum, total := values[0], trees[0]
	for _, k := range r.Perm(len(values)) {
		f, g := total, trees[k]
		other := []int{
			k, r.IntN(2), r.IntN(len(values)),
		}[r.IntN(3)]
		h := trees[other]
		half := c.Do(VMULPS, sum, c.Float32(0.25)) // so that nothing overflows
		sum = c.MulAdd32(values[k], values[other], half)
		total = func(x, y float32) float32 {
			return float32(math.FMA(
				float64(g(x, y)),
				float64(h(x, y)),
				float64(f(x, y)*0.25),
			))
		}
	}
	return c.Do(VMULPS, sum, c.Float32(1.0/1024)),
		func(x, y float32) float32 { return total(x, y) / 1024 }
}

// spillingLoop is binaryLoop with slots at [R8].
func spillingLoop(t *testing.T, c *Chain, slots int, reserved []Reg) Func {
	t.Helper()
	a := &Assembler{}
	for k, r := range []Reg{RAX, RSI, RDX, RCX, R8} {
		a.Emit(MOV, r, Mem{Base: RDI, Disp: int32(8 * k)})
	}
	l := &Loop{
		Chain:      c,
		Counter:    RAX,
		Pointers:   []Pointer{{RSI, 4}, {RDX, 4}, {RCX, 4}},
		Width:      4,
		Copies:     2,
		Scratch:    R9,
		Mask:       Y1,
		Spill:      Mem{Base: R8},
		SpillSlots: slots,
		Reserved:   reserved,
	}
	if err := l.Emit(a); err != nil {
		t.Fatal(err)
	}
	a.Emit(RET)
	return load(t, a)
}

// TestUpdates holds accumulators, one a copy, against sums in Go: lanes that the
// mask turns off add nothing.
func TestUpdates(t *testing.T) {
	for _, copies := range []int{1, 2, 4} {
		sums := []Reg{Y8, Y9, Y10, Y11}[:copies]
		c := &Chain{}
		total := c.Pinned(sums...)
		x := c.Load(VMOVUPS, Mem{Base: RSI}, 32)
		y := c.Load(VMOVUPS, Mem{Base: RDX}, 32)
		c.Update(total, VADDPS, c.Do(VADDPS, x, c.Float32(3)))
		c.Update(total, VFMADD231PS, x, y)
		c.Update(total, VFMADD231PS, x, c.Float32(2))
		c.Assign(
			total,
			c.Do(VADDPS, total, c.Do(VADDPS, y, c.Float32(1))),
		)
		f := binaryLoop(t, c, copies, sums)
		r := rand.New(rand.NewPCG(uint64(copies), 8))
		for n := range 90 {
			x, y, got := guarded(t, n), guarded(t, n), make([]float32, 8*copies)
			small(r, x)
			small(r, y)
			for k := range x {
				x[k], y[k] = x[k]+9, y[k]+9 // so that no sum is 0
			}
			f.Call(unsafe.Pointer(&binaryArgs{
				n, unsafe.SliceData(x), unsafe.SliceData(y), nil, &got[0],
			}))
			for u := 1; u < copies && n >= 8*copies; u++ {
				if got[8*u] == 0 {
					t.Errorf("%d copies, n %d: copy %d has no sum of its own", copies, n, u)
				}
			}
			sum, want := float32(0), float32(0)
			for _, g := range got {
				sum += g
			}
			for k := range n {
				want += x[k] + 3 + x[k]*y[k] +
					2*x[k] + y[k] + 1
			}
			if sum != want {
				t.Errorf("%d copies, n %d: %v, want %v", copies, n, sum, want)
			}
		}
	}
}

// TestExtremes holds maximum and minimum against math.Max and math.Min, which
// know ±0, and NaN of either operand.
func TestExtremes(t *testing.T) {
	nan, zero := float32(math.NaN()), float32(math.Copysign(0, -1))
	edges := []float32{
		0, zero, 1, -1, nan, -nan,
		float32(math.Inf(1)), float32(math.Inf(-1)),
		math.Float32frombits(0x7f800001),
	}
	var x, y []float32
	for _, a := range edges {
		for _, b := range edges {
			x, y = append(x, a), append(y, b)
		}
	}
	for _, f := range []struct {
		emit func(*Chain, Value, Value) Value
		want func(x, y float64) float64
	}{{(*Chain).Max32, math.Max}, {(*Chain).Min32, math.Min}} {
		c := &Chain{}
		c.Prefetch(PREFETCHT0, Mem{Base: RSI, Disp: 4096}, 32)
		c.Store(
			VMOVUPS, Mem{Base: RCX}, 32,
			f.emit(c, c.Load(
				VMOVUPS, Mem{Base: RSI}, 32,
			), c.Load(VMOVUPS, Mem{Base: RDX}, 32)),
		)
		z := make([]float32, len(x))
		binaryLoop(t, c, 4, nil).Call(unsafe.Pointer(&binaryArgs{
			len(x), &x[0],
			&y[0], &z[0], nil,
		}))
		for k := range x {
			want := float32(f.want(float64(x[k]), float64(y[k])))
			if x[k] != x[k] || y[k] != y[k] {
				want = nan // math.Max(+Inf, NaN) is +Inf
			}
			if math.Float32bits(z[k]) != math.Float32bits(want) &&
				(z[k] == z[k] || want == want) {
				t.Errorf("of %v, %v: %v, want %v", x[k], y[k], z[k], want)
			}
		}
	}
}

type axpy64Args struct {
	n    int
	a    float64
	x, y *float64
}

// TestDoubles is a loop over f64: four lanes, masks of eight bytes.
func TestDoubles(t *testing.T) {
	a := &Assembler{}
	a.Emit(MOV, RAX, Mem{Base: RDI})
	a.Emit(VBROADCASTSD, Y9, Mem{Base: RDI, Disp: 8})
	a.Emit(MOV, RSI, Mem{Base: RDI, Disp: 16})
	a.Emit(MOV, RDX, Mem{Base: RDI, Disp: 24})
	c := &Chain{}
	x := c.Load(VMOVUPD, Mem{Base: RSI}, 32)
	y := c.Load(VMOVUPD, Mem{Base: RDX}, 32)
	sum := c.MulAdd64(c.Pinned(Y9), x, y)
	c.Store(
		VMOVUPD, Mem{Base: RDX}, 32,
		c.NegMulAdd64(c.Const64(math.Float64bits(0.5)), x, sum),
	)
	l := &Loop{
		Chain:    c,
		Counter:  RAX,
		Pointers: []Pointer{{RSI, 8}, {RDX, 8}},
		Width:    8,
		Copies:   4,
		Scratch:  RCX,
		Mask:     Y8,
	}
	if err := l.Emit(a); err != nil {
		t.Fatal(err)
	}
	a.Emit(RET)
	f := load(t, a)
	for n := range 40 {
		halves, rest := guarded(t, 2*n), guarded(t, 2*n)
		x := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(halves))), n)
		y := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(rest))), n)
		for k := range x {
			x[k], y[k] = float64(k), float64(100*k)
		}
		f.Call(unsafe.Pointer(&axpy64Args{
			n, 3, unsafe.SliceData(x), unsafe.SliceData(y),
		}))
		for k := range y {
			if want := float64(100*k) + 2.5*float64(k); y[k] != want {
				t.Errorf("n %d: y[%d] = %v, want %v", n, k, y[k], want)
			}
		}
	}
}

// TestBroadcastThroughLow has a load that fills only the low half of a register.
func TestBroadcastThroughLow(t *testing.T) {
	c := &Chain{}
	c.Store(
		VMOVUPS, Mem{Base: RCX}, 32,
		c.Do(VBROADCASTSS, c.Load(VMOVSS, Mem{Base: RSI}, 0)),
	)
	x, z := []float32{7, 8}, make([]float32, 11)
	binaryLoop(t, c, 1, nil).Call(unsafe.Pointer(&binaryArgs{
		8, &x[0], &x[0], &z[0], nil,
	}))
	for k, v := range z {
		if want := [2]float32{7, 0}[k/8]; v != want {
			t.Errorf("z[%d] = %v, want %v", k, v, want)
		}
	}
}

func TestFoldLanes(t *testing.T) {
	c := &Chain{}
	x := c.Load(VMOVUPS, Mem{Base: RSI}, 32)
	c.Store(
		VMOVUPS, Mem{Base: RCX}, 32,
		c.FoldLanes32(x, func(x, y Value) Value { return c.Do(VADDPS, x, y) }),
	)
	v := []float32{1, 0x1p-24, 3, 1e8, 5, -1e8, 7, 0.1}
	z := make([]float32, 8)
	binaryLoop(t, c, 1, nil).Call(unsafe.Pointer(&binaryArgs{
		8, &v[0], &v[0], &z[0], nil,
	}))
	want := ((v[0] + v[4]) + (v[2] + v[6])) +
		((v[1] + v[5]) + (v[3] + v[7]))
	for k := range z {
		if z[k] != want {
			t.Errorf("lane %d: %v, want %v", k, z[k], want)
		}
	}
}

// TestUnusedValues take no registers.
func TestUnusedValues(t *testing.T) {
	c := &Chain{}
	x := c.Load(VMOVUPS, Mem{Base: RSI}, 32)
	for range 20 {
		c.Load(VMOVUPS, Mem{Base: RSI}, 32)
		c.Do(VADDPS, x, x)
	}
	c.Store(VMOVUPS, Mem{Base: RSI}, 32, x)
	if err := c.Emit(&Assembler{}, Placement{Copies: 8}); err != nil {
		t.Error(err)
	}
	for range 20 {
		c.StoreBF16(Mem{Base: RSI}, 16, c.LoadBF16(Mem{Base: RSI}, 16))
	}
	if err := c.Emit(&Assembler{}, Placement{
		Mask:    Y0,
		Active:  RAX,
		Scratch: RCX,
	}); err != nil {
		t.Error(err)
	}
}

func TestChainMistakes(t *testing.T) {
	wide := &Chain{}
	sum := wide.Do(
		VADDPS, wide.Load(VMOVUPS, Mem{Base: RSI}, 32), wide.Float32(2),
	)
	var loads []Value
	for k := range 16 {
		loads = append(
			loads,
			wide.Load(VMOVUPS, Mem{Base: RSI, Disp: int32(32 * k)}, 32),
		)
	}
	for _, v := range loads {
		sum = wide.Do(VADDPS, sum, v)
	}
	foreign := &Chain{}
	foreign.Do(VADDPS, Value(7), Value(8))
	unmasked, narrow := &Chain{}, &Chain{}
	unmasked.Store(
		VMOVUPS, Mem{Base: RSI}, 32,
		unmasked.Load(VBROADCASTF128, Mem{Base: RSI}, 16),
	)
	narrow.Store(
		VMOVUPS, Mem{Base: RSI}, 32,
		narrow.Load(VPMOVZXWD, Mem{Base: RSI}, 16),
	)
	notPinned := &Chain{}
	notPinned.Update(notPinned.Float32(1), VADDPS, notPinned.Float32(1))
	long, reset := &Chain{}, &Chain{}
	long.Do(VPSRLD, long.Float32(1), Imm(1<<40))
	reset.Float32(1)
	reset.Reset()
	reset.Do(VSQRTPS, Value(1))
	for _, x := range []struct {
		c    *Chain
		p    Placement
		want string
	}{
		{wide, Placement{}, "do not fit"},
		{foreign, Placement{}, "not a value of this chain"},
		{narrow, Placement{Mask: Y1}, "needs the registers Active and Scratch"},
		{unmasked, Placement{Mask: Y1}, "cannot be masked"},
		{unmasked, Placement{Mask: Y1, Copies: 2}, "one copy"},
		{long, Placement{}, "more than 32 bits"},
		{reset, Placement{}, "1 is not a value of this chain"},
		{notPinned, Placement{}, "only a pinned value can be changed"},
	} {
		a := &Assembler{}
		if err := x.c.Emit(a, x.p); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
		if len(a.code) != 0 {
			t.Errorf("%q left %d bytes of code", x.want, len(a.code))
		}
		a.Emit(VMOVUPS, Y1, a.Splat32(1))
		if _, err := a.Assemble(); err != nil {
			t.Errorf("after %q: %v", x.want, err)
		}
	}
}
