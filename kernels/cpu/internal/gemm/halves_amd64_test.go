//go:build !noasm

package gemm

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// seed makes other products of the tests that compare the instructions of this processor.
var seed = flag.Uint64("seed", 0, "of random products")

// TestBF16 goes through products of bf16 and f16 by tiles and pairs, with kernels in Go in the
// place of those that TestBF16Tiles, TestF16Tiles and TestBF16Pairs emulate: packing in each layout,
// rounding, edges, slabs, operands of special values.
func TestBF16(t *testing.T) {
	restore, ok := EmulateHalves()
	if !ok {
		t.Skip("tiles are packed with AVX")
	}
	defer restore()
	productsOfBF16(t)
}

// TestBF16Here is the same with the instructions of this processor.
func TestBF16Here(t *testing.T) {
	if !HasHalves(Tiles) && !HasHalves(Pairs) && !HasHalves(F16Tiles) {
		t.Skip("this processor has none")
	}
	productsOfBF16(t)
}

// productsOfBF16 compares products with plain ones, bit for bit; short runs leave most out.
func productsOfBF16(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26+*seed))
	for trial := range 360 {
		if testing.Short() && r.IntN(9) > 0 {
			continue
		}
		how := []Halves{Tiles, Pairs}[trial%2]
		if trial >= 240 {
			how = F16Tiles
		}
		h := halfOf(how)
		if !HasHalves(how) {
			continue
		}
		m := 1 + r.IntN(50)
		n := 1 + r.IntN(70)
		k := 1 + r.IntN(100)
		switch trial % 40 {
		case 0, 1:
			m = 370 + r.IntN(60) // slabs
		case 2, 3:
			k = 500 + r.IntN(200)
		}
		of, by := layouts[trial/2%4], layouts[trial/8%4]
		a := h.random(of, m, k, r)
		b := h.random(by, k, n, r)
		if trial%3 == 0 { // what is not bf16 is rounded
			a = random[float32](of, m, k, r)
		}
		if trial%5 == 0 {
			at := r.IntN(len(a.Data))
			a.Data[at] = float32(math.Inf(1))
			at = r.IntN(len(b.Data))
			b.Data[at] = float32(math.NaN())
		}
		c := random[float32](layouts[2], m, n, r)
		for at := trial % 5; at < len(c.Data) && trial%4 == 0; at += 5 {
			c.Data[at] = specialFloat(r)
		}
		want := c
		want.Data = slices.Clone(c.Data)
		x := Product[float32]{
			C: c,
			A: a,
			B: b,
			M: m,
			N: n,
			K: k,
		}
		if x.Fresh = r.IntN(2) == 0; x.Fresh {
			for i := range m {
				clear(want.Data[i*want.Row:][:n])
			}
		}
		plainlyBF16(want, a, b, m, n, k, how)
		scratch := make([]float32, ScratchHalves(x, how))
		for i := range scratch {
			scratch[i] = float32(math.NaN())
		}
		if ReadsHalves(how) && trial%3 != 0 {
			x.shorten(r.IntN(4), 2)
		}
		MultiplyHalves(x, scratch, how)
		same := func(x, y float32) bool {
			return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
		}
		if !slices.EqualFunc(want.Data, c.Data, same) {
			t.Fatalf("%d×%d×%d, %v by %v, how %v: a wrong result", m, n, k, of, by, how)
		}
	}
}

// specialFloat is a denormal number, a zero, one of the largest, an infinity or no number.
func specialFloat(r *rand.Rand) float32 {
	bits := r.Uint32()
	switch r.IntN(5) {
	case 0:
		bits &= 0x807fffff
	case 1:
		bits &= 0x80000000
	case 2:
		bits = bits&0x80ffffff | 0x7f000000
	case 3:
		bits = bits&0x80000000 | 0x7f800000
	case 4:
		bits |= 0x7fc00000
	}
	return math.Float32frombits(bits)
}

// TestBF16Near says that the sums are as near to the exact ones as sums of f32 are.
func TestBF16Near(t *testing.T) {
	restore, ok := EmulateHalves()
	if !ok {
		t.Skip("tiles are packed with AVX")
	}
	defer restore()
	r := rand.New(rand.NewPCG(27, 28))
	const m, n, k = 20, 20, 1000
	for _, how := range []Halves{MultiplyAdds, Pairs, Tiles, F16Tiles} {
		h := halfOf(how)
		a := h.random(layouts[0], m, k, r)
		b := h.random(layouts[0], k, n, r)
		c := Dense(make([]float32, m*n), n)
		x := Product[float32]{
			C: c,
			A: a,
			B: b,
			M: m,
			N: n,
			K: k,
		}
		MultiplyHalves(x, make([]float32, ScratchHalves(x, how)), how)
		worst := 0.0
		for i := range m {
			for j := range n {
				sum, size := 0.0, 0.0
				for p := range k {
					x := float64(a.Data[i*k+p])
					y := float64(b.Data[p*n+j])
					term := x * y
					sum += term
					size += math.Abs(term)
				}
				off := math.Abs(float64(c.Data[i*n+j]) - sum)
				worst = max(worst, off/size)
			}
		}
		t.Logf("how %d: %.3g of the sum of absolute terms", how, worst)
		if worst > 4*0x1p-24*math.Sqrt(k) {
			t.Errorf("how %d: off by %.3g of the sum of absolute terms", how, worst)
		}
	}
}

