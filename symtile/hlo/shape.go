package hlo

// A Shape is an array type, or a tuple of shapes when DType is Tuple.
type Shape struct {
	DType  DType
	Dims   []int64 // extents, major to minor as written; empty for a scalar
	Layout Layout
	Tuple  []Shape // element shapes when DType is Tuple
}

// A Layout is how an array lies in memory. MinorToMajor[0] is the dimension
// that varies fastest; nil means the default, descending order.
type Layout struct {
	MinorToMajor []int
	Tiles        [][]int64 // T(8,128)(2,1); -1 stands for *
	Rest         string    // anything else after the tiles (E(4), S(1), …), verbatim
}

// DType is an element type.
type DType uint8

// The element types of HLO.
const (
	InvalidDType DType = iota
	Pred
	S2
	S4
	S8
	S16
	S32
	S64
	U2
	U4
	U8
	U16
	U32
	U64
	F4E2M1FN
	F8E3M4
	F8E4M3
	F8E4M3FN
	F8E4M3B11FNUZ
	F8E4M3FNUZ
	F8E5M2
	F8E5M2FNUZ
	F8E8M0FNU
	F16
	BF16
	F32
	F64
	C64
	C128
	Token
	Opaque
	Tuple
)
