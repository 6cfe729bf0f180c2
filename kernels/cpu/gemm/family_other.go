//go:build !amd64 || noasm

package gemm

// A family would be kernels of assembly; there are none here.
type family struct{}

func (*family) columns() int { return 0 }
func (*family) terms() int   { return 0 }

func familyOf[T Element]() *family { return nil }

func multiplyPanels[T Element](_ *family, c, a, b Matrix[T], m, n, k int, scratch []T) {
	multiplyPlain(c, a, b, m, n, k, scratch)
}

func scratchNarrow() int { return Scratch[int32]() }

func multiplyNarrow(c, a, b Matrix[int32], m, n, k int, scratch []int32) {
	Multiply(c, a, b, m, n, k, scratch)
}
