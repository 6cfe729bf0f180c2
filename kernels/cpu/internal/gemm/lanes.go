package gemm

// Lanes are products of vectors lane by lane, as in a convolution of which each channel has
// its own weights: rows of C add the products of the terms of A's windows and of the rows of
// W, of as many elements,
//
//	c[i][l] = (…(c[i][l] + a[i][0][l]·w[0][l]) + a[i][1][l]·w[1][l]) + …
//
// with fused multiply-adds in the order of terms. Element i, p, l of A is
// A[Groups[i/Rows] + i%Rows·Row + Terms[p] + l].
type Lanes struct {
	Rows, Row int   // The rows of a group, and the elements between them.
	Groups    []int // Where groups of rows begin.
	Terms     []int // The bytes between a row and each of its terms.
	Lanes     int   // A multiple of LaneUnit.
}

// LaneUnit is what the number of lanes is a multiple of: a vector of 256 bits.
const LaneUnit = 8
