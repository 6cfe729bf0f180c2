// Package m16n8k16 adds products of the matrices of mma.sync.m16n8k16. It holds
// the one loop that simulated kernels spend their time in, in vector instructions where
// the processor has them.
package m16n8k16

// An A is the left matrix.
type A [16][16]float32

// A B is the right matrix.
type B [16][8]float32

// A C is the sums of their products.
type C [16][8]float32

// Add adds a·b to c: to each sum one product after the other, in order of k, and each
// operation is rounded to float32. Which NaN a sum is, is not defined.
func (c *C) Add(a *A, b *B) { c.add(a, b) }

// addPlain is Add in Go.
func (c *C) addPlain(a *A, b *B) {
	for r := range c {
		c[r] = rowTimes(&a[r], b, &c[r])
	}
}

// rowTimes is a row of C plus a row of A times B.
func rowTimes(a *[16]float32, b *B, c *[8]float32) [8]float32 {
	s0, s1, s2, s3 := c[0], c[1], c[2], c[3]
	s4, s5, s6, s7 := c[4], c[5], c[6], c[7]
	for k, x := range a {
		row := &b[k]
		// The conversions keep compilers from fusing products with sums.
		s0 += float32(x * row[0])
		s1 += float32(x * row[1])
		s2 += float32(x * row[2])
		s3 += float32(x * row[3])
		s4 += float32(x * row[4])
		s5 += float32(x * row[5])
		s6 += float32(x * row[6])
		s7 += float32(x * row[7])
	}
	return [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
}
