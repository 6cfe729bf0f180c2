//go:build !noasm

package gemm

import "testing"

// TestQuadPageEnds is TestPageEnds for the packing of quads.
func TestQuadPageEnds(t *testing.T) {
	if i16 == nil {
		t.Skip("quads are packed with AVX")
	}
	for _, f := range []quadFamily{quadsWide, quadsPacked, quadsNarrow} {
		f := plainQuadFamily(f)
		scratch := func(m, n, k int) int { return f.scratch() }
		multiply := func(x Product[int32], scratch []int32) {
			f.multiply([2]bool{}, x, scratch)
		}
		pageEnds(t, scratch, multiply)
		pageEnds(t, scratch, func(x Product[int32], scratch []int32) {
			x.shorten(3, 1)
			for k, s := range x.Short {
				bytes := guarded[byte](t, len(s.Data), true)
				copy(bytes, s.Data)
				x.Short[k].Data = bytes
			}
			multiply(x, scratch)
		})
	}
}
