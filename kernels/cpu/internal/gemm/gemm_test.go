package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// A layout makes a view of a matrix of m×n in a new slice.
type layout struct {
	name string
	view func(m, n int) (row, col, length int)
}

var layouts = []layout{
	{"rows", func(m, n int) (int, int, int) { return n, 1, m * n }},
	{"columns", func(m, n int) (int, int, int) { return 1, m, m * n }},
	{"wide rows", func(m, n int) (int, int, int) {
		return n + 3, 1, (m-1)*(n+3) + n
	}},
	{"sparse", func(m, n int) (int, int, int) {
		return 3*n + 1, 3, (m-1)*(3*n+1) +
			3*(n-1) + 1
	}},
}

func (l layout) String() string { return l.name }

func random[T Element](l layout, m, n int, r *rand.Rand) Matrix[T] {
	row, col, length := l.view(m, n)
	x := Matrix[T]{make([]T, length), row, col}
	for k := range x.Data {
		x.Data[k] = number[T](r)
	}
	return x
}

func number[T Element](r *rand.Rand) T {
	var zero T
	switch any(zero).(type) {
	case float32, float64:
		return T(r.NormFloat64())
	}
	return T(r.Uint64())
}

// plainly is Multiply by its definition.
func plainly[T Element](c, a, b Matrix[T], m, n, k int) {
	accumulate(c, a, b, m, n, k, familyOf[T]() != nil)
}

// plainlyFused is what kernels do.
func plainlyFused[T Element](c, a, b Matrix[T], m, n, k int) {
	accumulate(c, a, b, m, n, k, true)
}

func accumulate[T Element](c, a, b Matrix[T], m, n, k int, fused bool) {
	for i := range m {
		for j := range n {
			at := i*c.Row + j
			for p := range k {
				c.Data[at] = add(
					c.Data[at],
					a.Data[i*a.Row+p*a.Col],
					b.Data[p*b.Row+j*b.Col], fused,
				)
			}
		}
	}
}

// add is c + a·b rounded as Multiply does: once where it is fused. The
// float64 product of two float32 is exact, and their sum so close that rounding
// it again changes nothing in these tests.
func add[T Element](c, a, b T, fused bool) T {
	switch any(c).(type) {
	case float32:
		if fused {
			return T(float32(math.FMA(float64(a), float64(b), float64(c))))
		}
		return c + T(float32(a*b))
	case float64:
		if fused {
			return T(math.FMA(float64(a), float64(b), float64(c)))
		}
		return c + T(float64(a*b))
	}
	return c + a*b
}

func check[T Element](
	t *testing.T, la, lb layout, m, n, k int, r *rand.Rand,
) {
	t.Helper()
	a := random[T](la, m, k, r)
	b := random[T](lb, k, n, r)
	c := random[T](layouts[2*r.IntN(2)], m, n, r)
	want := Matrix[T]{append([]T(nil), c.Data...), c.Row, 1}
	x := Product[T]{
		C:       c,
		A:       a,
		B:       b,
		M:       m,
		N:       n,
		K:       k,
		Fresh:   r.IntN(2) == 0,
		Packing: Packing(r.IntN(3)),
	}
	if (m+n+k)%2 == 0 { // pairs of panels, of several slabs and terms
		x.Caches = Caches{
			First: 4 << 10, Second: 64 << 10, Panel: 4 << 10,
			Pairs: k%3 > 0, Fetched: k%4 < 2,
		}
	}
	if x.Fresh {
		Product[T]{C: want, M: m, N: n}.clear()
	}
	plainly(want, a, b, m, n, k)
	x.Multiply(make([]T, x.Scratch()))
	for at := range c.Data {
		if c.Data[at] != want.Data[at] {
			t.Fatalf(
				"%d×%d×%d, %s by %s: element %d, %d is %v, not %v",
				m, n, k, la, lb, at/c.Row,
				at%c.Row, c.Data[at], want.Data[at],
			)
		}
	}
}

func everyRemainder[T Element](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for m := 1; m <= 20; m++ {
		for n := 1; n <= 20; n++ {
			for k := 1; k <= 20; k++ {
				check[T](
					t, layouts[r.IntN(4)],
					layouts[r.IntN(4)], m, n, k, r,
				)
			}
		}
	}
	for trial := range 12 {
		m := 1 + r.IntN(210)
		n := 1 + r.IntN(80)
		k := 1 + r.IntN(300)
		if trial%3 == 0 { // several slabs
			m, n, k = 2*m, n/16*16+32, 3*k
		}
		if trial%3 == 1 { // a row
			m = 1
		}
		check[T](
			t, layouts[r.IntN(4)],
			layouts[r.IntN(4)], m, n, k, r,
		)
	}
}

