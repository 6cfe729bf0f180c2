// Package portable computes with the elements of scratch by loops in Go: the
// elementwise operations, reductions of runs, conversions between scratch and the
// arrays of a program, and scalar programs.
//
// It is what runs where there is no machine code, for operations and types that
// have none, and what machine code is compared with. Common operations have loops
// of their own, in tables by class. The others call the scalar semantics of the
// reference for every element.
//
// A loop works on runs: slices of equal length, of which the destination may be an
// operand. Runs are strips of a tile, mostly of 512 elements, so that what a loop
// reads is still in the first-level cache.
//
// # Classes
//
// Scratch has elements of four Go types, one for each class. An element of an array
// is held in the smallest class that has all its values:
//
//	float32  f32, bf16, f16, f8 types
//	float64  f64
//	int32    pred, s2, s4, s8, s16, s32, u2, u4, u8, u16
//	int64    s64, u32, u64 (its bits)
//
// Fewer classes than types keep the number of loops small: a loop is generic in its
// class, and one more loop per type narrows results. Read and Write convert between
// an array and scratch.
package portable

import (
	"math"

	"github.com/tilewright/tilewright/symtile/hlo"
)

// A Class is a type of scratch. Floating types narrower than f32 are held as
// f32, integers as the smaller of i32 and i64 that has all their values, pred
// as 0 and 1.
type Class uint8

const (
	// Float32 holds f32 and the floating types of fewer bits.
	Float32 Class = iota
	Float64       // Float64 holds f64.
	// Int32 holds pred, signed integers of up to 32 bits, and unsigned ones of
	// up to 16.
	Int32
	// Int64 holds u32, s64 and u64. The bits of a u64 are those of the i64, so
	// that comparisons, divisions and conversions of u64 need loops of their
	// own.
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

// IsNative reports whether arrays of type d hold exactly what scratch of its
// class holds, so that one can stand for the other.
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

// fillChunk is the elements from which more are copied: they stay in the first cache.
const fillChunk = 1 << 11

// Fill fills dst with x. Copying what is there already, twice as much each
// time, is the fastest loop in Go, since copy moves whole vectors.
func Fill[T Number](dst []T, x T) {
	if x == 0 && !math.Signbit(float64(x)) {
		clear(dst)
		return
	}
	n := min(16, len(dst))
	for k := range dst[:n] {
		dst[k] = x
	}
	for n < len(dst) {
		n += copy(dst[n:], dst[:min(n, fillChunk)])
	}
}
