// Package gemm multiplies matrices in scratch or in arrays. It has kernels of
// assembly for f32, f64, i32 and integers of 16 bits on amd64 CPUs with AVX2 and
// FMA (of 512 bits where the CPU has AVX-512, and VNNI where it has that), for
// integers of eight bits on those with AMX or VNNI, and plain Go for everything
// else: other CPUs, builds with the tag noasm, and i64. Which kernels are used is
// decided once, when the program starts. It imports nothing of this project.
//
// # Order of summation
//
// An element of the result begins with what it holds and adds its products one
// after the other, in the order of k:
//
//	c[i][j] = (…((c[i][j] + a[i][0]·b[0][j]) + a[i][1]·b[1][j]) + …)
//
// So its bits do not depend on m and n, nor on the lengths that k is divided
// into: a product of k terms is the same as two of k/2 terms into one result. The
// kernels round once a term (fused multiply-add); plain Go rounds the product
// and the sum, or once where its compiler fuses them. Integers wrap. Products of
// one row and many terms, contiguous in both operands, are the exception: each
// element is 16 partial sums, which are added at the end (gemv_amd64.go).
//
// # Blocking
//
// A product is divided for three levels of caches, as in Goto and van de Geijn,
// Anatomy of high-performance matrix multiplication, 2008. A kernel keeps up to 6
// rows and two vectors of columns of C in registers and adds one term after the
// other. A panel, the terms of two vectors of columns of B, stays in the first-level
// cache while all blocks of 6 rows of a slab of A are multiplied by it. The slab
// stays in the second-level cache while it is multiplied by all panels, and the
// panels stay in the third-level cache for the next slab. Where the second-level cache gives
// panels as fast as kernels multiply them, they are longer (Caches.Panel). A slab or panel is packed
// where its rows are too far apart for that, or in the wrong order.
//
// Products of few rows read B once, so that the rate of the memory counts. They
// have kernels that read B row by row, or, where terms are contiguous, column by
// column (gemv_amd64.go).
package gemm

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// An Element is what matrices are made of.
type Element interface {
	float32 | float64 | int32 | int64
}

// FastestTerms is how many multiply-adds of the fastest type take the time of one of f32 at
// their peaks: of bytes on AMX, 1,024 in a cycle for 32; of bytes in quads, four; of 16 bits
// in pairs, two; 0 without kernels. (Intel, Intrinsics Guide and Optimization Reference Manual, chapter on AMX.)
func FastestTerms() float64 {
	switch bits, _ := Vectors(); {
	case bits == 0:
		return 0
	case hasTiles():
		return 32
	case hasInt8():
		return 4
	}
	return 2
}

// pricesOnly is whether PriceOnly was called.
var pricesOnly atomic.Bool

// PriceOnly says that this process multiplies nothing: it must not do so from then on. What
// the processor and the system have is told without a request for the permission to use it.
// It comes before anything is asked.
func PriceOnly() { pricesOnly.Store(true) }

// A Matrix is a strided view of a slice: element i, j is Data[i·Row + j·Col].
type Matrix[T Element] struct {
	Data     []T
	Row, Col int
}

// Dense is the matrix of a slice that holds rows of n elements.
func Dense[T Element](data []T, n int) Matrix[T] {
	return Matrix[T]{data, n, 1}
}

// A Packing says which operands are copied to scratch in the order in which
// kernels read them. Operands that kernels cannot read in place always are.
type Packing int

const (
	Suitable Packing = iota // Suitable packs what the shape suggests.
	Streamed                // Streamed packs nothing.
	Packed                  // Packed packs both operands.
)

