package vector

import "testing"

// TestCount counts by steps up and down, over the largest number, in slices of all lengths.
func TestCount(t *testing.T) {
	var args CountArgs
	for n := range 40 {
		for _, first := range []int64{0, -5, 1<<31 - 20} {
			for _, stride := range []int64{0, 1, -3, 1 << 28} {
				got := make([]int32, n+1)
				done := args.Count(got[:n], first, stride)
				if Supported() && done != n/8*8 {
					t.Fatalf("%d of %d written", done, n)
				}
				for k, x := range got {
					want := int32(0)
					if k < done {
						want = int32(first + int64(k)*stride)
					}
					if x != want {
						t.Fatalf("number %d of %d from %d by %d: %d, want %d", k, n, first, stride, x, want)
					}
				}
			}
		}
	}
}
