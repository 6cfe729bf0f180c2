package hlo

// A Literal is the value of a constant, elements in logical row-major order.
// Exactly one of the slices is set: Ints for pred (0/1) and integers, Floats
// for floating point, Complex for complex types, Tuple for tuples.
type Literal struct {
	Shape   Shape
	Ints    []int64 // u64 values are stored as their two's complement bits
	Floats  []float64
	Complex []complex128
	Tuple   []*Literal
}