// A Product is the multiplication of A, M×K, and B, K×N, which is added to C,
// M×N, whose Col is 1.
type Product[T Element] struct {
	C, A, B Matrix[T]
	M, N, K int
	// Panels, where it is not 0, is the distance of panels of w = PanelWidth columns of
	// B, which kernels read as they are: element i, j of B is
	// Data[j/w·Panels + i·w + j%w]. B's Row is w then, its Col 1, and N a multiple of w.
	Panels int
	Fresh  bool // C holds nothing yet: it begins as zeros.
	// C is larger than the caches and not read soon: a fresh one whose terms are added in
	// one turn is written past them.
	Past    bool
	Packing Packing
	Caches  Caches
	// Windows, where it is not nil, says where the rows and terms of A are; ReadsWindows and
	// ReadsByteWindows say which products can read them.
	Windows *Windows
	first   int // The term of Windows that is the first one.
	// Weights, where it is not nil, says where the rows of B lie; ReadsWindows says which
	// products can read them.
	Weights *Weights
	begin   int // The row of Weights that is the first one.
	// Short, where it has bytes, is A or B as it lies in memory, with the strides of the
	// matrix, whose Data is not read. ReadsBytes and ReadsHalves say which products can.
	Short [2]Short
}

// A Short is the elements of an operand that take one byte or two each: integers of a
// byte for MultiplyInt8, bf16 for MultiplyHalves.
type Short struct {
	Data []byte
	Size int // bytes of an element
}

// Caches are the bytes of each cache that a thread has. Blocks of a product are
// parts of them. The bits of a result do not depend on them. Filled replaces
// zeros.
type Caches struct {
	First, Second, Third int
	// Panel is the bytes of a panel of B where the second-level cache gives its lines as
	// fast as kernels multiply them; 0: panels stay in the first.
	Panel int
	// Pairs says that kernels multiply by two panels at once where there are such kernels:
	// they need fewer instructions and loads for a multiply-add. Panels are in the second-level
	// cache then, and half of that is left to what the hardware fetches.
	Pairs bool
	// Single is Panel of kernels of one panel where Pairs is set.
	Single int
	// Fetched says that the hardware fetches operands of these kernels ahead, and better than
	// kernels do: slabs of A, and B where it is used for one slab.
	Fetched bool
}

// Filled replaces zeros by what is typical of the last ten years: a first-level
// cache of 32 KiB, a second-level one 16 times as large, 16 MiB of a
// third-level one.
func (c Caches) Filled() Caches {
	c.First = cmp.Or(
		max(0, c.First), 32<<10,
	)
	c.Second = cmp.Or(
		max(0, c.Second), 16*c.First,
	)
	c.Third = cmp.Or(
		max(0, c.Third), 16<<20,
	)
	return c
}

// PanelWidth is the number of columns of the panels of B that kernels read; 0 where
// there are no kernels for T.
func PanelWidth[T Element]() int { return familyOf[T]().panelWidth() }

// ToPanels copies k rows of b, of n columns, to panels as Product.Panels says, k·PanelWidth
// elements apart. n is a multiple of PanelWidth.
func ToPanels[T Element](to []T, b Matrix[T], k, n int) {
	f := familyOf[T]()
	w := f.panelWidth()
	if w == 0 || n%w != 0 ||
		len(to) < k*n {
		panic(fmt.Sprintf(
			"gemm: %d×%d is no panels of %d columns in %d elements",
			k, n, w, len(to),
		))
	}
	if k <= 0 || n <= 0 {
		return
	}
	b.check("the right operand", k, n)
	for j := 0; j < n; j += w {
		from := b
		from.Data = b.Data[j*b.Col:]
		panel := Dense(to[j*k:], w)
		panelOf(f, panel, from, k)
	}
}

// FillsPanels reports whether a product of so many rows reads its right operand in panels,
// whatever the packing: one of fewer rows may sum in another order where that is in rows.
func FillsPanels[T Element](rows int) bool {
	f := familyOf[T]()
	return f.panelWidth() > 0 &&
		rows > maxGemvRows
}

// Multiply computes the product. Nothing is allocated: scratch is x.Scratch()
// elements that are overwritten. It panics where a matrix is not in its slice.
func (x Product[T]) Multiply(scratch []T) {
	x.refuseShort()
	if x.check(); x.idle() {
		return
	}
	if x.isColumn() {
		x = x.transposed()
	}
	if f := familyOf[T](); f != nil {
		multiplyPanels(f, x, scratch)
		return
	}
	multiplyPlain(x, scratch)
}

