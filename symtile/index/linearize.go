package index

// Number is what positions in an array are computed with, so that one formula
// serves numbers (Int) and symbolic expressions (Expr). Div is the floor of the
// quotient and Mod the remainder in [0, m), for m > 0.
type Number[T any] interface {
	Add(T) T
	Scale(int64) T
	Div(int64) T
	Mod(int64) T
}

// Int is an int64 ≥ 0 that computes as an expression does.
type Int int64

// Add is x + y.
func (x Int) Add(y Int) Int { return x + y }

// Scale is k·x.
func (x Int) Scale(k int64) Int { return x * Int(k) }

// Div is ⌊x/m⌋.
func (x Int) Div(m int64) Int { return x / Int(m) }

// Mod is x mod m.
func (x Int) Mod(m int64) Int { return x % Int(m) }

// Linearize is the row-major position of an index, which is not empty, in an
// array: Σ index[i]·(product of the extents after i).
func Linearize[T Number[T]](index []T, extents []int64) T {
	x := index[0]
	for i := 1; i < len(index); i++ {
		x = x.Scale(extents[i]).Add(index[i])
	}
	return x
}

// Delinearize is the inverse of Linearize: the index at row-major position x of
// an array of at least one dimension. The first component is not reduced by its
// extent.
func Delinearize[T Number[T]](x T, extents []int64) []T {
	index := make([]T, len(extents))
	for i := len(extents) - 1; i > 0; i-- {
		index[i], x = x.Mod(extents[i]), x.Div(extents[i])
	}
	index[0] = x
	return index
}
