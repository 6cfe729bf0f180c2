// Package gemm multiplies matrices that lie in scratch. It has kernels of
// assembly for f32, f64, i32 and integers of 16 bits on amd64 CPUs with AVX2 and
// FMA (AVX-512 for f32 and f64 where the CPU has it), and plain Go for everything
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
// and the sum, or once where its compiler fuses them. Integers wrap.
package gemm

import "fmt"

// An Element is what matrices are made of.
type Element interface {
	float32 | float64 | int32 | int64
}

// A Matrix is a view of a slice: element i, j is Data[i·Row + j·Col].
type Matrix[T Element] struct {
	Data     []T
	Row, Col int
}

// Dense is the view of a slice that holds rows of n elements.
func Dense[T Element](data []T, n int) Matrix[T] { return Matrix[T]{data, n, 1} }

// Multiply adds the product of a, m×k, and b, k×n, to c, m×n, whose Col is 1.
// Nothing is allocated: scratch is Scratch elements that Multiply
// overwrites. It panics where a matrix is not in its slice.
func Multiply[T Element](c, a, b Matrix[T], m, n, k int, scratch []T) {
	if m <= 0 || n <= 0 || k <= 0 {
		return
	}
	checkAll(c, a, b, m, n, k)
	if n == 1 && m >= 16 && c.Row == 1 { // the same product transposed has rows of m elements
		c, a, b = Matrix[T]{c.Data, m, 1}, Matrix[T]{b.Data, b.Col, b.Row}, Matrix[T]{a.Data, a.Col, a.Row}
		m, n = 1, m
	}
	if f := familyOf[T](); f != nil {
		multiplyPanels(f, c, a, b, m, n, k, scratch)
		return
	}
	multiplyPlain(c, a, b, m, n, k, scratch)
}

// Scratch is how many elements Multiply needs to arrange a panel of b.
func Scratch[T Element]() int {
	if f := familyOf[T](); f != nil {
		return f.terms() * f.columns()
	}
	return plainTerms * plainColumns
}

// MultiplyNarrow is Multiply where the elements of a and b are between −2¹⁵ and
// 2¹⁵−1, of which two are multiplied at a time; scratch is ScratchNarrow
// elements.
func MultiplyNarrow(c, a, b Matrix[int32], m, n, k int, scratch []int32) {
	if m > 0 && n > 0 && k > 0 {
		checkAll(c, a, b, m, n, k)
		multiplyNarrow(c, a, b, m, n, k, scratch)
	}
}

// ScratchNarrow is how many elements MultiplyNarrow needs to arrange a and b.
func ScratchNarrow() int { return scratchNarrow() }

func checkAll[T Element](c, a, b Matrix[T], m, n, k int) {
	c.check("the result", m, n)
	a.check("the left operand", m, k)
	b.check("the right operand", k, n)
	if c.Col != 1 {
		panic(fmt.Sprintf("gemm: the columns of the result are %d elements apart, not 1", c.Col))
	}
}

// check panics unless all of m rows of n elements is in the slice.
func (x Matrix[T]) check(what string, m, n int) {
	if last := (m-1)*x.Row + (n-1)*x.Col; x.Row < 0 || x.Col < 0 || last >= len(x.Data) {
		panic(fmt.Sprintf("gemm: %s is %d×%d with strides %d and %d, which is not in %d elements", what, m, n, x.Row, x.Col, len(x.Data)))
	}
}