func TestEveryRemainder(t *testing.T) {
	t.Run("f32", everyRemainder[float32])
	t.Run("f64", everyRemainder[float64])
	t.Run("i32", everyRemainder[int32])
	t.Run("i64", everyRemainder[int64])
}

// TestOrderOfSummation divides a product in m, n and k: the bits are the same.
func TestOrderOfSummation(t *testing.T) {
	const m = 61
	const n = 77
	const k = 901
	r := rand.New(rand.NewPCG(3, 4))
	a := random[float32](layouts[0], m, k, r)
	b := random[float32](layouts[0], k, n, r)
	whole := Dense(make([]float32, m*n), n)
	parts := Dense(make([]float32, m*n), n)
	scratch := make([]float32, Scratch[float32](m, n, k))
	Multiply(whole, a, b, m, n, k, scratch)
	for i, di := 0, 0; i < m; i += di {
		di = min(m-i, 1+r.IntN(20))
		for j, dj := 0, 0; j < n; j += dj {
			dj = min(n-j, 1+r.IntN(40))
			for p, dp := 0, 0; p < k; p += dp {
				dp = min(k-p, 1+r.IntN(300))
				sub := func(x Matrix[float32], i, j int) Matrix[float32] {
					return Matrix[float32]{
						x.Data[i*x.Row+j*x.Col:], x.Row, x.Col,
					}
				}
				Multiply(
					sub(parts, i, j), sub(a, i, p),
					sub(b, p, j), di, dj, dp, scratch,
				)
			}
		}
	}
	for at, x := range whole.Data {
		if math.Float32bits(x) != math.Float32bits(parts.Data[at]) {
			t.Fatalf("element %d is %v in one product and %v in parts", at, x, parts.Data[at])
		}
	}
}

func TestNaNsAndInfinitiesStay(t *testing.T) {
	a := Dense(
		[]float32{float32(math.Inf(1)), 0, float32(math.NaN()), 1}, 2,
	)
	b := Dense([]float32{1, 0, 2, 3}, 2)
	c := Dense(make([]float32, 4), 2)
	Multiply(
		c, a, b, 2, 2, 2,
		make([]float32, Scratch[float32](2, 2, 2)),
	)
	if got, want := fmt.Sprint(c.Data), "[+Inf NaN NaN NaN]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestOutside(t *testing.T) {
	defer func() {
		want := "gemm: the right operand is 4×3 with strides 3 and 1, which is not in 11 elements"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("%s\nnot %s", got, want)
		}
	}()
	Multiply(
		Dense(make([]int32, 6), 3),
		Dense(make([]int32, 8), 4),
		Dense(make([]int32, 11), 3), 2, 3,
		4, nil,
	)
}

func TestNothingAllocates(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	a := random[float32](layouts[1], 50, 60, r)
	b := random[float32](layouts[1], 60, 70, r)
	c := random[float32](layouts[0], 50, 70, r)
	scratch := make([]float32, Scratch[float32](50, 70, 60))
	if n := testing.AllocsPerRun(10, func() {
		Multiply(c, a, b, 50, 70, 60, scratch)
	}); n > 0 {
		t.Errorf("%v allocations a product", n)
	}
}

// TestNarrow multiplies numbers of 16 bits, the extremes among them.
func TestNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for trial := range 2000 {
		m := 1 + r.IntN(20)
		n := 1 + r.IntN(40)
		k := 1 + r.IntN(40)
		if trial%100 == 0 {
			m, n, k = m*10, n*3, k*16
		}
		a := random[int32](layouts[r.IntN(4)], m, k, r)
		b := random[int32](layouts[r.IntN(4)], k, n, r)
		c := random[int32](layouts[2], m, n, r)
		for _, x := range [][]int32{a.Data, b.Data} {
			for at := range x {
				if x[at] = int32(int16(x[at])); trial%3 == 0 {
					x[at] = -1 << 15
				}
			}
		}
		want := Matrix[int32]{append([]int32(nil), c.Data...), c.Row, 1}
		plainly(want, a, b, m, n, k)
		MultiplyInt16(
			Product[int32]{C: c, A: a, B: b, M: m, N: n, K: k},
			make([]int32, ScratchInt16()),
		)
		for at, x := range want.Data {
			if c.Data[at] != x {
				t.Fatalf(
					"%d×%d×%d: element %d, %d is %v, not %v",
					m, n, k, at/c.Row,
					at%c.Row, c.Data[at], x,
				)
			}
		}
	}
}

// A product by panels has the bits of the product by the matrix that they hold.
func TestPanels(t *testing.T) {
	panels[float32](t)
	panels[float64](t)
	panels[int32](t)
	if PanelWidth[int64]() != 0 {
		t.Error("int64 has kernels")
	}
}

