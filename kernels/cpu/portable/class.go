package portable

import "github.com/tilewright/tilewright/symtile/hlo"

// A Class is a type of scratch. Floating types narrower than f32 are held as
// f32, integers as the smallest of i32 and i64 that has all their values.
type Class uint8

const (
	Float32 Class = iota
	Float64
	Int32
	Int64
)

// Bytes is the size of an element.
func (c Class) Bytes() int64 {
	if c == Float64 || c == Int64 {
		return 8
	}
	return 4
}

// String is the name of the class in listings.
func (c Class) String() string {
	return [...]string{"f32", "f64", "i32", "i64"}[c]
}

// ClassOf is the class in which scratch holds elements of type d.
func ClassOf(d hlo.DType) Class {
	switch {
	case d == hlo.F64:
		return Float64
	case d.IsFloat():
		return Float32
	case d == hlo.U32, d == hlo.S64, d == hlo.U64:
		return Int64
	}
	return Int32
}

// IsNative says whether arrays of type d hold exactly what scratch of its class
// holds, so that one can stand for the other.
func IsNative(d hlo.DType) bool {
	switch d {
	case hlo.F32, hlo.F64, hlo.S32, hlo.S64, hlo.U64:
		return true
	}
	return false
}

// A Number is an element of scratch.
type Number interface {
	float32 | float64 | int32 | int64
}

// ClassFor is the class whose elements have the Go type T.
func ClassFor[T Number]() Class {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int32:
		return Int32
	}
	return Int64
}

// Fill fills dst with x; copying what is there already is the fastest loop
// plain Go has.
func Fill[T Number](dst []T, x T) {
	n := min(16, len(dst))
	for k := range dst[:n] {
		dst[k] = x
	}
	for ; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
