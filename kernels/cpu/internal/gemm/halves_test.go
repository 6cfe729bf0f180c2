package gemm

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// A half is a type of 16 bits.
type half struct {
	of    func(uint16) float32
	round func(uint32) uint32
	one   func(r *rand.Rand) uint16
}

var (
	bfloat = half{ofBF16, roundBF16, oneBF16}
	half16 = half{ofF16, roundF16, oneF16}
)

// halfOf is the type of the operands of products.
func halfOf(how Halves) half {
	if how == F16Tiles {
		return half16
	}
	return bfloat
}

// bits are those of x rounded.
func (h half) bits(x float32) uint16 { return uint16(h.round(math.Float32bits(x))) }

// random makes a matrix whose products are of one magnitude, with zeros, denormal numbers
// and the ends of the range among them.
func (h half) random(l layout, m, n int, r *rand.Rand) Matrix[float32] {
	x := random[float32](l, m, n, r)
	for at := range x.Data {
		x.Data[at] = h.of(h.one(r))
	}
	return x
}

func randomBF16(l layout, m, n int, r *rand.Rand) Matrix[float32] {
	return bfloat.random(l, m, n, r)
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

func oneF16(r *rand.Rand) uint16 {
	bits := uint16(r.Uint32())
	switch r.IntN(40) {
	case 0:
		return bits & 0x8000
	case 1, 2:
		return bits & 0x83ff // a denormal number
	case 3:
		return bits&0x83ff | 0x7800 // the largest ones
	}
	return bits&0x8fff | 0x3000
}

// plainlyBF16 is a product by the definition of how.
func plainlyBF16(c, a, b Matrix[float32], m, n, k int, how Halves) {
	h := halfOf(how)
	for i := range m {
		for j := range n {
			term := func(p int, sum float32) float32 {
				if p >= k {
					return multiplyAddHalf(0, 0, sum)
				}
				x := a.Data[i*a.Row+p*a.Col]
				y := b.Data[p*b.Row+j*b.Col]
				return multiplyAddHalf(h.of(h.bits(x)), h.of(h.bits(y)), sum)
			}
			z := &c.Data[i*c.Row+j]
			for p := 0; p < k && how == Pairs; p += 2 {
				*z = term(p, term(p+1, *z))
			}
			for p := 0; p < k && how != Pairs; p += 32 {
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

// TestBF16Tiles and TestF16Tiles emulate the kernels of AMX, decoded from their bytes, with
// memory that ends where the operands do.
func TestBF16Tiles(t *testing.T) { emulateTiles(t, "multiplyTilesBF16", Tiles) }

func TestF16Tiles(t *testing.T) { emulateTiles(t, "multiplyTilesF16", F16Tiles) }

func emulateTiles(t *testing.T, name string, by Halves) {
	all, h := listings(t), halfOf(by)
	r := rand.New(rand.NewPCG(23, 24))
	for trial := range 16 {
		rows, blocks, steps := 32, 1+trial%3, 1+r.IntN(3)
		if trial%4 == 3 { // one block of fewer rows
			rows, blocks = 1+r.IntN(32), 1
		}
		code := all[name]
		if rows <= 16 {
			code = all[name+"Low"]
		}
		m, k := rows*blocks, 32*steps
		a := h.random(layouts[0], m, k, r)
		b := h.random(layouts[0], k, 32, r)
		c := random[float32](layouts[2], m, 32, r)
		how := trial % 2
		packed := make([]byte, 2*m*k)
		for at, x := range a.Data {
			binary.LittleEndian.PutUint16(packed[2*at:], h.bits(x))
		}
		panel := make([]byte, 2*32*k)
		for at, x := range b.Data {
			p, j := at/32, at%32 // pairs of rows
			to := panel[p/2*128+4*j+p%2*2:]
			binary.LittleEndian.PutUint16(to, h.bits(x))
		}
		var vm machine
		config := vm.place(tileConfiguration(rows))
		at := vm.place(raw(c.Data))
		vm.args = map[string]uint64{
			"config": config,
			"panels": 1,
			"next":   0,
			"blocks": uint64(blocks),
			"steps":  uint64(steps),
			"a":      vm.place(packed),
			"ars":    uint64(2 * k),
			"b":      vm.place(panel),
			"c":      at,
			"crs":    uint64(4 * c.Row),
			"fetch":  vm.place(randomFetch(r, 4*c.Row)),
			"how":    uint64(how),
		}
		want := bytes.Clone(vm.mem)
		if err := vm.run(code); err != nil {
			t.Fatal(err)
		}
		for i := range m * how {
			clear(c.Data[i*c.Row:][:32])
		}
		plainlyBF16(c, a, b, m, 32, k, by)
		copy(want[at:], raw(c.Data))
		if !bytes.Equal(want, vm.mem) {
			t.Fatalf("%d blocks of %d rows, %d steps, how %d: a wrong result", blocks, rows, steps, how)
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
		a, b := ofBF16(upper(number())), ofBF16(upper(number()))
		if r.IntN(2) == 0 {
			a, b = finiteF16(r), finiteF16(r)
		}
		sum := number()
		if r.IntN(2) == 0 { // of about the product's magnitude
			sum = -a * b * (1 + float32(r.IntN(9)-4)*0x1p-22)
		}
		x, y := exact(a), exact(b)
		z := exact(sum)
		x.Mul(x, y).Add(x, z)
		want := rounded(x)
		if got := multiplyAddHalf(a, b, sum); float64(got) != want {
			t.Fatalf("%x · %x + %x is %x, not %x", a, b, sum, got, want)
		}
		u := number()
		want = rounded(z.Add(z, exact(u)))
		if got := addFlushed(sum, u); float64(got) != want {
			t.Fatalf("%x + %x is %x, not %x", sum, u, got, want)
		}
	}
}

// finiteF16 is any f16 that is a number.
func finiteF16(r *rand.Rand) float32 {
	x := uint16(r.Uint32())
	if x&0x7c00 == 0x7c00 {
		x ^= 0x4000
	}
	return ofF16(x)
}

// TestF16 holds all f16 against their definition, and rounding of those, of the middles
// between neighbours, and of what is next to these.
func TestF16(t *testing.T) {
	round := func(x float32) uint32 { return roundF16(math.Float32bits(x)) }
	for bits := range uint32(0x7c00) {
		fraction, exponent := float64(bits&0x3ff), int(bits>>10)
		if exponent > 0 {
			fraction += 0x400
		}
		x := ofF16(uint16(bits))
		if want := math.Ldexp(fraction, max(exponent, 1)-25); float64(x) != want {
			t.Fatalf("%#x is %g, not %g", bits, x, want)
		}
		next := 65536.0 // what would come after the largest one
		if bits < 0x7bff {
			next = float64(ofF16(uint16(bits + 1)))
		}
		middle := float32((float64(x) + next) / 2) // exact
		under := math.Float32frombits(math.Float32bits(middle) - 1)
		over := math.Float32frombits(math.Float32bits(middle) + 1)
		even := bits + bits&1
		got := [...]uint32{round(x), round(-x), round(middle), round(under), round(over), round(-over)}
		if want := [...]uint32{bits, bits | 0x8000, even, bits, bits + 1, (bits + 1) | 0x8000}; got != want {
			t.Fatalf("%g: %#x, not %#x", x, got, want)
		}
		if y := ofF16(uint16(bits | 0x8000)); y != -x || !math.Signbit(float64(y)) {
			t.Fatalf("%#x is %g", bits|0x8000, y)
		}
	}
	infinity := float32(math.Inf(1))
	if ofF16(0x7c00) != infinity || round(infinity) != 0x7c00 || round(-1e9) != 0xfc00 {
		t.Error("infinities")
	}
	quiet := math.Float32bits(ofF16(0xfc01))
	if quiet != 0xffc02000 || roundF16(0xff802000) != 0xfe01 {
		t.Errorf("a NaN is %#x, and rounded %#x", quiet, roundF16(0xff802000))
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

// fusedF16 is sum + a·b rounded once to f16, as VFMADD231PH of AVX512-FP16 computes it: the
// product has 22 bits, and f64 holds its sum with an f16.
func fusedF16(a, b, sum float32) float32 {
	exact := float64(a)*float64(b) + float64(sum)
	return ofF16(half16.bits(roundToOdd(exact)))
}

// roundToOdd is x cut to f32, its last bit set where anything was cut, so that rounding it
// further to fewer bits rounds x.
func roundToOdd(x float64) float32 {
	y := float32(x)
	if float64(y) == x || math.IsInf(float64(y), 0) {
		return y
	}
	if math.Abs(float64(y)) > math.Abs(x) {
		y = math.Nextafter32(y, 0)
	}
	return math.Float32frombits(math.Float32bits(y) | 1)
}

// sumF16 adds products by fusedF16, chains of so many terms, and the chains in f32.
func sumF16(a, b []float32, chain int) float32 {
	total := float32(0)
	for from := 0; from < len(a); from += chain {
		sum := float32(0)
		for p := from; p < min(from+chain, len(a)); p++ {
			sum = fusedF16(a[p], b[p], sum)
		}
		total += sum
	}
	return total
}

// TestF16MultiplyAddsAreNoSums is why dots of f16 do not use the multiply-adds of
// AVX512-FP16: a product of two f16 can be above the range of f16 or below it, and sums of
// a few terms are off by more than sums of f32 may be.
func TestF16MultiplyAddsAreNoSums(t *testing.T) {
	if got := fusedF16(300, 300, -60000); got != 30000 {
		t.Errorf("one rounding: 300·300-60000 is %g", got)
	}
	large, small := []float32{300, -300}, []float32{0x1p-13, 0x1p-13}
	if got := sumF16(large, []float32{300, 300}, 1); !math.IsNaN(float64(got)) {
		t.Errorf("90000 - 90000 is %g, not the difference of infinities", got)
	}
	if got := sumF16(small, small, 2); got != 0 {
		t.Errorf("2⁻²⁶ + 2⁻²⁶ is %g, not 0", got)
	}
	const k = 1024
	r := rand.New(rand.NewPCG(31, 32))
	for _, chain := range []int{4, 16, 64, k} {
		worst := 0.0
		for range 200 {
			worst = max(worst, offF16(r, k, chain))
		}
		limit := 4 * 0x1p-24 * math.Sqrt(k)
		t.Logf("chains of %d: %.3g of the sum of absolute terms, %.0f times the bound", chain, worst, worst/limit)
		if worst < 5*limit {
			t.Errorf("chains of %d are as good as sums of f32: %.3g", chain, worst)
		}
	}
}

// offF16 is by how much one such sum of k terms is off, relative to the absolute terms.
func offF16(r *rand.Rand, k, chain int) float64 {
	a, b := make([]float32, k), make([]float32, k)
	sum, size := 0.0, 0.0
	for p := range a {
		a[p] = ofF16(half16.bits(r.Float32()))
		b[p] = ofF16(half16.bits(r.Float32()))
		term := float64(a[p]) * float64(b[p])
		sum += term
		size += math.Abs(term)
	}
	return math.Abs(float64(sumF16(a, b, chain))-sum) / size
}
