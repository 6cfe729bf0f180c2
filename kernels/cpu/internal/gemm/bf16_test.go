package gemm

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// randomBF16 makes a matrix of bf16 whose products are of one magnitude, with zeros,
// denormal numbers and the ends of the range among them.
func randomBF16(l layout, m, n int, r *rand.Rand) Matrix[float32] {
	x := random[float32](l, m, n, r)
	for at := range x.Data {
		x.Data[at] = ofBF16(oneBF16(r))
	}
	return x
}

func oneBF16(r *rand.Rand) uint16 {
	bits := uint16(r.Uint32())
	switch r.IntN(40) {
	case 0:
		return bits & 0x8000
	case 1:
		return bits & 0x807f // a denormal number
	case 2:
		return bits&0x80ff | 0x0080 // so small that products are flushed
	case 3:
		return bits&0x83ff | 0x4800
	}
	return bits&0x83ff | 0x3c00
}

// plainlyBF16 is a product by the definition of how.
func plainlyBF16(c, a, b Matrix[float32], m, n, k int, how BF16) {
	for i := range m {
		for j := range n {
			term := func(p int, sum float32) float32 {
				if p >= k {
					return multiplyAddBF16(0, 0, sum)
				}
				x := a.Data[i*a.Row+p*a.Col]
				y := b.Data[p*b.Row+j*b.Col]
				return multiplyAddBF16(bf16Of(x), bf16Of(y), sum)
			}
			z := &c.Data[i*c.Row+j]
			for p := 0; p < k && how == Pairs; p += 2 {
				*z = term(p, term(p+1, *z))
			}
			for p := 0; p < k && how == Tiles; p += 32 {
				var sums [2]float32
				for q := range 32 {
					sums[q%2] = term(p+q, sums[q%2])
				}
				both := addFlushed(sums[0], sums[1])
				*z = addFlushed(*z, both)
			}
		}
	}
}

func bf16Of(x float32) uint16 {
	return uint16(roundBF16(math.Float32bits(x)))
}

// TestBF16Tiles emulates the kernel of AMX, decoded from its bytes, with memory that ends
// where the operands do.
func TestBF16Tiles(t *testing.T) {
	code := listings(t)["multiplyTilesBF16"]
	r := rand.New(rand.NewPCG(23, 24))
	for trial := range 12 {
		blocks, steps := 1+trial%3, 1+r.IntN(3)
		m, k := 32*blocks, 32*steps
		a := randomBF16(layouts[0], m, k, r)
		b := randomBF16(layouts[0], k, 32, r)
		c := random[float32](layouts[2], m, 32, r)
		how := trial % 2
		packed := make([]byte, 2*m*k)
		for i := range m {
			for p := range k {
				// By block of 32 rows, step, half.
				tile := (i/32*steps + p/32) * 2
				tile += i % 32 / 16
				at := tile*1024 + i%16*64 + 2*(p%32)
				x := bf16Of(a.Data[i*k+p])
				binary.LittleEndian.PutUint16(packed[at:], x)
			}
		}
		panel := make([]byte, 2*32*k)
		for p := range k {
			for j := range 32 {
				// By step, half.
				tile := p/32*2 + j/16
				at := tile*1024 + p%32/2*64 + j%16*4
				at += p % 2 * 2
				x := bf16Of(b.Data[p*32+j])
				binary.LittleEndian.PutUint16(panel[at:], x)
			}
		}
		var vm machine
		config := vm.place(tileConfiguration())
		at := vm.place(raw(c.Data))
		vm.args = map[string]uint64{
			"config": config,
			"blocks": uint64(blocks),
			"steps":  uint64(steps),
			"a":      vm.place(packed),
			"b":      vm.place(panel),
			"c":      at,
			"crs":    uint64(4 * c.Row),
			"how":    uint64(how),
		}
		want := bytes.Clone(vm.mem)
		if err := vm.run(code); err != nil {
			t.Fatal(err)
		}
		for i := range m * how {
			clear(c.Data[i*c.Row:][:32])
		}
		plainlyBF16(c, a, b, m, 32, k, Tiles)
		copy(want[at:], raw(c.Data))
		if !bytes.Equal(want, vm.mem) {
			t.Fatalf("%d blocks, %d steps, how %d: a wrong result", blocks, steps, how)
		}
	}
}

// TestFlushed holds sums of f64 that are rounded again against exact ones.
func TestFlushed(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	number := func() float32 {
		for {
			x := math.Float32frombits(r.Uint32())
			if r.IntN(2) == 0 { // near the least normal number, and near 1
				x = math.Float32frombits(r.Uint32()&0x80ffffff | r.Uint32N(2)*0x3f000000)
			}
			if x-x == 0 {
				return x
			}
		}
	}
	exact := func(x float32) *big.Float {
		if math.Abs(float64(x)) < least {
			x = 0
		}
		return new(big.Float).SetPrec(700).SetFloat64(float64(x))
	}
	rounded := func(x *big.Float) float64 {
		short := new(big.Float).SetPrec(24) // to the nearest, ties to even
		y, _ := short.Set(x).Float64()
		switch a := math.Abs(y); {
		case a < least:
			return 0
		case a > math.MaxFloat32:
			return math.Inf(int(math.Copysign(1, y)))
		}
		return y
	}
	upper := func(x float32) uint16 { return uint16(math.Float32bits(x) >> 16) }
	for range 50000 {
		a, b := upper(number()), upper(number())
		sum := number()
		x, y := exact(ofBF16(a)), exact(ofBF16(b))
		z := exact(sum)
		x.Mul(x, y).Add(x, z)
		want := rounded(x)
		if got := multiplyAddBF16(a, b, sum); float64(got) != want {
			t.Fatalf("%x · %x + %x is %x, not %x", ofBF16(a), ofBF16(b), sum, got, want)
		}
		u := number()
		want = rounded(z.Add(z, exact(u)))
		if got := addFlushed(sum, u); float64(got) != want {
			t.Fatalf("%x + %x is %x, not %x", sum, u, got, want)
		}
	}
}

// TestRoundBF16 is rounding to the nearest, ties to even, by its definition.
func TestRoundBF16(t *testing.T) {
	for _, x := range [][2]uint32{
		{0x3f800000, 0x3f80},
		{0x3f808000, 0x3f80}, // a tie: to even
		{0x3f818000, 0x3f82},
		{0x3f808001, 0x3f81},
		{0x7f7fffff, 0x7f80}, // to infinity
		{0x7f800000, 0x7f80},
		{0x7f800001, 0x7fc0}, // a signalling NaN
		{0xffffffff, 0xffff},
		{0x80000001, 0x8000},
	} {
		if got := roundBF16(x[0]); got != x[1] {
			t.Errorf("%#x: %#x, not %#x", x[0], got, x[1])
		}
	}
}
