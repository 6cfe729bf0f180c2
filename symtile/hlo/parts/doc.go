// Package parts writes a computation of complex numbers as one of real numbers: their
// real and imaginary parts.
//
//	Of(c)       the computation of the parts; c itself where nothing is complex
//
// A complex array lies in memory as an array of real numbers with a last dimension of 2
// (hlo.Shape.Parts). So a parameter c64[8] becomes a parameter f32[8,2], of which two
// slices are the parts, and a complex result selects between the two parts along that
// dimension: the bytes of parameters and results are those of c. Operations that move
// elements move the parts, sums are the sums of the parts, a product of matrices is four
// products, and functions are formulas (formulas.go).
package parts
