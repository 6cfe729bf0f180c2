//go:build !noasm

package gemm

import "testing"

// Blocks of a product of 2048³ on cores of several caches. Those of the first
// are what was measured to be best on a core of 32 and 512 KiB and 16 MiB.
func TestBlocking(t *testing.T) {
	if f32 == nil {
		t.Skip("there are no panels")
	}
	for _, x := range []struct {
		caches Caches
		want   blocking
	}{
		{Caches{}, blocking{96, 512, 2048}},
		{Caches{32 << 10, 512 << 10, 16 << 20}, blocking{96, 512, 2048}},
		{Caches{32 << 10, 256 << 10, 16 << 20}, blocking{48, 512, 2048}},
		{Caches{16 << 10, 512 << 10, 16 << 20}, blocking{192, 256, 2048}},
		{Caches{32 << 10, 512 << 10, 4 << 20}, blocking{96, 512, 512}},
		{Caches{1, 1, 1}, blocking{6, 24, 16}},
	} {
		if got := f32Narrow.blocking(x.caches, 2048, 2048, 2048); got != x.want {
			t.Errorf("%v: %v, not %v", x.caches, got, x.want)
		}
	}
}
