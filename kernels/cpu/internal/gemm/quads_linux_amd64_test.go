//go:build !noasm

package gemm

import "testing"

// TestQuadPageEnds is TestPageEnds for the packing of quads.
func TestQuadPageEnds(t *testing.T) {
	if i16 == nil {
		t.Skip("quads are packed with AVX")
	}
	for _, f := range []quadFamily{quadsWide, quadsNarrow} {
		f := plainQuadFamily(f)
		scratch := func(m, n, k int) int { return f.scratch() }
		multiply := func(x Product[int32], scratch []int32) {
			f.multiply([2]bool{}, x, scratch)
		}
		pageEnds(t, scratch, multiply)
	}
}