// TestBF16Rounding holds the packing in vectors against roundBF16, for bits of all kinds, and
// TestF16Rounding against roundF16.
func TestBF16Rounding(t *testing.T) { packRounded(t, bfloat, pairTermsBF16, pairRowsBF16) }

func TestF16Rounding(t *testing.T) { packRounded(t, half16, pairTermsF16, pairRowsF16) }

func packRounded(
	t *testing.T, h half,
	packTerms func(turns int, to, from *byte),
	packRows func(pairs int, to *byte, toStride int, from *byte, fromStride int),
) {
	if i16 == nil {
		t.Skip("pairs are packed with AVX")
	}
	r := rand.New(rand.NewPCG(29, 30))
	for range 5000 {
		from := make([]float32, 32)
		for at := range from {
			bits := r.Uint32()
			switch r.IntN(6) {
			case 0:
				bits = bits&0xffff0000 | 0x8000
			case 1:
				bits |= 0x7f800000
			case 2:
				bits = bits&0x8ffff000 | 0x30001000 // middles of f16
			case 3:
				bits = bits&0x8fffffff | 0x30000000
			}
			from[at] = math.Float32frombits(bits)
		}
		var terms, rows [16]uint32
		at := byteMatrixOf(Dense(from, 16))
		to := byteMatrixOf(Dense(float32s(terms[:]), 16))
		packTerms(2, to.first(), at.first())
		by := byteMatrixOf(Dense(float32s(rows[:]), 16))
		packRows(1, by.first(), 64, at.first(), at.row)
		for p := range 16 {
			want := h.pair(from[2*p], from[2*p+1])
			if terms[p] != want {
				t.Fatalf("terms %d: %#x, not %#x", p, terms[p], want)
			}
			want = h.pair(from[p], from[p+16])
			if rows[p] != want {
				t.Fatalf("rows %d: %#x, not %#x", p, rows[p], want)
			}
		}
	}
}

// TestBF16Pairs emulates the kernels of VDPBF16PS, decoded from their bytes.
func TestBF16Pairs(t *testing.T) {
	all := listings(t)
	r := rand.New(rand.NewPCG(33, 34))
	for _, rows := range []int{1, 2, 3, 4, 5, 6, 12} {
		for _, kind := range []string{"", "Masked"} {
			name := fmt.Sprintf("multiplyBF16Pairs%sRows%d", kind, rows)
			if rows == 12 && kind != "" {
				continue
			}
			for trial := range 40 {
				emulatePairs(t, name, all[name], rows, trial, kind != "", r)
			}
		}
	}
}

// emulatePairs runs a kernel for a number of pairs and columns.
func emulatePairs(t *testing.T, name string, code *listing, rows, trial int, masked bool, r *rand.Rand) {
	t.Helper()
	k, blocks, how := trial%10, 1+trial%2, trial/2%2
	m, n := rows*blocks, 32
	if masked {
		n = 1 + trial%16
	}
	terms := 2 * max(k, 1)
	a := randomBF16(layouts[0], m, terms, r)
	b := randomBF16(layouts[0], terms, n, r)
	c := random[float32](layouts[2], m, n, r)
	packed := make([]uint32, m*terms/2)
	for at := range packed {
		x, y := a.Data[2*at], a.Data[2*at+1]
		packed[at] = pairOf(x, y)
	}
	panel := make([]uint32, terms/2*n)
	for at := range panel {
		first := at/n*2*n + at%n
		x, y := b.Data[first], b.Data[first+n]
		panel[at] = pairOf(x, y)
	}
	var vm machine
	at := vm.place(raw(c.Data))
	vm.args = map[string]uint64{
		"blocks": uint64(blocks),
		"k":      uint64(k),
		"a":      vm.place(raw(float32s(packed))),
		"ars":    uint64(2 * terms),
		"acs":    4,
		"b":      vm.place(raw(float32s(panel))),
		"brs":    uint64(4 * n),
		"c":      at,
		"crs":    uint64(4 * c.Row),
		"mask":   vm.place(emulatedMask(n, 16, 4, true)),
		"ahead":  0,
		"step":   64,
		"how":    uint64(how),
	}
	want := bytes.Clone(vm.mem)
	if err := vm.run(code); err != nil {
		t.Fatalf("%s, %d columns, %d pairs: %v", name, n, k, err)
	}
	for i := range m * how {
		clear(c.Data[i*c.Row:][:n])
	}
	plainlyBF16(c, a, b, m, n, 2*k, Pairs)
	copy(want[at:], raw(c.Data))
	if !bytes.Equal(want, vm.mem) {
		t.Fatalf("%s, %d columns, %d pairs: a wrong result", name, n, k)
	}
}

// TestEmulateHalves forces the kernels on, and says what this processor has.
func TestEmulateHalves(t *testing.T) {
	t.Logf("tiles %v, of f16 %v, pairs %v", HasHalves(Tiles), HasHalves(F16Tiles), HasHalves(Pairs))
	restore, ok := EmulateHalves()
	if !ok {
		t.Skip("nothing to emulate")
	}
	if !HasHalves(Tiles) || !HasHalves(Pairs) || !HasHalves(F16Tiles) {
		t.Error("the kernels are not there")
	}
	restore()
}

// pair is two rounded numbers, the first in the low half.
func (h half) pair(x, y float32) uint32 {
	return uint32(h.bits(x)) | uint32(h.bits(y))<<16
}

func pairOf(x, y float32) uint32 { return bfloat.pair(x, y) }

// float32s is the same bits.
func float32s(x []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&x[0])), len(x))
}
