package hlo

type dtypeClass uint8

const (
	classNone dtypeClass = iota
	classPred
	classSigned
	classUnsigned
	classFloat
	classComplex
)

// dtypes is what there is to know about each element type. bytes is the width
// of an element in a Buffer: types under a byte take a whole one.
var dtypes = [...]struct {
	name  string
	class dtypeClass
	bits  int
	bytes int64
}{
	InvalidDType:  {"invalid", classNone, 0, 0},
	Pred:          {"pred", classPred, 1, 1},
	S2:            {"s2", classSigned, 2, 1},
	S4:            {"s4", classSigned, 4, 1},
	S8:            {"s8", classSigned, 8, 1},
	S16:           {"s16", classSigned, 16, 2},
	S32:           {"s32", classSigned, 32, 4},
	S64:           {"s64", classSigned, 64, 8},
	U2:            {"u2", classUnsigned, 2, 1},
	U4:            {"u4", classUnsigned, 4, 1},
	U8:            {"u8", classUnsigned, 8, 1},
	U16:           {"u16", classUnsigned, 16, 2},
	U32:           {"u32", classUnsigned, 32, 4},
	U64:           {"u64", classUnsigned, 64, 8},
	F4E2M1FN:      {"f4e2m1fn", classFloat, 4, 1},
	F8E3M4:        {"f8e3m4", classFloat, 8, 1},
	F8E4M3:        {"f8e4m3", classFloat, 8, 1},
	F8E4M3FN:      {"f8e4m3fn", classFloat, 8, 1},
	F8E4M3B11FNUZ: {"f8e4m3b11fnuz", classFloat, 8, 1},
	F8E4M3FNUZ:    {"f8e4m3fnuz", classFloat, 8, 1},
	F8E5M2:        {"f8e5m2", classFloat, 8, 1},
	F8E5M2FNUZ:    {"f8e5m2fnuz", classFloat, 8, 1},
	F8E8M0FNU:     {"f8e8m0fnu", classFloat, 8, 1},
	F16:           {"f16", classFloat, 16, 2},
	BF16:          {"bf16", classFloat, 16, 2},
	F32:           {"f32", classFloat, 32, 4},
	F64:           {"f64", classFloat, 64, 8},
	C64:           {"c64", classComplex, 64, 8},
	C128:          {"c128", classComplex, 128, 16},
	Token:         {"token", classNone, 0, 0},
	Opaque:        {"opaque", classNone, 0, 0},
	Tuple:         {"tuple", classNone, 0, 0},
}

func (d DType) String() string { return dtypes[d].name }

// Size is the bytes an element takes in a buffer; 0 for tuple, token, opaque.
func (d DType) Size() int64 { return dtypes[d].bytes }

// Bits is the width of the type itself: 4 for s4, 1 for pred.
func (d DType) Bits() int { return dtypes[d].bits }

// IsFloat says whether d is a real floating-point type.
func (d DType) IsFloat() bool { return dtypes[d].class == classFloat }

// IsInteger says whether d is a signed or unsigned integer; pred is not.
func (d DType) IsInteger() bool { return d.IsSigned() || d.IsUnsigned() }

// IsSigned says whether d is a signed integer.
func (d DType) IsSigned() bool { return dtypes[d].class == classSigned }

// IsUnsigned says whether d is an unsigned integer; pred is not.
func (d DType) IsUnsigned() bool { return dtypes[d].class == classUnsigned }

// IsComplex says whether d is c64 or c128.
func (d DType) IsComplex() bool { return dtypes[d].class == classComplex }

// IsArray says whether arrays of d hold elements.
func (d DType) IsArray() bool { return dtypes[d].bytes > 0 }

// ParseDType finds the type with HLO's name for it. "f8" alone means f8e4m3fn.
func ParseDType(name string) (DType, bool) {
	d, ok := dtypeNames[name]
	return d, ok
}

var dtypeNames = func() map[string]DType {
	names := map[string]DType{"f8": F8E4M3FN}
	for d, row := range dtypes {
		if DType(d) != InvalidDType && DType(d) != Tuple {
			names[row.name] = DType(d)
		}
	}
	return names
}()
