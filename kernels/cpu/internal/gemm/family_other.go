//go:build !amd64 || noasm

package gemm

// A family is the kernels of an element type. full[r−1] multiplies r rows and
// two vectors of columns. masked[r−1] multiplies one vector, of which the mask
// says which lanes are valid: it reads and writes no others.
type family struct{}

// Vectors is the bits of the widest vectors of this CPU that there is code for,
// and how many of them instructions can name: 0 without.
func Vectors() (bits, registers int) { return 0, 0 }

// scratch is the bytes that a product needs for a slab and panels.
func (*family) scratch(c Caches, m, n, k int) int { return 0 }

// panelWidth is the number of columns of a panel.
func (*family) panelWidth() int { return 0 }

// familyOf is the family of T, or nil.
func familyOf[T Element]() *family { return nil }

// maxGemvRows is the rows of a product that reads b row by row, at most.
const maxGemvRows = 0

// panelOf is for families of some panel width.
func panelOf[T Element](*family, Matrix[T], Matrix[T], int) {}

// multiplyPanels multiplies in the way that suits the shape: as a matrix-vector
// product where few rows use b, else slab by slab.
func multiplyPanels[T Element](_ *family, x Product[T], scratch []T) {
	multiplyPlain(x, scratch)
}

// multiplyBatch multiplies n products.
func multiplyBatch[T Element](f *family, x Product[T], n int, apart [3]int, scratch []T) {
	for i := range n {
		multiplyPanels(f, x.number(i, apart), scratch)
	}
}

// scratchInt16 is the scratch for the rows of a, for a panel of b, and for its
// columns before they are transposed.
func scratchInt16() int { return Scratch[int32](1, 1, 1) }

// multiplyInt16 multiplies pair by pair of terms.
func multiplyInt16(x Product[int32], scratch []int32) { x.Multiply(scratch) }

// hasInt8 reports whether there are kernels for bytes.
func hasInt8() bool { return false }

// readsBytes reports whether products of bytes read short operands.
func readsBytes() bool { return false }

// hasTiles reports whether there are those of AMX.
func hasTiles() bool { return false }

// scratchInt8 is the scratch of products of bytes.
func scratchInt8(Product[int32]) int { return scratchInt16() }

// multiplyInt8 multiplies as any integers.
func multiplyInt8(x Product[int32], scratch []int32, _ [2]bool) { x.Multiply(scratch) }

// hasHalves reports whether there are kernels.
func hasHalves(Halves) bool { return false }

// scratchHalves is the elements that kernels need.
func scratchHalves(Product[float32], Halves) int { return 0 }

// multiplyHalves multiplies as any floating-point numbers.
func multiplyHalves(x Product[float32], scratch []float32, _ Halves) { x.Multiply(scratch) }

// EmulateHalves puts kernels in Go, which do what the instructions do, bit for bit, in the
// place of those of this processor until the function that it returns is called. It is
// for tests, and reports whether there is code for this platform to put them in.
func EmulateHalves() (restore func(), ok bool) { return func() {}, false }
