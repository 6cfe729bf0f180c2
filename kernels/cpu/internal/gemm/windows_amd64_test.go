//go:build !noasm

package gemm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// tileWindows are windows of an array: the rows of a group and the elements between them, where
// groups begin, the terms of a run, and where runs begin.
var tileWindows = []struct {
	rows, row int
	groups    []int
	terms     int
	runs      []int
	n, first  int
}{
	{112, 6, []int{0, 1380}, 21, []int{0, 690, 1380, 2070, 2760, 3450, 4140}, 64, 0},
	{14, 256, []int{0, 4096, 8192}, 768, []int{0, 4096, 8192}, 80, 0},
	{14, 256, []int{0, 4096, 8192}, 768, []int{0, 4096, 8192}, 80, 100},
	{7, 2048, []int{0, 14336, 28672}, 1024, []int{0}, 33, 0},
	{5, 9, []int{7, 0, 333}, 8, []int{64, 0, 8, 99, 31}, 12, 5},           // short runs in any order
	{40, 1, []int{3, 50}, 70, []int{0, 200, 400}, 31, 1},                  // windows that overlap
	{16, 64, []int{0, 2048}, 64, []int{0, 128, 256, 900, 1028}, 40, 0},    // dilated
	{33, 30, []int{0}, 10, slices.Repeat([]int{0, 5, 300}, 100), 20, 3},   // more runs than a slab has
	{300, 100, []int{0}, 100, slices.Repeat([]int{0, 5, 300}, 20), 70, 0}, // several slabs of several parts
}

// TestTileWindows multiplies windows by tiles, whose kernels TestTileKernels emulates, with kernels
// in Go in their place, and compares products of all elements.
func TestTileWindows(t *testing.T) {
	if i16 == nil {
		t.Skip("tiles are packed with AVX")
	}
	f := tileFamilyInGo()
	r := rand.New(rand.NewPCG(9, 10))
	bytes := func(n int) []byte {
		all := make([]byte, n)
		for k := range all {
			all[k] = byte(r.Uint32())
		}
		return all
	}
	for _, s := range tileWindows {
		for _, unsigned := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			t.Run(fmt.Sprint(s.rows, s.terms, s.n, s.first, unsigned), func(t *testing.T) {
				w := &Windows{Rows: s.rows, Groups: s.groups, Terms: s.terms, Runs: s.runs}
				m, k, n := s.rows*len(s.groups), s.terms*len(s.runs), s.n
				data := bytes(w.last(len(s.groups), len(s.runs), s.row) + 1)
				x := Product[int32]{
					A: Matrix[int32]{nil, s.row, 1}, B: Matrix[int32]{nil, n, 1}, C: Dense(make([]int32, m*n), n),
					M: m, N: n, K: k - s.first, Windows: w,
					Short: [2]Short{{data, 1}, {bytes(k * n), 1}},
				}
				for i := range x.C.Data {
					x.C.Data[i] = r.Int32()
				}
				a := Matrix[int32]{widened(matrixOf(data, w, s.row), unsigned[0]), k, 1}
				b := Dense(widened(x.Short[1].Data, unsigned[1]), n)
				want := Dense(slices.Clone(x.C.Data), n)
				if x.Fresh = unsigned[0] != unsigned[1]; x.Fresh {
					clear(want.Data)
				}
				a.Data, b.Data = a.Data[s.first:], b.Data[s.first*n:]
				plainly(want, a, b, m, n, k-s.first)
				x = x.FromTerm(s.first)
				f.multiply(unsigned, x, make([]int32, byteTiles.scratch(x.Caches, m, n, x.K)))
				if !slices.Equal(want.Data, x.C.Data) {
					t.Fatal("a wrong result")
				}
			})
		}
	}
}

// widened is bytes, signed or unsigned, as elements of 32 bits.
func widened(x []byte, unsigned bool) []int32 {
	all := make([]int32, len(x))
	for k, b := range x {
		if all[k] = int32(b); !unsigned {
			all[k] = int32(int8(b))
		}
	}
	return all
}