// isColumn reports whether C is a column, contiguous, of many rows: the same product transposed
// has one row of M elements.
func (x *Product[T]) isColumn() bool {
	return x.N == 1 && x.M >= 16 &&
		x.Windows == nil && x.Weights == nil &&
		x.C.Row == 1 && x.Panels == 0
}

// transposed is the product of the transposed matrices of one whose C is a column.
func (x Product[T]) transposed() Product[T] {
	a, b := x.A, x.B
	x.A = Matrix[T]{b.Data, b.Col, b.Row}
	x.B = Matrix[T]{a.Data, a.Col, a.Row}
	x.C.Row = x.M
	x.C.Col = 1
	x.N = x.M
	x.M = 1
	return x
}

// MultiplyBatch is Multiply for n products of one shape, whose matrices C, A and B begin apart
// elements apart. What the shape decides is decided once, which takes several times as long as
// 8×8×8.
func (x Product[T]) MultiplyBatch(
	n int, apart [3]int, scratch []T,
) {
	f := familyOf[T]()
	empty := x.M <= 0 || x.N <= 0 || x.K <= 0
	placed := x.Windows != nil || x.Weights != nil
	if n < 2 || f == nil || empty || placed {
		for i := range n {
			one := x.number(i, apart)
			one.Multiply(scratch)
		}
		return
	}
	x.refuseShort()
	x.check()
	x.number(n-1, apart).check()
	if x.isColumn() {
		x = x.transposed()
		// Both operands change places.
		a, b := apart[1], apart[2]
		apart[1], apart[2] = b, a
	}
	multiplyBatch(f, x, n, apart, scratch)
}

// number is product i of a batch.
func (x Product[T]) number(
	i int, apart [3]int,
) Product[T] {
	x.C.Data = x.C.Data[i*apart[0]:]
	x.A.Data = x.A.Data[i*apart[1]:]
	x.B.Data = x.B.Data[i*apart[2]:]
	return x
}

// Multiply adds the product of a, m×k, and b, k×n, to c, m×n.
func Multiply[T Element](
	c, a, b Matrix[T],
	m, n, k int, scratch []T,
) {
	Product[T]{
		C: c,
		A: a,
		B: b,
		M: m,
		N: n,
		K: k,
	}.Multiply(scratch)
}

// Scratch is the scratch of a product of m×k and k×n with typical caches.
func Scratch[T Element](m, n, k int) int {
	return Product[T]{M: m, N: n, K: k}.Scratch()
}

// Scratch is the number of elements that a product of these sizes and caches
// needs to pack its operands.
func (x Product[T]) Scratch() int {
	f := familyOf[T]()
	if f == nil {
		return plainTerms * plainColumns
	}
	if x.M <= 0 || x.N <= 0 || x.K <= 0 {
		return 0
	}
	var zero T
	return max(f.scratch(
		x.Caches, x.M, x.N, x.K,
	), f.scratch(x.Caches, x.N, x.M, x.K),
		x.windowScratch()) /
		int(unsafe.Sizeof(zero))
}

// MultiplyInt16 is Multiply where the elements of A and B are between −2¹⁵ and
// 2¹⁵−1, of which two are multiplied at a time; scratch is ScratchInt16
// elements.
func MultiplyInt16(x Product[int32], scratch []int32) {
	x.refuseShort()
	if x.check(); x.idle() {
		return
	}
	multiplyInt16(x, scratch)
}

// ScratchInt16 is the number of elements that MultiplyInt16 needs to pack a and
// b.
func ScratchInt16() int { return scratchInt16() }

// HasInt8 reports whether MultiplyInt8 has kernels of its own. The first call asks the
// system for the permission to use them.
func HasInt8() bool { return hasInt8() }

// ReadsBytes reports whether MultiplyInt8 reads operands of bytes as they lie in memory.
func ReadsBytes() bool { return readsBytes() }

// MultiplyInt8 is Multiply where the elements of A and B fit in a byte, signed or, where
// unsigned says so of A or B, unsigned; scratch is ScratchInt8 elements.
func MultiplyInt8(x Product[int32], scratch []int32, unsigned [2]bool) {
	if !readsBytes() {
		x.refuseShort()
	}
	if x.check(); x.idle() {
		return
	}
	multiplyInt8(x, scratch, unsigned)
}