func panels[T Element](t *testing.T) {
	w := PanelWidth[T]()
	if w == 0 {
		t.Skip("no kernels")
	}
	r := rand.New(rand.NewPCG(5, 8))
	for n := range 200 {
		m, columns, k := 1+r.IntN(90), w*(1+r.IntN(12)), 1+r.IntN(70)
		if n%20 == 0 {
			k += 900 // several blocks of terms
		}
		x := Product[T]{
			M: m, N: columns, K: k, Fresh: r.IntN(2) == 0,
			A: random[T](layouts[r.IntN(len(layouts))], m, k, r),
			B: random[T](layouts[0], k, columns, r),
			C: random[T](layouts[0], m, columns, r),
			// A small cache has several slabs and groups of panels.
			Caches: Caches{First: 4 << 10, Second: 8 << 10, Third: 64 << 10},
		}
		if n%3 == 0 { // panels are larger than the first
			x.Caches.Panel = 8 << 10
		}
		packed := x
		packed.Panels = w*k + r.IntN(3)*w
		packed.B = Matrix[T]{Data: make([]T, packed.Panels*(columns/w)), Row: w, Col: 1}
		for i := range k {
			for j := range columns {
				packed.B.Data[j/w*packed.Panels+i*w+j%w] = x.B.Data[i*columns+j]
			}
		}
		packed.C.Data = append([]T{}, x.C.Data...)
		x.Multiply(make([]T, x.Scratch()))
		packed.Multiply(make([]T, packed.Scratch()))
		for at, want := range x.C.Data {
			if packed.C.Data[at] != want {
				t.Fatalf("%T %d×%d×%d: element %d is %v, want %v", want, m, columns, k, at, packed.C.Data[at], want)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("panels that are not in their slice are multiplied")
		}
	}()
	one := make([]T, w)
	Product[T]{
		C: Dense(one, w), A: Dense(one, 1), B: Matrix[T]{Data: one[:w-1], Row: w, Col: 1},
		M: 1, N: w, K: 1, Panels: w,
	}.Multiply(nil)
}

// TestPast: what is written past the caches has the same bits.
func TestPast(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for trial := range 60 {
		m, k := 1+r.IntN(40), 1+r.IntN(300)
		n := 8 * (1 + r.IntN(20))
		x := Product[float32]{
			A: random[float32](layouts[trial%4], m, k, r),
			B: random[float32](layouts[trial/4%4], k, n, r),
			M: m, N: n, K: k,
			Fresh: true,
		}
		scratch := make([]float32, x.Scratch())
		var results [2][]float32
		for past := range results {
			c := make([]float32, m*n+16)
			for uintptr(unsafe.Pointer(&c[0]))%64 != 0 {
				c = c[1:]
			}
			x.C, x.Past = Dense(c[:m*n], n), past == 1
			x.Multiply(scratch)
			results[past] = x.C.Data
		}
		if !slices.Equal(results[0], results[1]) {
			t.Fatalf("%d×%d×%d: other bits", m, n, k)
		}
	}
}

// The products of a batch are those of its matrices one by one, in all layouts, also
// empty ones and columns.
func TestMultiplyBatch(t *testing.T) {
	t.Run("f32", testMultiplyBatch[float32])
	t.Run("f64", testMultiplyBatch[float64])
	t.Run("i32", testMultiplyBatch[int32])
	t.Run("i64", testMultiplyBatch[int64])
}

func testMultiplyBatch[T Element](t *testing.T) {
	const batch = 3
	r := rand.New(rand.NewPCG(7, 1))
	for _, s := range [][3]int{
		{8, 8, 8}, {1, 1, 9}, {40, 1, 5}, {1, 64, 20}, {1, 16, 200}, {5, 33, 3},
		{13, 32, 7}, {50, 70, 40}, {128, 40, 600}, {4, 4, 0},
	} {
		m, n, k := s[0], s[1], s[2]
		for at := range 16 {
			la, lb := layouts[at%4], layouts[at/4]
			if k == 0 {
				la, lb = layouts[0], layouts[0]
			}
			a := random[T](la, batch*m, k, r)
			b := random[T](lb, k, batch*n, r)
			x := Product[T]{A: a, B: b, M: m, N: n, K: k, Fresh: at%3 == 0}
			c := random[T](layouts[0], batch*m, n, r)
			want := c
			want.Data = slices.Clone(c.Data)
			apart := [3]int{m * n, m * a.Row, n * b.Col}
			if k == 0 {
				apart = [3]int{m * n, 0, 0}
			}
			scratch := make([]T, x.Scratch())
			for i := range batch {
				x.C = want
				x.number(i, apart).Multiply(scratch)
			}
			x.C = c
			x.MultiplyBatch(batch, apart, scratch)
			if !slices.Equal(c.Data, want.Data) {
				t.Fatalf("%d×%d×%d, %v by %v: other elements than one by one", m, n, k, la, lb)
			}
		}
	}
}
