//go:build !amd64 || noasm

package gemm

// A family would be kernels of assembly; there are none here.
type family struct{}

// Vectors is 0, 0: plain Go has none.
func Vectors() (bits, registers int) { return 0, 0 }

func (*family) scratch(c Caches, m, n, k int) int { return 0 }

func familyOf[T Element]() *family { return nil }

func multiplyPanels[T Element](_ *family, x Product[T], scratch []T) {
	multiplyPlain(x, scratch)
}

func scratchInt16() int { return Scratch[int32](1, 1, 1) }

func multiplyInt16(x Product[int32], scratch []int32) { x.Multiply(scratch) }
