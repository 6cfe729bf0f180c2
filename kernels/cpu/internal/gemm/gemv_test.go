package gemm

import (
	"math/rand/v2"
	"slices"
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

// Rows that the second cache does not hold, the last of which fetch none.
func TestFetchedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, m := range []int{1, 3} {
		check[float32](t, layouts[0], layouts[0], m, 4105, 139, r)
		check[float64](t, layouts[0], layouts[0], m, 4105, 139, r)
	}
}

// Columns whose terms are next to each other, in the caches and beyond; the row's
// are not.
func TestStandingColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{16, 24, 33, 700} {
		for _, k := range []int{16, 17, 31, 48, 1100} {
			check[float32](t, layouts[3], layouts[1], 1, n, k, r)
		}
	}
}

// Where the row's are too, sums are 16 chains of terms 16 apart, which are added by
// halves, and the remaining terms after them: bit for bit, for any columns. The same
// product transposed, whose row is a column, has the same bits.
func TestPartialSums(t *testing.T) {
	if familyOf[float32]() == nil {
		t.Skip("there are no partial sums")
	}
	r := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{1, 2, 3, 4, 7, 16, 33} {
		for _, k := range []int{128, 129, 160, 191, 1100, 4096} {
			a := random[float32](layouts[0], 1, k, r)
			b := random[float32](layouts[1], k, n, r)
			c := random[float32](layouts[0], 1, n, r)
			want := make([]float32, n)
			for j := range n {
				want[j] = partialSums(c.Data[j], a.Data, b.Data[j*b.Col:][:k])
			}
			x := Product[float32]{C: c, A: a, B: b, M: 1, N: n, K: k}
			scratch := make([]float32, Scratch[float32](1, n, k))
			column := Product[float32]{
				C: Matrix[float32]{slices.Clone(c.Data), 1, 1},
				A: Matrix[float32]{b.Data, b.Col, b.Row},
				B: Matrix[float32]{a.Data, a.Col, a.Row}, M: n, N: 1, K: k,
			}
			x.Multiply(scratch)
			if !slices.Equal(c.Data, want) {
				t.Fatalf("1×%d×%d: %v, not %v", n, k, c.Data, want)
			}
			if n < 16 {
				continue
			}
			column.Multiply(make([]float32, Scratch[float32](n, 1, k)))
			if !slices.Equal(column.C.Data, want) {
				t.Fatalf("%d×1×%d: %v, not %v", n, k, column.C.Data, want)
			}
		}
	}
}

// Columns that the second cache does not hold, whose lines are fetched ahead, have the same
// partial sums.
func TestFetchedColumns(t *testing.T) {
	if familyOf[float32]() == nil {
		t.Skip("there are no partial sums")
	}
	const n, k = 70, 4100
	r := rand.New(rand.NewPCG(13, 14))
	a := random[float32](layouts[0], 1, k, r)
	b := random[float32](layouts[1], k, n, r)
	x := Product[float32]{
		C: Matrix[float32]{make([]float32, n), n, 1}, A: a, B: b, M: 1, N: n, K: k,
		Caches: Caches{First: 32 << 10, Second: 1 << 20},
	}
	x.Multiply(make([]float32, Scratch[float32](1, n, k)))
	for j, got := range x.C.Data {
		if want := partialSums(0, a.Data, b.Data[j*b.Col:][:k]); got != want {
			t.Errorf("column %d: %v, not %v", j, got, want)
		}
	}
}

// partialSums is c + Σ aₜ·bₜ in the order of the kernels.
func partialSums(c float32, a, b []float32) float32 {
	var sums [16]float32
	whole := len(a) / 16 * 16
	for t := range whole {
		sums[t%16] = add(sums[t%16], a[t], b[t], true)
	}
	var lanes [8]float32
	for l := range lanes {
		lanes[l] = sums[l] + sums[8+l]
	}
	var quarter [4]float32
	for l := range quarter {
		quarter[l] = lanes[l] + lanes[4+l]
	}
	c += (quarter[0] + quarter[2]) + (quarter[1] + quarter[3])
	for t := whole; t < len(a); t++ {
		c = add(c, a[t], b[t], true)
	}
	return c
}
