//go:build !amd64 || noasm

package gemm

// A family would be kernels of assembly; there are none here.
type family struct{}

func (*family) scratch(m, n, k int) int { return 0 }

func familyOf[T Element]() *family { return nil }

func multiplyPanels[T Element](_ *family, x Product[T], scratch []T) { multiplyPlain(x, scratch) }

func scratchNarrow() int { return Scratch[int32](1, 1, 1) }

func multiplyNarrow(x Product[int32], scratch []int32) { x.Multiply(scratch) }
