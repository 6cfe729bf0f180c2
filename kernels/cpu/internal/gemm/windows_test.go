package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// windowShapes are windows of images of H×W×C elements: the kernel's height and width, the
// stride, and the columns of the product.
var windowShapes = []struct{ h, w, c, kh, kw, stride, n int }{
	{9, 9, 3, 3, 3, 2, 17},    // runs of nine terms
	{23, 61, 3, 7, 7, 2, 64},  // the first layer of ResNet
	{5, 30, 40, 3, 3, 1, 33},  // long runs, read in place
	{4, 30, 300, 2, 2, 1, 40}, // runs of several blocks
	{12, 8, 96, 3, 3, 1, 96},  // long runs of few rows
	{3, 40, 8, 3, 1, 3, 32},   // runs of the fewest terms
	{33, 33, 64, 1, 1, 2, 70}, // no windows, but rows with strides
	{16, 130, 16, 4, 7, 1, 5}, // columns of less than a vector
}

// TestWindows multiplies windows and the matrix of all their elements: the results have the
// same bits, whatever is packed, from any term on.
func TestWindows(t *testing.T) {
	if !ReadsWindows[float32](100) {
		t.Skip("no kernels read windows here")
	}
	for _, s := range windowShapes {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			rows := (s.w-s.kw)/s.stride + 1
			groups := (s.h-s.kh)/s.stride + 1
			w := &Windows{Rows: rows, Terms: s.kw * s.c}
			for g := range groups {
				w.Groups = append(w.Groups, g*s.stride*s.w*s.c)
			}
			for r := range s.kh {
				w.Runs = append(w.Runs, r*s.w*s.c)
			}
			testWindows[float32](t, w, s.h*s.w*s.c, s.stride*s.c, s.n)
			testWindows[float64](t, w, s.h*s.w*s.c, s.stride*s.c, s.n)
			if ReadsByteWindows() {
				testByteWindows(t, w, s.h*s.w*s.c, s.stride*s.c, s.n)
			}
		})
	}
}

// matrixOf is the elements of windows, row by row.
func matrixOf[T any](data []T, w *Windows, row int) (all []T) {
	for i := range len(w.Groups) * w.Rows {
		at := w.Groups[i/w.Rows] + i%w.Rows*row
		for _, r := range w.Runs {
			all = append(all, data[at+r:][:w.Terms]...)
		}
	}
	return all
}

// testWindows compares products of floats of all terms, and of those from the sixth on.
func testWindows[T float32 | float64](t *testing.T, w *Windows, elements, row, n int) {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int) []T {
		all := make([]T, n)
		for k := range all {
			all[k] = T(random.NormFloat64())
		}
		return all
	}
	m, k := len(w.Groups)*w.Rows, len(w.Runs)*w.Terms
	data, right := numbers(elements), numbers(k*n)
	for _, packing := range []Packing{Suitable, Streamed, Packed} {
		for _, first := range []int{0, 5} {
			x := Product[T]{
				A: Dense(matrixOf(data, w, row), k), B: Dense(right, n), C: Dense(make([]T, m*n), n),
				M: m, N: n, K: k - first, Fresh: true, Packing: packing,
			}
			if first > 0 { // panels are filled by the first block of rows
				x.Caches = Caches{First: 4 << 10, Second: 64 << 10, Panel: 4 << 10}
			}
			y := x
			y.A, y.C, y.Windows = Matrix[T]{data, row, 1}, Dense(make([]T, m*n), n), w
			if first > 0 {
				x, y = x.FromTerm(first), y.FromTerm(first)
			}
			x.Multiply(make([]T, x.Scratch()))
			y.Multiply(make([]T, y.Scratch()))
			for i := range x.C.Data {
				if x.C.Data[i] != y.C.Data[i] {
					t.Fatalf("%T, packing %d, from term %d: element %d is %v, not %v", right[0], packing, first, i, y.C.Data[i], x.C.Data[i])
				}
			}
		}
	}
}

// testByteWindows compares products of bytes of all signs.
func testByteWindows(t *testing.T, w *Windows, elements, row, n int) {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int) []byte {
		all := make([]byte, n)
		for k := range all {
			all[k] = byte(random.Uint32())
		}
		return all
	}
	m, k := len(w.Groups)*w.Rows, len(w.Runs)*w.Terms
	data, right := numbers(elements), numbers(k*n)
	for _, unsigned := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		x := Product[int32]{
			A: Matrix[int32]{nil, k, 1}, B: Matrix[int32]{nil, n, 1}, C: Dense(make([]int32, m*n), n),
			M: m, N: n, K: k, Fresh: true,
			Short: [2]Short{{matrixOf(data, w, row), 1}, {right, 1}},
		}
		y := x
		y.A.Row, y.C, y.Windows = row, Dense(make([]int32, m*n), n), w
		y.Short[0].Data = data
		MultiplyInt8(x, make([]int32, ScratchInt8(x)), unsigned)
		MultiplyInt8(y, make([]int32, ScratchInt8(y)), unsigned)
		for i := range x.C.Data {
			if x.C.Data[i] != y.C.Data[i] {
				t.Fatalf("unsigned %v: element %d is %d, not %d", unsigned, i, y.C.Data[i], x.C.Data[i])
			}
		}
	}
}