// ScratchInt8 is the number of elements that MultiplyInt8 needs to pack a and b.
func ScratchInt8(x Product[int32]) int { return scratchInt8(x) }

// idle reports whether there is nothing to multiply. A fresh C becomes zeros
// then.
func (x Product[T]) idle() bool {
	if x.M > 0 && x.N > 0 && x.K > 0 {
		return false
	}
	if x.Fresh {
		x.clear()
	}
	return true
}

// clear makes C zeros.
func (x Product[T]) clear() {
	for i := range max(0, x.M) {
		clear(
			x.C.Data[i*x.C.Row:][:max(0, x.N)],
		)
	}
}

// FromTerm is the product of the terms from one of them on; K stays as it is.
func (x Product[T]) FromTerm(first int) Product[T] {
	for k, m := range []*Matrix[T]{&x.A, &x.B} {
		if k == 0 && x.Windows != nil {
			x.first += first
			continue
		}
		if k == 1 && x.Weights != nil {
			x.begin += first
			continue
		}
		at := first * m.Col
		if k == 1 {
			at = first * m.Row
		}
		if x.Short[k].Size != 0 {
			x.Short[k] = x.Short[k].From(at)
			continue
		}
		m.Data = m.Data[at:]
	}
	return x
}

// From is the elements from one of them on.
func (x Short) From(at int) Short {
	x.Data = x.Data[at*x.Size:]
	return x
}

// refuseShort panics where an operand is short.
func (x Product[T]) refuseShort() {
	if x.Short[0].Size != 0 || x.Short[1].Size != 0 {
		panic("gemm: this product does not read short elements")
	}
}

// check panics unless all matrices are in their slices.
func (x Product[T]) check() {
	if x.M <= 0 || x.N <= 0 {
		return
	}
	x.C.check("the result", x.M, x.N)
	if x.C.Col != 1 {
		panic(fmt.Sprintf("gemm: the columns of the result are %d elements apart, not 1", x.C.Col))
	}
	if x.K <= 0 {
		return
	}
	switch {
	case x.Windows != nil:
		x.checkWindows()
	case x.Short[0].check("the left operand", x.A.Row, x.A.Col, x.M, x.K):
	default:
		x.A.check("the left operand", x.M, x.K)
	}
	if x.Weights != nil {
		x.checkWeights()
		return
	}
	if x.Panels == 0 {
		if !x.Short[1].check("the right operand", x.B.Row, x.B.Col, x.K, x.N) {
			x.B.check("the right operand", x.K, x.N)
		}
		return
	}
	w := PanelWidth[T]()
	if w == 0 || x.B.Row != w || x.B.Col != 1 || x.N%w != 0 || x.Panels < 0 ||
		(x.N/w-1)*x.Panels+x.K*w > len(x.B.Data) {
		panic(fmt.Sprintf(
			"gemm: panels of %d×%d, %d elements apart, are not in %d elements",
			x.K, x.N, x.Panels, len(x.B.Data),
		))
	}
}

// check panics unless all of m rows of n elements is in the bytes; it reports false where
// there are none.
func (x Short) check(what string, row, col, m, n int) bool {
	if x.Size == 0 {
		return false
	}
	last := (m-1)*row + (n-1)*col
	if row < 0 || col < 0 || (last+1)*x.Size > len(x.Data) {
		panic(fmt.Sprintf(
			"gemm: %s is %d×%d with strides %d and %d, which is not in %d elements",
			what, m, n, row, col, len(x.Data)/x.Size,
		))
	}
	return true
}

// check panics unless all of m rows of n elements is in the slice.
func (x Matrix[T]) check(what string, m, n int) {
	last := (m-1)*x.Row + (n-1)*x.Col
	if x.Row < 0 || x.Col < 0 ||
		last >= len(x.Data) {
		panic(fmt.Sprintf(
			"gemm: %s is %d×%d with strides %d and %d, which is not in %d elements",
			what, m, n, x.Row,
			x.Col, len(x.Data),
		))
	}
}
