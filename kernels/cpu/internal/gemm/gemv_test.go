package gemm

import (
	"math/rand/v2"
	"testing"
)

// Rows a little longer than the part of them that stays in the first cache.
func TestEndsOfStreams(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{4096, 4097, 4099, 4111, 4112, 8195} {
		for _, m := range []int{1, 3} {
			check[float32](t, layouts[0], layouts[0], m, n, 17, r)
			check[float64](t, layouts[0], layouts[0], m, n, 17, r)
		}
	}
}

// Columns whose terms are next to each other, in the caches and beyond.
func TestStandingColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{16, 24, 33, 700} {
		for _, k := range []int{16, 17, 31, 48, 1100} {
			check[float32](t, layouts[0], layouts[1], 1, n, k, r)
		}
	}
}