// TestWindowsOutside refuses windows that are not in the array.
func TestWindowsOutside(t *testing.T) {
	w := &Windows{Rows: 10, Groups: []int{0, 100}, Terms: 8, Runs: []int{0, 50}}
	x := Product[float32]{
		A: Matrix[float32]{make([]float32, 100+9*4+50+8), 4, 1}, M: 20, N: 1, K: 16, Windows: w,
	}
	x.checkWindows()
	x.A.Data = x.A.Data[1:]
	defer func() {
		if recover() == nil {
			t.Error("windows behind the array were not refused")
		}
	}()
	x.checkWindows()
}

// TestLanes compares sums by lanes with loops in Go, fresh ones and those that are added to; small
// whole numbers have one sum.
func TestLanes(t *testing.T) {
	if !HasLanes() {
		t.Skip("no kernels multiply lanes here")
	}
	random := rand.New(rand.NewPCG(3, 4))
	numbers := func(n int) []float32 {
		all := make([]float32, n)
		for k := range all {
			all[k] = float32(random.IntN(17) - 8)
		}
		return all
	}
	for _, lanes := range []int{8, 16, 24, 40} {
		for rows := 1; rows <= 9; rows++ {
			x := &Lanes{
				Rows: rows, Row: 3 * lanes,
				Groups: []int{0, 31 * lanes}, Terms: []int{0, 4 * lanes, 4 * 7 * lanes},
				Lanes: lanes,
			}
			a := numbers(31*lanes + (rows-1)*x.Row + 8*lanes)
			w := numbers(3 * lanes)
			c := numbers(2 * rows * lanes)
			for _, fresh := range []bool{true, false} {
				want := make([]float32, len(c))
				for i := range 2 * rows {
					for l := range lanes {
						at := x.Groups[i/rows] + i%rows*x.Row + l
						sum := c[i*lanes+l]
						if fresh {
							sum = 0
						}
						for p, term := range x.Terms {
							sum += a[at+term/4] * w[p*lanes+l]
						}
						want[i*lanes+l] = sum
					}
				}
				x.Multiply(c, a, w, lanes, fresh)
				for k := range want {
					if c[k] != want[k] {
						t.Fatalf("%d rows of %d lanes, fresh %v: element %d is %v, not %v", rows, lanes, fresh, k, c[k], want[k])
					}
				}
			}
		}
	}
}

// TestWeights multiplies by rows that lie in runs, with columns or rows contiguous, and by the
// matrix that they are: the results have the same bits, from any term on.
func TestWeights(t *testing.T) {
	if !ReadsWindows[float32](100) {
		t.Skip("no kernels read weights here")
	}
	for _, s := range []struct{ m, n, terms, runs int }{
		{8, 64, 8, 9},
		{50, 33, 20, 9},    // a narrow last panel
		{37, 5, 41, 3},     // less than a panel
		{300, 160, 640, 3}, // runs of several blocks, several slabs
	} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			for _, turned := range []bool{false, true} {
				testWeights[float32](t, s.m, s.n, s.terms, s.runs, turned)
				testWeights[float64](t, s.m, s.n, s.terms, s.runs, turned)
			}
		})
	}
}

// testWeights compares products of runs in backward order, some elements apart.
func testWeights[T float32 | float64](t *testing.T, m, n, terms, runs int, turned bool) {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int) []T {
		all := make([]T, n)
		for k := range all {
			all[k] = T(random.NormFloat64())
		}
		return all
	}
	w := &Weights{Terms: terms}
	k, each := terms*runs, terms*n+7
	right := Matrix[T]{numbers(runs*each - 7), n, 1}
	if turned {
		right.Row, right.Col = 1, terms
	}
	var rows []T
	for r := range runs {
		w.Runs = append(w.Runs, (runs-1-r)*each)
		for p := range terms {
			for j := range n {
				rows = append(rows, right.Data[w.Runs[r]+p*right.Row+j*right.Col])
			}
		}
	}
	for _, first := range []int{0, 5} {
		x := Product[T]{
			A: Dense(numbers(m*k), k), B: Dense(rows, n), C: Dense(make([]T, m*n), n),
			M: m, N: n, K: k - first, Fresh: true,
		}
		y := x
		y.B, y.C, y.Weights = right, Dense(make([]T, m*n), n), w
		if first > 0 {
			x, y = x.FromTerm(first), y.FromTerm(first)
		}
		x.Multiply(make([]T, x.Scratch()))
		y.Multiply(make([]T, y.Scratch()))
		for i := range x.C.Data {
			if x.C.Data[i] != y.C.Data[i] {
				t.Fatalf("%T, turned %v, from term %d: element %d is %v, not %v", rows[0], turned, first, i, y.C.Data[i], x.C.Data[i])
			}
		}
	}
}

// TestWeightsOutside refuses weights that are not in the array.
func TestWeightsOutside(t *testing.T) {
	if !ReadsWindows[float32](20) {
		t.Skip("no kernels read weights here")
	}
	x := Product[float32]{
		B: Matrix[float32]{make([]float32, 50+7*4+3), 4, 1}, M: 20, N: 3, K: 16,
		Weights: &Weights{Terms: 8, Runs: []int{50, 0}},
	}
	x.checkWeights()
	x.B.Data = x.B.Data[1:]
	defer func() {
		if recover() == nil {
			t.Error("weights behind the array were not refused")
		}
	}()
	x.checkWeights()
}
