//go:build !noasm

package gemm

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// TestTiles goes through products of bytes by tiles, whose kernels TestTileKernels
// emulates, with kernels in Go in their place: packing, edges and blocks.
func TestTiles(t *testing.T) {
	if i16 == nil {
		t.Skip("tiles are packed with AVX")
	}
	f := tileFamilyInGo()
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 250 {
		m := 1 + r.IntN(90)
		n := 1 + r.IntN(90)
		k := 1 + r.IntN(200)
		switch trial % 50 {
		case 0:
			m = 250 + r.IntN(60) // two slabs
		case 1:
			k = 1000 + r.IntN(200)
		case 2:
			k = 64 * (1 + r.IntN(80)) // several parts
		}
		unsigned := randomSigns(r)
		a := randomInt8(layouts[r.IntN(4)], m, k, r, unsigned[0])
		b := randomInt8(layouts[r.IntN(4)], k, n, r, unsigned[1])
		c := random[int32](layouts[2], m, n, r)
		want := c
		want.Data = slices.Clone(c.Data)
		x := Product[int32]{
			C:     c,
			A:     a,
			B:     b,
			M:     m,
			N:     n,
			K:     k,
			Fresh: r.IntN(2) == 0,
		}
		if x.Fresh {
			for i := range m {
				clear(want.Data[i*want.Row:][:n])
			}
		}
		plainly(want, a, b, m, n, k)
		short := x
		short.shorten(r.IntN(4), 1)
		short.C.Data = slices.Clone(c.Data)
		f.multiply(unsigned, x, make([]int32, byteTiles.scratch(x.Caches, m, n, k)))
		f.multiply(unsigned, short, make([]int32, byteTiles.scratch(x.Caches, m, n, k)))
		if !slices.Equal(want.Data, short.C.Data) {
			t.Fatalf("%d×%d×%d, unsigned %v: a wrong result of short operands", m, n, k, unsigned)
		}
		if !slices.Equal(want.Data, c.Data) {
			t.Fatalf("%d×%d×%d, unsigned %v: a wrong result", m, n, k, unsigned)
		}
	}
}

// TestPassingSlabs has products of which slabs pass panels, and panels slabs, of so many shapes
// that last ones have fewer rows, columns and terms, with caches of a few KiB: bytes by kernels
// in Go, bf16 by emulation.
func TestPassingSlabs(t *testing.T) {
	restore, ok := EmulateHalves()
	if !ok {
		t.Skip("tiles are packed with AVX")
	}
	defer restore()
	f, h := tileFamilyInGo(), halfOf(Tiles)
	r := rand.New(rand.NewPCG(51, 52))
	standing := 0
	for range 60 {
		m, n, k := 1+r.IntN(150), 1+r.IntN(150), 1+r.IntN(500)
		c := Caches{First: 4 << 10, Second: (1 + r.IntN(60)) << 10, Third: 1 << 20}
		if byteTiles.blocking(c, m, n, k, nil).standing {
			standing++
		}
		of, by := layouts[r.IntN(4)], layouts[r.IntN(4)]
		unsigned := randomSigns(r)
		x := Product[int32]{
			C: random[int32](layouts[2], m, n, r),
			A: randomInt8(of, m, k, r, unsigned[0]),
			B: randomInt8(by, k, n, r, unsigned[1]),
			M: m, N: n, K: k, Caches: c,
		}
		want := x.C
		want.Data = slices.Clone(x.C.Data)
		plainly(want, x.A, x.B, m, n, k)
		x.shorten(r.IntN(4), 1)
		f.multiply(unsigned, x, make([]int32, byteTiles.scratch(c, m, n, k)))
		if !slices.Equal(want.Data, x.C.Data) {
			t.Fatalf("%d×%d×%d of bytes, %+v: a wrong result", m, n, k, c)
		}
		y := Product[float32]{
			C: random[float32](layouts[2], m, n, r),
			A: h.random(of, m, k, r), B: h.random(by, k, n, r),
			M: m, N: n, K: k, Caches: c,
		}
		sums := y.C
		sums.Data = slices.Clone(y.C.Data)
		plainlyBF16(sums, y.A, y.B, m, n, k, Tiles)
		y.shorten(r.IntN(4), 2)
		MultiplyHalves(y, make([]float32, ScratchHalves(y, Tiles)), Tiles)
		if !slices.Equal(sums.Data, y.C.Data) {
			t.Fatalf("%d×%d×%d of bf16, %+v: a wrong result", m, n, k, c)
		}
	}
	if standing < 15 || standing > 50 {
		t.Errorf("panels stand in %d of 60", standing)
	}
}

// tileFamilyInGo is kernels in Go in the place of those of AMX.
func tileFamilyInGo() *tileFamily {
	var f tileFamily
	for suffix, signed := range signs {
		kernel := func(config *byte, panels, blocks, steps int, a *byte, ars int, b *byte, next int, c *byte, crs int, _ *byte, how int) {
			x := plainTiles{rows: tileConfigRows(config), blocks: blocks, steps: steps, ars: ars, crs: crs, how: how, signed: signed}
			last := blocks*x.rows - 1
			for p := range panels {
				x.multiply(
					unsafe.Slice(a, last*ars+64*steps),
					unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(b), p*next)), steps*2048),
					unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(c), p*panelRow)), last*crs+128),
				)
			}
		}
		f[strings.IndexByte("SU", suffix[0])][strings.IndexByte("SU", suffix[1])] = tileKernels{kernel, kernel}
	}
	return &f
}

func randomSigns(r *rand.Rand) [2]bool {
	n := r.IntN(4)
	return [2]bool{n&1 != 0, n&2 != 0}
}

// randomInt8 has values of eight bits, many of them the least or the greatest.
func randomInt8(l layout, m, n int, r *rand.Rand, unsigned bool) Matrix[int32] {
	x := random[int32](l, m, n, r)
	for at := range x.Data {
		v := x.Data[at] & 255
		switch r.IntN(6) {
		case 0:
			v = 0x80
		case 1:
			v = 0xff
		}
		if x.Data[at] = v; !unsigned {
			x.Data[at] = int32(int8(v))
		}
	}
	return x
}

// TestInt8 is what this machine does with products of bytes, by tiles where it has AMX.
func TestInt8(t *testing.T) {
	t.Logf("kernels for bytes: %v", HasInt8())
	r := rand.New(rand.NewPCG(7, 8+*seed))
	for range 200 {
		if testing.Short() && r.IntN(4) > 0 {
			continue
		}
		m := 1 + r.IntN(70)
		n := 1 + r.IntN(70)
		k := 1 + r.IntN(200)
		unsigned := randomSigns(r)
		a := randomInt8(layouts[r.IntN(4)], m, k, r, unsigned[0])
		b := randomInt8(layouts[r.IntN(4)], k, n, r, unsigned[1])
		c := random[int32](layouts[0], m, n, r)
		want := c
		want.Data = slices.Clone(c.Data)
		plainly(want, a, b, m, n, k)
		x := Product[int32]{
			C: c,
			A: a,
			B: b,
			M: m,
			N: n,
			K: k,
		}
		MultiplyInt8(x, make([]int32, ScratchInt8(x)), unsigned)
		if !slices.Equal(want.Data, c.Data) {
			t.Fatalf("%d×%d×%d, unsigned %v: a wrong result", m, n, k, unsigned)
		}
	}
}
