package reference

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Blocks, panels and cores change the order of results, not that of a sum: every
// result has the bits of the plain loops.
func TestContractionsAreThePlainLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 37)
		c := contraction{
			size.Draw(t, "batch") % 3,
			size.Draw(t, "m"),
			size.Draw(t, "n"),
			size.Draw(t, "k"),
		}
		rng := rand.New(rand.NewPCG(1, 2))
		left := make([]float64, c.batch*c.m*c.k)
		right := make([]float64, c.batch*c.n*c.k)
		for _, x := range [][]float64{left, right} {
			for k := range x {
				x[k] = rng.NormFloat64()
			}
		}
		got := make([]float64, c.batch*c.m*c.n)
		want := make([]float64, 0, c.batch*c.m*c.n)
		contractFloats(newEvaluation(context.Background()), c, got, left, right)
		loops := make([]float64, len(got))
		contract(newEvaluation(context.Background()), c, loops, left, right)
		for b := range c.batch {
			for x := range c.m {
				for y := range c.n {
					p := (b*c.m + x) * c.k
					q := (b*c.n + y) * c.k
					want = append(
						want,
						sumProducts(left[p:p+c.k], right[q:q+c.k]),
					)
				}
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(loops, want) {
			t.Fatalf("%+v: %v and %v, the plain loops say %v", c, got, loops, want)
		}
	})
}

// Rows visit the places a walk does, in ranges from anywhere.
func TestRowsAreWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 4).Draw(t, "dims")
		strides := rapid.SliceOfN(
			rapid.Int64Range(-5, 9), len(dims), len(dims),
		).Draw(t, "strides")
		r := rowsOf(dims, strides)
		elements := r.total * r.run.count
		w := NewWalk(dims, strides)
		var got, want []int64
		for range elements {
			want = append(want, w.Next())
		}
		cut := rapid.Int64Range(0, r.total).Draw(t, "cut")
		for _, part := range [][2]int64{{0, cut}, {cut, r.total}} {
			r.visit(newEvaluation(context.Background()), part[0], part[1], func(x row) {
				for k := range x.count {
					if x.n+k != int64(len(got)) {
						t.Fatalf("element %d comes after %d", x.n+k, len(got))
					}
					got = append(got, x.at+k*x.step)
				}
			})
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v at %v: places %v, a walk says %v", dims, strides, got, want)
		}
	})
}

// A panic in a range is one of the caller.
func TestSpreadPanicsWhereItIsCalled(t *testing.T) {
	defer func() {
		if p := recover(); p != "no" {
			t.Errorf("recovered %v", p)
		}
	}()
	Parallel(1<<20, 1, func(lo, hi int64) {
		if hi == 1<<20 {
			panic("no")
		}
	})
}
