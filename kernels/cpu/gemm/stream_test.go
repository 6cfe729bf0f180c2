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
