//go:build !noasm

package gemm

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// plainQuadFamily is a family with kernels in Go in the place of those that
// TestQuadKernels emulates.
func plainQuadFamily(f quadFamily) *quadFamily {
	for unsigned := range 2 {
		full, masked := &f.full[unsigned], &f.masked[unsigned]
		for r := range 6 {
			full[r] = plainQuadKernel(r+1, unsigned == 1, func(*byte) int {
				return 2 * f.lanes
			})
			masked[r] = plainQuadKernel(r+1, unsigned == 1, lanesOn(f.lanes))
		}
	}
	if f.pack != nil {
		f.pack = &[2][quadPanels]bytePacker{
			{plainPacker(1, false), plainPacker(2, false)},
			{plainPacker(1, true), plainPacker(2, true)},
		}
	}
	return &f
}

// plainPacker is the bytePacker of so many panels, in the place of those that
// TestBytePanels emulates.
func plainPacker(panels int, unsigned bool) bytePacker {
	return func(
		quads int, to *byte, panel int,
		from *byte, fromStride int, sums, _ *byte,
	) {
		x := byteMatrix{unsafe.Pointer(from), fromStride, 1}
		all := unsafe.Slice((*int32)(unsafe.Pointer(sums)), 32*panels)
		clear(all)
		for j := range all {
			y := byteMatrix{unsafe.Add(unsafe.Pointer(to), j/32*panel+j%32*4), 128, 1}
			for p := range 4 * quads {
				b := *x.at(p, j).first()
				*y.at(p/4, p%4).first() = b
				if unsigned {
					all[j] += int32(b)
				} else {
					all[j] += int32(int8(b))
				}
			}
		}
	}
}

// lanesOn counts the lanes of a mask.
func lanesOn(lanes int) func(mask *byte) int {
	return func(mask *byte) int {
		if lanes == 16 {
			x := (*uint32)(unsafe.Pointer(mask))
			return bits.OnesCount32(*x)
		}
		on := 0
		for _, x := range unsafe.Slice(mask, 4*lanes) {
			on += int(x & 1)
		}
		return on / 4
	}
}

func plainQuadKernel(rows int, signed bool, on func(mask *byte) int) quadKernel {
	return func(
		blocks, k int,
		a *byte,
		ars, acs int,
		b *byte,
		brs int,
		start *byte,
		c *byte,
		crs int,
		mask *byte,
		_ uintptr,
		_, how int,
	) {
		n, m := on(mask), blocks*rows
		from := (*int32)(unsafe.Pointer(start))
		plainQuads{
			byteView{unsafe.Pointer(c), crs, 4},
			byteView{unsafe.Pointer(a), ars, acs},
			byteView{unsafe.Pointer(b), brs, 4},
			unsafe.Slice(from, n),
			signed,
		}.multiply(m, n, k, how)
	}
}

// TestQuads goes through products of bytes by quads of both widths, whose kernels
// TestQuadKernels emulates: packing in each layout, edges, slabs, signs, sums that wrap.
func TestQuads(t *testing.T) {
	if i16 == nil {
		t.Skip("quads are packed with AVX")
	}
	r := rand.New(rand.NewPCG(15, 16))
	for _, f := range []quadFamily{quadsWide, quadsPacked, quadsNarrow} {
		f := plainQuadFamily(f)
		for trial := range 250 {
			m := 1 + r.IntN(60)
			n := 1 + r.IntN(90)
			k := 1 + r.IntN(200)
			switch trial % 50 {
			case 0:
				m = 375 + r.IntN(20) // a slab or two
			case 1:
				k = 500 + r.IntN(600)
			}
			unsigned := randomSigns(r)
			of, by := layouts[trial%4], layouts[trial/4%4]
			a := randomInt8(of, m, k, r, unsigned[0])
			b := randomInt8(by, k, n, r, unsigned[1])
			c := random[int32](layouts[2], m, n, r)
			want := c
			want.Data = slices.Clone(c.Data)
			x := Product[int32]{
				C: c,
				A: a,
				B: b,
				M: m,
				N: n,
				K: k,
			}
			x.Fresh = r.IntN(2) == 0
			if x.Fresh {
				for i := range m {
					clear(want.Data[i*want.Row:][:n])
				}
			}
			plainly(want, a, b, m, n, k)
			scratch := make([]int32, f.scratch())
			for i := range scratch {
				scratch[i] = r.Int32()
			}
			x.shorten(r.IntN(4), 1)
			f.multiply(unsigned, x, scratch)
			if !slices.Equal(want.Data, c.Data) {
				t.Fatalf(
					"%d lanes, %d×%d×%d, %v by %v, unsigned %v: a wrong result",
					f.lanes, m, n, k, of, by, unsigned,
				)
			}
		}
	}
}

// TestChooseQuads forces each kind of processor.
func TestChooseQuads(t *testing.T) {
	for _, x := range []struct {
		avx2, wide, bytes, narrow bool
		want                      *quadFamily
	}{
		{false, true, true, true, nil},
		{true, false, true, false, nil},
		{true, false, false, true, &quadsNarrow},
		{true, true, false, false, &quadsWide},
		{true, true, true, false, &quadsPacked},
		{true, true, true, true, &quadsPacked},
	} {
		if chooseQuads(x.avx2, x.wide, x.bytes, x.narrow) != x.want {
			t.Errorf("%+v: another family", x)
		}
	}
}
